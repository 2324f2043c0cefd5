// Exchange: requests and replies over whichever connection to the warden there is.

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/task.h"
#include "base/deadline.h"
#include "base/log.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "warden/client/link.h"
#include "warden/client/runtime.h"
#include "warden/protocol/messages.h"

namespace glovebox::warden {

class Exchange {
 public:
  // What happens on a connection, in its order, synchronously; must not block.
  struct Events {
    // A new connection serves, and this is all that the warden holds.
    std::function<void(std::vector<ListEntry>)> connected;
    std::function<void(ExitedEvent)> exited;
    // A create succeeded. Told before any later event of that sandbox.
    std::function<void(std::string name, CreateReply)> created;
  };

  Exchange(const Executor& executor, ClientConfig config, log::Logger& log, Events events);
  ~Exchange();

  // Connects, serves, and connects again, until close().
  Task<void> run();
  void close();
  bool connected() const noexcept;

  struct Reply {
    std::string payload;
    std::vector<UniqueFd> fds;
  };
  // The reply, or the warden's error. Sends again after a lost connection. `name` is for creates.
  // `done_already` is asked before it sends again; true ends the call with an empty reply.
  Task<Result<Reply>> call(Op op, std::string payload, Deadline deadline, std::string name = {},
                           std::function<bool()> done_already = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace glovebox::warden
