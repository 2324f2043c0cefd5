// Runtime: how the domain makes and holds sandboxes. One implementation a kind of isolation.
//
// Every call is safe to repeat: destroying what is gone succeeds, creating an id that exists is
// kConflict. A call that ends with kTimeout may still take effect; list() tells.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "async/task.h"
#include "base/deadline.h"
#include "base/result.h"
#include "base/strong_id.h"
#include "base/unique_fd.h"

namespace glovebox::sandbox {

// What stands between sandboxed code and the host kernel. The order is the ladder's.
enum class IsolationClass : std::uint8_t { kSharedKernel, kUserKernel, kVm };
std::string_view to_string(IsolationClass c) noexcept;

struct Limits {
  std::uint64_t memory_bytes = 512ULL << 20;
  std::uint64_t disk_bytes = 2ULL << 30;
  std::uint32_t cpu_millis = 1000;  // 1000 is one core.
  std::uint32_t pids = 512;
};

struct LaunchSpec {
  SandboxId id;
  std::string template_id = "host";
  Limits limits;
};

struct Live {
  SandboxId id;
  bool frozen = false;
};

struct Usage {
  std::uint64_t cpu_us = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_limit_bytes = 0;
  std::uint64_t memory_peak_bytes = 0;
  std::uint64_t disk_used_bytes = 0;
  std::uint64_t disk_limit_bytes = 0;
  std::uint32_t pids = 0;
  std::uint32_t pids_limit = 0;
  std::uint32_t cpu_millis = 0;
  std::uint64_t oom_kills = 0;
};

// Told once when a sandbox ended by itself (its first process died). `reason` is for people.
using ExitListener = std::function<void(const SandboxId&, std::string reason)>;

class Runtime {
 public:
  virtual ~Runtime() = default;

  virtual std::string_view name() const = 0;
  virtual IsolationClass isolation() const = 0;
  virtual void on_exit(ExitListener listener) = 0;

  // Ready means: its agent answers on open_agent().
  virtual Task<Result<void>> create(LaunchSpec spec, Deadline deadline) = 0;
  virtual Task<Result<void>> destroy(SandboxId id, Deadline deadline) = 0;
  virtual Task<Result<void>> freeze(SandboxId id, Deadline deadline) = 0;
  virtual Task<Result<void>> thaw(SandboxId id, Deadline deadline) = 0;
  virtual Task<Result<Usage>> usage(SandboxId id, Deadline deadline) = 0;
  virtual Task<Result<std::vector<Live>>> list(Deadline deadline) = 0;

  // A connected, non-blocking stream socket to the agent's HTTP server.
  virtual Task<Result<UniqueFd>> open_agent(SandboxId id, Deadline deadline) = 0;
  // The same to 127.0.0.1:port inside the sandbox. kUnavailable when nothing listens there.
  virtual Task<Result<UniqueFd>> open_port(SandboxId id, std::uint16_t port, Deadline deadline) = 0;
};

}  // namespace glovebox::sandbox
