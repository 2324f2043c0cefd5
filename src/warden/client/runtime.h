// WardenRuntime: the daemon's way to the native runtime, through the warden's socket.
//
// It keeps one connection and makes a new one when it ends. Every operation may safely be done
// twice, so a request whose connection ended is sent again over the next one, within its
// deadline. Without a connection requests wait for one; kUnavailable says that none came in time.
// Sandboxes that vanished while there was no connection are told to the exit listener.
//
// Use from one thread, that of the executor.

#pragma once

#include <memory>
#include <string>

#include "async/task.h"
#include "base/log.h"
#include "sandbox/runtime.h"

namespace glovebox::warden {

struct ClientConfig {
  std::string socket_path;
  std::size_t in_flight_max = 64;  // Requests at the warden; more wait their turn here.
  std::size_t waiting_max = 4096;  // Beyond these: kExhausted at once.
  Clock::duration reconnect_min = std::chrono::milliseconds(10);
  Clock::duration reconnect_max = std::chrono::seconds(1);
  Clock::duration handshake_within = std::chrono::seconds(10);
  // Sockets fetched ahead for open_port(), over all sandboxes; each is a descriptor.
  std::size_t sockets_kept_max = 1024;
};

class WardenRuntime final : public sandbox::Runtime {
 public:
  // Borrows `log`.
  WardenRuntime(const Executor& executor, ClientConfig config, log::Logger& log);
  // After close(), or when nothing was started.
  ~WardenRuntime() override;

  // Begins to connect, and to keep connected.
  void start();
  // Ends everything in flight with kUnavailable; returns when nothing runs any more.
  Task<void> close();
  bool connected() const noexcept;

  std::string_view name() const override { return "native"; }
  sandbox::IsolationClass isolation() const override {
    return sandbox::IsolationClass::kSharedKernel;
  }
  void on_exit(sandbox::ExitListener listener) override;
  Task<Result<void>> create(sandbox::LaunchSpec spec, Deadline deadline) override;
  Task<Result<void>> destroy(SandboxId id, Deadline deadline) override;
  Task<Result<void>> freeze(SandboxId id, Deadline deadline) override;
  Task<Result<void>> thaw(SandboxId id, Deadline deadline) override;
  Task<Result<sandbox::Usage>> usage(SandboxId id, Deadline deadline) override;
  Task<Result<std::vector<sandbox::Live>>> list(Deadline deadline) override;
  Task<Result<UniqueFd>> open_agent(SandboxId id, Deadline deadline) override;
  Task<Result<UniqueFd>> open_port(SandboxId id, std::uint16_t port, Deadline deadline) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace glovebox::warden
