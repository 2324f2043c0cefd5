// Starts one program: vfork-style, so that neither memory is copied nor a page fault paid, and
// with everything prepared beforehand, because between clone and execve the child shares our
// memory and may make nothing but system calls.

#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "agent/common/users.h"
#include "base/result.h"

namespace glovebox::agent {

struct ChildSpec {
  std::vector<std::string> candidates;  // Paths to try in order.
  std::vector<std::string> args;
  bool args0_is_path = false;  // args[0] becomes the candidate that is being run.
  std::vector<std::string> env;
  std::string cwd;
  bool cwd_may_be_missing = false;  // Then "/" is taken.
  User user;
  // Borrowed; all above 2. They become 0, 1, 2; nothing else stays open.
  int stdin_fd = -1;
  int stdout_fd = -1;
  int stderr_fd = -1;
  bool terminal = false;  // stdin_fd is a terminal, which becomes the controlling one.
  int cgroup_fd = -1;     // Directory of the cgroup to start in; -1 for ours.
};

// Returns when the program runs, as leader of its own session, with default signals, or when it
// cannot: kNotFound names a program that is not there, kInvalid a directory that is not.
Result<pid_t> spawn_child(const ChildSpec& spec);

// Once, at start: what all children inherit from this process (umask, no core files).
void prepare_for_children();

}  // namespace glovebox::agent
