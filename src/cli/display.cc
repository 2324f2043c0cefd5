#include "cli/display.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "base/text.h"

namespace glovebox::cli {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

template <std::size_t N>
bool within(const Range (&ranges)[N], char32_t code) noexcept {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [code](const Range& r) { return code >= r.first && code <= r.last; });
}

// Invisible, or changes the order of what is around it: CVE-2021-42574 ("Trojan Source").
constexpr Range kTreacherous[] = {{0x00AD, 0x00AD}, {0x061C, 0x061C},   {0x180E, 0x180E},
                                  {0x200B, 0x200F}, {0x2028, 0x202E},   {0x2060, 0x206F},
                                  {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB},   {0xE0000, 0xE007F},
                                  {0xE000, 0xF8FF}, {0xF0000, 0x10FFFF}};

// The blocks of Unicode's EastAsianWidth.txt that matter in practice.
constexpr Range kWide[] = {{0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0x33FF},
                           {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xA000, 0xA4CF},
                           {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},
                           {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F},
                           {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};

constexpr Range kCombining[] = {{0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD},
                                {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x20D0, 0x20FF},
                                {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xE0100, 0xE01EF}};

void append_hex(std::string& out, std::uint32_t value, int digits_min) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string digits;
  for (; value != 0 || static_cast<int>(digits.size()) < digits_min; value >>= 4) {
    digits += kHex[value & 0xf];
  }
  out.append(digits.rbegin(), digits.rend());
}

void append_byte(std::string& out, char byte) {
  out += "\\x";
  append_hex(out, static_cast<unsigned char>(byte), 2);
}

std::size_t code_width(char32_t code) noexcept {
  if (within(kCombining, code)) return 0;
  return within(kWide, code) ? 2 : 1;
}

}  // namespace

std::string safe_text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    const char32_t code = next_code_point(text, at);
    const bool broken = code == 0xFFFD && at - start == 1;
    if (broken || code < 0x20 || code == 0x7F) {
      append_byte(out, text[start]);
    } else if (code < 0xA0 && code >= 0x80) {
      out += "\\u{";
      append_hex(out, code, 2);
      out += '}';
    } else if (within(kTreacherous, code)) {
      out += "\\u{";
      append_hex(out, code, 4);
      out += '}';
    } else {
      out.append(text, start, at - start);
    }
  }
  return out;
}

std::size_t display_width(std::string_view text) noexcept {
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size();) width += code_width(next_code_point(text, at));
  return width;
}

std::string fit(std::string_view text, std::size_t columns) {
  if (display_width(text) <= columns) return std::string(text);
  if (columns == 0) return {};
  std::size_t width = 0;
  std::size_t end = 0;
  for (std::size_t at = 0; at < text.size();) {
    width += code_width(next_code_point(text, at));
    if (width > columns - 1) break;
    end = at;
  }
  return std::string(text.substr(0, end)) + "\u2026";
}

void Table::add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

std::string Table::render(std::size_t cell_columns_max) const {
  const std::size_t columns = rows_.front().size();
  std::vector<std::vector<std::string>> shown;
  std::vector<std::size_t> widths(columns, 0);
  for (const auto& row : rows_) {
    auto& line = shown.emplace_back(columns);
    for (std::size_t i = 0; i < std::min(columns, row.size()); ++i) {
      line[i] = fit(safe_text(row[i]), cell_columns_max);
      widths[i] = std::max(widths[i], display_width(line[i]));
    }
  }
  std::string out;
  for (const auto& line : shown) {
    std::string text;
    for (std::size_t i = 0; i < columns; ++i) {
      text += line[i];
      text.append(widths[i] - display_width(line[i]) + 2, ' ');
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text;
    out += '\n';
  }
  return out;
}

}  // namespace glovebox::cli
