// Warden: everything between main() and the host: the lock, the records, the keeper, the socket
// and the loop that serves them, requests first.

#pragma once

#include <string>

#include "base/log.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "runtime/native/host.h"
#include "warden/keeper.h"
#include "warden/server.h"

namespace glovebox::warden {

struct WardenConfig {
  std::string state_dir;  // Must exist.
  KeeperConfig keeper;
  ServerConfig server;
  Clock::duration stop_within = std::chrono::seconds(5);
};

// Held for as long as a warden uses a state directory. kConflict when another one does, and has
// not ended by the deadline: a killed one may take a moment to be gone.
Result<UniqueFd> lock_state_dir(const std::string& state_dir, Deadline deadline);

// Serves until `stop_fd` becomes readable, then returns with all clients' sandboxes running.
// `ready` is called once, when the socket answers.
Result<void> run(const WardenConfig& config, native::Host& host, int stop_fd, log::Logger& log,
                 const std::function<void()>& ready);

}  // namespace glovebox::warden
