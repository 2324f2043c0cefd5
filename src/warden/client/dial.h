// Connecting to what is inside a sandbox.

#pragma once

#include <cstdint>
#include <string>

#include "async/task.h"
#include "base/deadline.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace glovebox::warden {

enum class Family : bool { kV4, kV6 };

// A connected, non-blocking stream socket. kUnavailable when nobody listens at `path`.
Task<Result<UniqueFd>> connect_path(Executor executor, std::string path, Deadline deadline);

// Connects `socket`, which is non-blocking and of that family, to the loopback address of its own
// network namespace. kUnavailable when nothing listens on the port.
Task<Result<UniqueFd>> connect_port(Executor executor, UniqueFd socket, Family family,
                                    std::uint16_t port, Deadline deadline);

}  // namespace glovebox::warden
