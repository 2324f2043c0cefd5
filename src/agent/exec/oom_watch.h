// OomWatch tells a death by the kernel's out-of-memory killer from another SIGKILL, as far as can
// be told from inside: by a counter of such kills that rose meanwhile.

#pragma once

#include <cstdint>
#include <optional>

#include "base/deadline.h"

namespace glovebox::agent {

class OomWatch {
 public:
  // Borrowed: the delegated cgroup, -1 for none. Its memory.events counts this sandbox only; where
  // there is none (cgroup v1) the counter is the host's, so a kill elsewhere in the same time may
  // be mistaken for ours.
  explicit OomWatch(int cgroup_fd) : cgroup_fd_(cgroup_fd) {}

  // Call when a command has started. Reads the counter unless it did so in the last second.
  void begin();
  // Call when a command died by a SIGKILL that nobody here sent. True when the counter rose.
  bool kernel_killed();

 private:
  std::optional<std::uint64_t> read() const;
  int cgroup_fd_;
  std::optional<std::uint64_t> known_;
  Deadline read_at_;
};

}  // namespace glovebox::agent
