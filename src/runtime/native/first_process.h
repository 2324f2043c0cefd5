// The steps by which a freshly cloned process becomes the first process of a sandbox.
//
// They run in the spawner's own memory (CLONE_VM) while it waits (CLONE_VFORK): nothing here may
// allocate, lock or return on success. docs/threat-model.md lists the same steps in words.

#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "runtime/native/guards.h"

namespace glovebox::native {

struct FirstProcess {
  int root, usr, dev, user_ns, listener, tracking;
  int cgroup_tasks[3];
  std::size_t cgroup_count;
  int agent;
  std::uint64_t shm_bytes;
  std::uint64_t cpu_mask;
  uid_t uid_base;
  const sock_filter* seccomp;
  unsigned short seccomp_length;
  Unguarded unguarded;

  // Written by the child, read by the spawner when it goes on.
  const char* failed_step;
  int failed_errno;
};

// Returns only when a step failed, with failed_step set.
void become_first_process(FirstProcess& first_process);

}  // namespace glovebox::native
