// Relay: one HTTP exchange passed on to an upstream connection and back, byte for byte but for
// the hop-by-hop headers (RFC 9110, 7.6.1). Bodies stream with backpressure and bounded memory;
// large plain ones go through a pipe (splice) without being copied to this process. An upgrade
// (101) becomes a raw tunnel. Shared by the gateway to sandbox ports and the way to the agent.

#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "async/task.h"
#include "base/deadline.h"
#include "base/result.h"
#include "net/client.h"
#include "net/server.h"

namespace glovebox::net {

struct RelayOptions {
  std::string target;                     // What the upstream is asked for.
  std::vector<std::string> drop_headers;  // Ours: API keys, routing headers.
  Headers add_headers;  // X-Forwarded-For, X-Request-ID, …: replace the client's of that name.
  std::chrono::seconds head_timeout{300};  // Until the upstream's reply begins.
  std::chrono::seconds idle{3600};         // Between two bytes of a body or tunnel.
};

// Opens a fresh upstream connection.
using Dial = std::function<Task<Result<Stream>>(Deadline)>;

// Idle upstream connections of one destination, for reuse. Bounded in number and age.
class UpstreamPool {
 public:
  UpstreamPool(std::size_t idle_max, std::chrono::seconds age_max);
  ~UpstreamPool();
  struct Impl;
  std::shared_ptr<Impl> share() const { return impl_; }  // For this folder.

 private:
  std::shared_ptr<Impl> impl_;  // Relays under way may outlive the pool.
};

// Errors before the reply has started are returned and nothing was sent: the caller answers.
// Afterwards the connection is aborted, so that a cut body is never taken for a whole one.
// An idempotent request without body is repeated on a fresh connection when a pooled one turns out
// to be closed (RFC 9110, 9.2.2 allows it for no other); the rest use a pooled connection only
// after asking the kernel whether it is still open.
// Interim replies (1xx) and trailers are not passed on. `exchange` must come from Server.
Task<Result<void>> relay(Exchange& exchange, UpstreamPool& pool, Dial dial, RelayOptions options);

}  // namespace glovebox::net
