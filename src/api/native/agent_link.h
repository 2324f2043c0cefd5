// AgentLink: the way from the API to the agent inside a sandbox. The agent parses what clients send
// for it, because it is inside already; here requests are only let through or not.

#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "api/common/upstreams.h"
#include "async/task.h"
#include "base/result.h"
#include "net/server.h"
#include "sandbox/service.h"

namespace glovebox::api::native {

class AgentLink {
 public:
  // Borrows both.
  AgentLink(sandbox::SandboxService& service, Upstreams& upstreams)
      : service_(service), upstreams_(upstreams) {}

  // Passes the request on, asking for `target`, and the reply back. The sandbox is in use until
  // then. Keys and Glovebox-* headers do not go in; Glovebox-Default-Env is added.
  // An error means that nothing was answered yet: kNotFound, kConflict when it is not running,
  // kUnavailable when its agent does not answer, kTimeout. Once the reply has begun, a failure
  // ends the connection.
  Task<Result<void>> pass(net::Exchange& exchange, SandboxId id, std::string target,
                          std::chrono::seconds reply_timeout);

 private:
  sandbox::SandboxService& service_;
  Upstreams& upstreams_;
};

}  // namespace glovebox::api::native
