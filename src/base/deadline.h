// Every wait has a Deadline: a point on the monotonic clock, never a duration, so that it can be
// handed down a chain of calls without being restarted at each one.

#pragma once

#include <chrono>

namespace glovebox {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

inline Deadline after(Clock::duration d) { return Clock::now() + d; }

}  // namespace glovebox
