// The native runtime: sandboxes on the host's own kernel, each in namespaces of its own.
//
// A Host holds what all sandboxes share and what is costly to make: the cgroup roots, the
// template disk image, one user namespace a slot, the compiled seccomp filter, and the spawner (a
// tiny process in an empty mount namespace that clones the first process of each sandbox).
// A Box is one running sandbox. All calls block, for milliseconds; the warden is their only user.
//
// Names. `instance` is [a-z0-9-]{1,64} and names every resource of one sandbox: its cgroups, its
// disk image, its agent's socket. `slot` picks its range of 65,536 host user ids; a slot has one
// sandbox at a time. The caller records both on disk before launch(), so that erase() can find
// what a crash left behind.

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace glovebox::native {

struct Limits {
  std::uint64_t memory_bytes = 512ULL << 20;  // Memory and swap together.
  std::uint64_t disk_bytes = 2ULL << 30;      // Size of the writable layer; fixed at launch.
  std::uint32_t cpu_millis = 1000;            // 1000 is one core.
  std::uint32_t pids = 512;
};

struct HostConfig {
  std::string state_dir;         // Disk images and scratch; made 0700. Absolute.
  std::string agent_socket_dir;  // Made 0711; sockets in it belong to client_uid. Absolute.
  std::string agent_program;     // The static glovebox-agent on the host.
  uid_t client_uid = 0;          // The daemon's; may connect to agents.
  gid_t client_gid = 0;
  uid_t uid_base = 0x70000000;  // Slot n maps inside ids 0…65535 to uid_base + n * 65536.
  std::uint32_t slots = 4096;
  std::string cgroup_name = "glovebox";  // Below the caller's own cgroup, in each hierarchy.
  std::string unguarded;  // Test builds only: guards to leave off, by name, comma-separated.
};

// What identifies a running sandbox across a restart of the warden.
struct BoxIdentity {
  std::string instance;
  std::uint32_t slot = 0;
  pid_t pid = 0;                 // Of its first process, in the host's pid namespace.
  std::uint64_t start_time = 0;  // Field 22 of /proc/pid/stat: pids are reused, pairs are not.
  Limits limits;
};

struct Usage {
  std::uint64_t cpu_us = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_peak_bytes = 0;
  std::uint64_t disk_used_bytes = 0;
  std::uint32_t pids = 0;
  std::uint64_t oom_kills = 0;
};

class Box {
 public:
  virtual ~Box() = default;  // Leaves the sandbox running: a restart must not end it.

  virtual const BoxIdentity& identity() const = 0;
  // Becomes readable when the first process is dead. Borrowed.
  virtual int pidfd() const = 0;
  virtual std::string agent_socket() const = 0;

  // Memory, CPU and PIDs; disk_bytes is ignored.
  virtual Result<void> set_limits(const Limits& limits) = 0;
  virtual Result<void> freeze() = 0;  // Returns when every process has stopped, or kTimeout.
  virtual Result<void> thaw() = 0;
  virtual bool frozen() const = 0;
  virtual Result<Usage> usage() const = 0;
  // Unconnected, non-blocking TCP sockets in the sandbox's network namespace.
  virtual Result<std::vector<UniqueFd>> make_sockets(int count, bool ipv6) = 0;
  // Why the first process died, as far as can be told ("out of memory", "killed"). For people.
  virtual std::string exit_reason() const = 0;
};

class Host {
 public:
  virtual ~Host() = default;  // Ends the spawner, not the sandboxes.

  // Prepares the host; fails with what is missing and how to get it. Changes the calling process's
  // mount namespace and working directory.
  static Result<std::unique_ptr<Host>> open(HostConfig config);

  // Returns when the agent is about to answer on its socket (it listens already). On failure
  // nothing is left behind.
  virtual Result<std::unique_ptr<Box>> launch(const std::string& instance, std::uint32_t slot,
                                              const Limits& limits) = 0;
  // kNotFound when that process is no longer there.
  virtual Result<std::unique_ptr<Box>> adopt(const BoxIdentity& identity) = 0;
  // Kills and removes everything named `instance`, whether or not it runs or was ever whole.
  // Idempotent. Slow with large disk images.
  virtual Result<void> erase(const std::string& instance) = 0;
  // Every instance that has a resource of any kind on this host.
  virtual Result<std::vector<std::string>> instances() = 0;
};

}  // namespace glovebox::native
