// The Range header for one range of bytes (RFC 9110, 14.1.2).

#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace glovebox::agent {

struct ByteRange {
  std::uint64_t first = 0;
  std::uint64_t size = 0;
};

enum class RangeKind : std::uint8_t {
  kNone,           // No header, several ranges, or not understood: the whole file is sent.
  kOne,            // 206
  kUnsatisfiable,  // 416
};

RangeKind parse_range(std::string_view header, std::uint64_t file_size, ByteRange& range) noexcept;

}  // namespace glovebox::agent
