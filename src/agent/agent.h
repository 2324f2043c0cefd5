// The agent: process 1 of a sandbox, or an ordinary process in tests. Serves HTTP on a listening
// Unix socket, runs commands, moves files, reaps orphans. Holds no secret and knows no other
// sandbox.

#pragma once

#include "base/result.h"
#include "base/unique_fd.h"

namespace glovebox::agent {

struct AgentOptions {
  UniqueFd listener;  // A listening stream socket.
  UniqueFd cgroup;    // The delegated cgroup directory; may be empty.
};

// Runs until SIGTERM where this is not process 1, else for ever. Returns early on an error only.
Result<void> run_agent(AgentOptions options);

}  // namespace glovebox::agent
