// clone(2) in the manner of vfork(2): the child runs on the caller's stack while the caller waits
// for its execve or exit. libc's wrappers cannot start a child in a cgroup.

#pragma once

#include <sys/types.h>

namespace glovebox::agent {

// Runs `child(context)`, which must not return, in a new process. `cgroup_fd` of -1 means the
// caller's cgroup. Returns the child's pid or -errno.
long clone_like_vfork(void (*child)(void*), void* context, int cgroup_fd) noexcept;

}  // namespace glovebox::agent
