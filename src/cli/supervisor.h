// Supervisor keeps programs running: starts them, starts again what has crashed (ever more slowly,
// and not for ever), stops them in reverse order.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/task.h"
#include "base/result.h"

namespace glovebox::cli {

struct Identity {
  uid_t uid = 0;
  gid_t gid = 0;
};

struct ProgramSpec {
  std::string name;                // For messages.
  std::vector<std::string> argv;   // argv[0] is the program's path.
  std::optional<Identity> run_as;  // With no supplementary groups. Empty: as we are.
};

struct SupervisorConfig {
  std::chrono::milliseconds backoff_first{100};
  std::chrono::milliseconds backoff_max{5000};
  int crashes_max = 8;  // In `crash_window`; one more and it gives up.
  std::chrono::seconds crash_window{60};
  std::chrono::milliseconds stop_grace{15000};  // From SIGTERM to SIGKILL.
};

class Supervisor {
 public:
  // `report` gets a line about each thing that goes wrong; `on_give_up` is called once.
  Supervisor(const Executor& executor, SupervisorConfig config,
             std::function<void(const std::string&)> report, std::function<void()> on_give_up);
  // Kills what still runs.
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  Result<void> start(ProgramSpec spec);
  // To every program.
  void signal_all(int signal);
  // SIGTERM to the last one started, then, when it has ended, to the one before, and so on.
  Task<void> stop();
  // Cuts a stop() short.
  void kill_all();

  bool gave_up() const noexcept;
  int running() const noexcept;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace glovebox::cli
