#include "net/url.h"

#include "net/text.h"

namespace glovebox::net {
namespace {

constexpr std::size_t kTargetBytesMax = 8 << 10;

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (lower(c) >= 'a' && lower(c) <= 'f') return lower(c) - 'a' + 10;
  return -1;
}

Result<std::string> decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
      const int low = high >= 0 ? hex_value(text[i + 2]) : -1;
      if (low < 0) return Error(Errc::kInvalid, "broken percent escape");
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return out;
}

bool has_control(std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) return true;
  }
  return false;
}

// RFC 3986, 3.3 and 3.4: what may stand in a path or query as it is; '%' is checked by decode().
// More lenient by the characters that browsers and curl leave alone in queries.
bool is_target_char(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte > 0x20 && byte < 0x7f && c != '#' && c != '\\' && c != '"' && c != '<' && c != '>';
}

Result<void> add_segments(Target& target) {
  std::string_view rest = std::string_view(target.path).substr(1);
  for (bool more = true; more;) {
    const std::size_t slash = rest.find('/');
    more = slash != std::string_view::npos;
    GB_TRY_ASSIGN(std::string segment, decode(rest.substr(0, slash), false));
    if (has_control(segment)) return Error(Errc::kInvalid, "control byte in path");
    if (segment == "." || segment == "..") return Error(Errc::kInvalid, "dot segment in path");
    if (segment.find_first_of("/\\") != std::string::npos) {
      return Error(Errc::kInvalid, "encoded slash in path");
    }
    target.segments.push_back(std::move(segment));
    if (more) rest.remove_prefix(slash + 1);
  }
  return {};
}

Result<void> add_params(Target& target) {
  std::string_view rest = target.query;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('&'), rest.size());
    const std::string_view pair = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (pair.empty()) continue;
    const std::size_t equals = std::min(pair.find('='), pair.size());
    GB_TRY_ASSIGN(std::string name, decode(pair.substr(0, equals), true));
    GB_TRY_ASSIGN(std::string value, decode(pair.substr(std::min(equals + 1, pair.size())), true));
    if (name.find('\0') != std::string::npos || value.find('\0') != std::string::npos) {
      return Error(Errc::kInvalid, "NUL in query");
    }
    target.params.emplace_back(std::move(name), std::move(value));
  }
  return {};
}

}  // namespace

std::optional<std::string> Target::param(std::string_view name) const {
  for (const auto& [key, value] : params) {
    if (key == name) return value;
  }
  return std::nullopt;
}

Result<Target> parse_target(std::string_view text) {
  if (text.size() > kTargetBytesMax) return Error(Errc::kInvalid, "target over 8 KiB");
  if (text.empty() || text.front() != '/') {
    return Error(Errc::kInvalid, "target does not start with a slash");
  }
  for (const char c : text) {
    if (!is_target_char(c)) return Error(Errc::kInvalid, "character not allowed in target");
  }
  Target target;
  const std::size_t question = text.find('?');
  target.path = text.substr(0, question);
  if (question != std::string_view::npos) target.query = text.substr(question + 1);
  GB_TRY(add_segments(target));
  GB_TRY(add_params(target));
  return target;
}

std::string percent_encode(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (is_alnum(c) || c == '-' || c == '.' || c == '_' || c == '~') {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

Result<std::string> percent_decode(std::string_view text) { return decode(text, false); }

}  // namespace glovebox::net
