// A pseudo-terminal from the sandbox's own /dev/ptmx.

#pragma once

#include "agent/common/users.h"
#include "agent/exec/exec_request.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace glovebox::agent {

struct Pty {
  UniqueFd master;  // Non-blocking.
  UniqueFd slave;   // Owned by the user.

  static Result<Pty> open(const User& user, WindowSize size);
};

Result<void> resize_pty(int master_fd, WindowSize size);

}  // namespace glovebox::agent
