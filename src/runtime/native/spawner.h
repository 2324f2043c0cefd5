// The spawner: a small process with few descriptors, in a mount namespace that holds nothing but an
// empty read-only directory. It clones the first process of each sandbox.
//
// It is a process of its own because clone(2) copies what its caller has: mounts, descriptors,
// page tables. And because a sandbox's root is mounted over the spawner's, so that even a way out
// of that root would end in the empty directory.

#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "runtime/native/guards.h"

namespace glovebox::native {

// One launch. Descriptors are borrowed.
struct LaunchPlan {
  int root = -1;  // Detached mounts, see disk.h.
  int usr = -1;
  int dev = -1;
  int user_ns = -1;
  int listener = -1;              // Becomes descriptor 3 of the agent.
  int tracking = -1;              // Becomes descriptor 4: the agent's cgroup directory.
  std::vector<int> cgroup_tasks;  // At most kCgroupsMax.
  std::uint64_t shm_bytes = 64 << 20;
  std::uint64_t cpu_mask = 0;  // Host CPUs it may run on; 0 is all.
  uid_t uid_base = 0;          // For what is made before the user namespace is entered.
};
inline constexpr std::size_t kCgroupsMax = 3;

class Spawner {
 public:
  struct Options {
    int agent_fd = -1;  // The agent program, open for execution; borrowed.
    std::vector<sock_filter> seccomp;
    std::string scratch;  // An empty directory; hidden by a mount in the spawner's namespace only.
    Unguarded unguarded;
  };

  Spawner() = default;
  static Result<Spawner> start(const Options& options);
  Spawner(Spawner&& other) noexcept { swap(other); }
  Spawner& operator=(Spawner&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Spawner();

  // The host's pid of the new first process, which has begun to run the agent. The error of a
  // failed launch names the step. Blocks; kUnavailable when the spawner itself has died.
  Result<pid_t> launch(const LaunchPlan& plan);

 private:
  void swap(Spawner& other) noexcept {
    std::swap(socket_, other.socket_);
    std::swap(pid_, other.pid_);
  }

  UniqueFd socket_;
  pid_t pid_ = 0;
};

}  // namespace glovebox::native
