// The cgroups of sandboxes, in whichever layout the host has.
//
// The version 2 hierarchy tracks: a sandbox's processes are killed, frozen and counted there, also
// where the controllers live in version 1 (its core needs no controller). Limits are set where the
// controllers are.

#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "runtime/native/host.h"

namespace glovebox::native {

// One directory a hierarchy, shared by all sandboxes.
struct CgroupRoots {
  UniqueFd tracking;  // Version 2.
  UniqueFd memory;    // Empty when version 2 has the controllers.
  UniqueFd cpu;
  UniqueFd pids;
  std::string description;  // "v2" or "v1 with v2 for tracking"

  bool unified() const noexcept { return !memory; }
  // `scratch` is an empty directory in the caller's own mount namespace: cgroup2 is mounted there
  // where the host has not.
  static Result<CgroupRoots> open(const std::string& name, const std::string& scratch);
};

// The groups of one instance. Holds no descriptor, so it costs nothing to keep.
class BoxCgroups {
 public:
  // Borrows `roots`.
  BoxCgroups(const CgroupRoots& roots, std::string instance)
      : roots_(&roots), instance_(std::move(instance)) {}

  Result<void> make();
  Result<void> set_memory(std::uint64_t bytes);
  Result<void> set_cpu(std::uint32_t millis);
  Result<void> set_pids(std::uint32_t max);
  // Lets `uid` make groups below, and nothing else: the agent gives each command one.
  Result<void> delegate(uid_t uid, gid_t gid);

  // One a version 1 hierarchy; writing "0" moves the writing thread in. These are the `tasks`
  // files: moving a whole process (`cgroup.procs`) waits for an RCU grace period, some 15 ms.
  Result<std::vector<UniqueFd>> open_tasks();
  // The tracking directory: the first process is born in it, and the agent holds it.
  Result<UniqueFd> open_tracking();

  Result<void> kill_all();
  Result<void> set_frozen(bool frozen, std::chrono::milliseconds patience);
  // True in time when no process is left.
  bool wait_empty(std::chrono::milliseconds patience);
  // Removes every group of the instance; they must be empty. Succeeds when there are none.
  Result<void> remove();

  Result<std::vector<pid_t>> processes() const;
  Usage usage() const;

 private:
  Result<void> write(int root, const char* file, std::string_view text);

  const CgroupRoots* roots_;
  std::string instance_;
};

}  // namespace glovebox::native
