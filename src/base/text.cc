#include "base/text.h"

#include <algorithm>
#include <ctime>

namespace glovebox {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

void append_escape(std::string& out, unsigned code) {
  constexpr char kHex[] = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kHex[(code >> shift) & 0xf];
}

void append_digits(std::string& out, int value, int width) {
  char digits[8];
  for (int i = width - 1; i >= 0; --i) {
    digits[i] = static_cast<char>('0' + value % 10);
    value /= 10;
  }
  out.append(digits, static_cast<std::size_t>(width));
}

}  // namespace

char32_t next_code_point(std::string_view text, std::size_t& at) noexcept {
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const std::size_t start = at++;
  const unsigned first = byte(start);
  if (first < 0x80) return first;

  // RFC 3629, section 4: the second byte's range is what rules out overlong forms and surrogates.
  std::size_t length = 0;
  unsigned low = 0x80;
  unsigned high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    return kReplacement;
  }
  if (byte(start + 1) < low || byte(start + 1) > high) return kReplacement;
  char32_t code = first & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(start + i) & 0xC0) != 0x80) return kReplacement;
    code = (code << 6) | (byte(start + i) & 0x3F);
  }
  at = start + length;
  return code;
}

bool is_utf8(std::string_view text) noexcept {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    // A real U+FFFD takes three bytes, a broken one moves by one.
    if (next_code_point(text, at) == kReplacement && at - start == 1) return false;
  }
  return true;
}

bool iequals(std::string_view a, std::string_view b) noexcept {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

bool istarts_with(std::string_view text, std::string_view prefix) noexcept {
  return iequals(text.substr(0, prefix.size()), prefix);
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    const char32_t code = next_code_point(text, at);
    if (code == '"' || code == '\\') {
      out += '\\';
      out += static_cast<char>(code);
    } else if (code == '\n') {
      out += "\\n";
    } else if (code == '\t') {
      out += "\\t";
    } else if (code == '\r') {
      out += "\\r";
    } else if (code < 0x20 || (code >= 0x7F && code < 0xA0)) {
      append_escape(out, static_cast<unsigned>(code));
    } else if (code == kReplacement) {
      out += "\xEF\xBF\xBD";
    } else {
      out.append(text, start, at - start);
    }
  }
  out += '"';
}

void append_rfc3339(std::string& out, std::int64_t unix_ms) {
  constexpr std::int64_t kYear0 = -62'167'219'200'000;
  constexpr std::int64_t kYear9999 = 253'402'300'799'999;
  unix_ms = std::clamp(unix_ms, kYear0, kYear9999);
  std::int64_t ms = unix_ms % 1000;
  if (ms < 0) ms += 1000;
  const std::time_t seconds = (unix_ms - ms) / 1000;
  std::tm tm{};
  ::gmtime_r(&seconds, &tm);
  append_digits(out, tm.tm_year + 1900, 4);
  out += '-';
  append_digits(out, tm.tm_mon + 1, 2);
  out += '-';
  append_digits(out, tm.tm_mday, 2);
  out += 'T';
  append_digits(out, tm.tm_hour, 2);
  out += ':';
  append_digits(out, tm.tm_min, 2);
  out += ':';
  append_digits(out, tm.tm_sec, 2);
  out += '.';
  append_digits(out, static_cast<int>(ms), 3);
  out += 'Z';
}

}  // namespace glovebox
