// WallTime is what people and files read: UTC in milliseconds. Waits use Deadline instead, because
// wall time jumps.

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace glovebox {

using Millis = std::chrono::milliseconds;
using WallTime = std::chrono::sys_time<Millis>;

inline std::int64_t to_unix_ms(WallTime t) { return t.time_since_epoch().count(); }
inline WallTime from_unix_ms(std::int64_t ms) { return WallTime(Millis(ms)); }

// "2026-12-01T01:19:37.042Z"
std::string to_rfc3339(WallTime t);

// RFC 3339 date-time with any offset; digits past milliseconds are dropped. Years 1970 to 9999.
std::optional<WallTime> parse_rfc3339(std::string_view text);

}  // namespace glovebox
