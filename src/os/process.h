// Facts about a process that outlive the reuse of its number.

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/result.h"

namespace glovebox::os {

// Field 22 of /proc/pid/stat, in clock ticks since boot. A pid and its start time name one process.
Result<std::uint64_t> process_start_time(pid_t pid);

}  // namespace glovebox::os
