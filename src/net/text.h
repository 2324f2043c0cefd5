// Comparing and taking apart the ASCII of headers, without regard to the locale.

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace glovebox::net {

constexpr char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

constexpr bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

constexpr std::string_view trim(std::string_view text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Calls `f(element)` for each element of a comma-separated list, until it returns true; returns
// whether it did.
template <class F>
constexpr bool any_in_list(std::string_view list, F f) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string_view element = trim(list.substr(0, comma));
    if (!element.empty() && f(element)) return true;
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return false;
}

constexpr bool list_has(std::string_view list, std::string_view token) {
  return any_in_list(list, [token](std::string_view e) { return equal_ignoring_case(e, token); });
}

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr bool is_alnum(char c) noexcept {
  return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z');
}

// Digits only: no sign, no space. Up to 18 of them, so that no sum of two overflows.
constexpr std::optional<std::uint64_t> parse_decimal(std::string_view text) noexcept {
  if (text.empty() || text.size() > 18) return std::nullopt;
  std::uint64_t out = 0;
  for (const char c : text) {
    if (!is_digit(c)) return std::nullopt;
    out = out * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return out;
}

}  // namespace glovebox::net
