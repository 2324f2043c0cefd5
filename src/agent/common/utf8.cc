#include "agent/common/utf8.h"

namespace glovebox::agent {
namespace {

// True when `text`, which starts with a lead byte, is a proper beginning of one character: table
// 3-7 of the Unicode standard, where the second byte's range depends on the first.
bool is_beginning(std::string_view text) noexcept {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0xc2 || first > 0xf4) return false;
  const std::size_t size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (text.size() >= size) return false;
  if (text.size() == 1) return true;
  const auto second = static_cast<unsigned char>(text[1]);
  if (first == 0xe0) return second >= 0xa0;
  if (first == 0xed) return second <= 0x9f;
  if (first == 0xf0) return second >= 0x90;
  if (first == 0xf4) return second <= 0x8f;
  return true;
}

}  // namespace

std::size_t incomplete_tail(std::string_view text) noexcept {
  const std::size_t longest = text.size() < 3 ? text.size() : 3;
  for (std::size_t n = 1; n <= longest; ++n) {
    const std::string_view tail = text.substr(text.size() - n);
    const auto first = static_cast<unsigned char>(tail[0]);
    if (first < 0x80) return 0;
    if (first < 0xc0) continue;  // A continuation byte: its beginning is further left.
    return is_beginning(tail) ? n : 0;
  }
  return 0;
}

}  // namespace glovebox::agent
