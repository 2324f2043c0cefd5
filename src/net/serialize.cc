#include "net/serialize.h"

#include <sys/random.h>

#include <algorithm>
#include <charconv>
#include <random>

#include "net/text.h"

namespace glovebox::net {

bool is_field_name(std::string_view name) noexcept {
  static constexpr std::string_view kOther = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return is_alnum(c) || kOther.find(c) != std::string_view::npos;
  });
}

bool is_field_value(std::string_view value) noexcept {
  return std::all_of(value.begin(), value.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
  });
}

void append_number(std::string& out, std::uint64_t number) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  out.append(digits, end);
}

void append_status_line(std::string& out, int status) {
  if (status == 200) {
    out.append("HTTP/1.1 200 OK\r\n");
    return;
  }
  out.append("HTTP/1.1 ");
  append_number(out, static_cast<std::uint64_t>(status));
  out.append(" ").append(reason_phrase(status)).append("\r\n");
}

bool append_field(std::string& out, std::string_view name, std::string_view value) {
  if (!is_field_name(name) || !is_field_value(value)) return false;
  out.append(name).append(": ").append(value).append("\r\n");
  return true;
}

std::string_view chunk_header(std::size_t size, char (&space)[24]) noexcept {
  char* end = std::to_chars(space, space + sizeof space - 2, size, 16).ptr;
  *end++ = '\r';
  *end++ = '\n';
  return {space, static_cast<std::size_t>(end - space)};
}

std::string make_request_id() {
  static thread_local std::mt19937_64 random = [] {
    std::uint64_t seed[4] = {};
    if (::getrandom(seed, sizeof seed, 0) != sizeof seed) seed[0] = std::random_device()();
    std::seed_seq sequence(std::begin(seed), std::end(seed));
    return std::mt19937_64(sequence);
  }();
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out(32, '0');
  for (std::size_t half = 0; half < 2; ++half) {
    std::uint64_t bits = random();
    for (std::size_t i = 0; i < 16; ++i, bits >>= 4) out[half * 16 + i] = kHex[bits & 15];
  }
  return out;
}

bool is_request_id(std::string_view id) noexcept {
  return !id.empty() && id.size() <= 128 && std::all_of(id.begin(), id.end(), [](char c) {
    return is_alnum(c) || c == '.' || c == '_' || c == '-';
  });
}

std::string error_body(std::string_view code, std::string_view message) {
  std::string out = R"({"code":")";
  out.append(code).append(R"(","message":")");
  for (const char c : message) {
    const bool plain = c >= 0x20 && c < 0x7f;
    if (c == '"' || c == '\\') out += '\\';
    out += plain ? c : '?';
  }
  return out.append(R"(","details":{}})");
}

std::string_view error_code_for(int status) noexcept {
  switch (status) {
    case 401: return "unauthorized";
    case 403: return "denied";
    case 404: return "not_found";
    case 408:
    case 504: return "timeout";
    case 409: return "conflict";
    case 413:
    case 431: return "too_large";
    case 429: return "exhausted";
    case 502:
    case 503: return "unavailable";
    default: return status >= 500 ? "internal" : "invalid";
  }
}

}  // namespace glovebox::net
