// Streams what a command does as server-sent events until it ends or the client leaves.

#pragma once

#include <cstdint>
#include <memory>

#include "agent/exec/process.h"
#include "async/task.h"
#include "base/result.h"
#include "net/server.h"

namespace glovebox::agent {

enum class Follow : bool { kNo, kYes };

struct StreamOptions {
  std::uint64_t from = 0;
  Follow follow = Follow::kYes;     // kNo: ends at what there is now.
  bool announce_start = false;      // Begins with a start event.
  bool kill_on_disconnect = false;  // The command and all it started.
};

Task<Result<void>> stream_events(net::Exchange& exchange, std::shared_ptr<Process> process,
                                 StreamOptions options);

}  // namespace glovebox::agent
