#include "agent/files/byte_range.h"

#include <algorithm>
#include <charconv>

namespace glovebox::agent {
namespace {

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

RangeKind parse_range(std::string_view header, std::uint64_t file_size, ByteRange& range) noexcept {
  constexpr std::string_view kUnit = "bytes=";
  if (!header.starts_with(kUnit)) return RangeKind::kNone;
  header.remove_prefix(kUnit.size());
  const std::size_t dash = header.find('-');
  if (dash == std::string_view::npos) return RangeKind::kNone;
  const std::string_view left = header.substr(0, dash);
  const std::string_view right = header.substr(dash + 1);
  if (left.empty()) {
    const auto last = number(right);
    if (!last) return RangeKind::kNone;
    if (*last == 0 || file_size == 0) return RangeKind::kUnsatisfiable;
    range.size = std::min(*last, file_size);
    range.first = file_size - range.size;
    return RangeKind::kOne;
  }
  const auto first = number(left);
  const auto last = right.empty() ? std::optional(UINT64_MAX) : number(right);
  if (!first || !last || *last < *first) return RangeKind::kNone;
  if (*first >= file_size) return RangeKind::kUnsatisfiable;
  range.first = *first;
  range.size = std::min(*last, file_size - 1) - *first + 1;
  return RangeKind::kOne;
}

}  // namespace glovebox::agent
