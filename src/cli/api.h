// Api: calls to the daemon, over one connection that is kept between calls.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "async/task.h"
#include "base/redacted.h"
#include "base/result.h"
#include "cli/endpoint.h"
#include "cli/interrupt.h"
#include "net/client.h"
#include "net/http.h"
#include "net/stream.h"

namespace glovebox::cli {

inline constexpr std::chrono::seconds kCallTimeout{60};
// A full node queues creates fairly; the daemon's own deadline comes first.
inline constexpr std::chrono::seconds kCreateTimeout{900};
// Between two bytes of a stream that may be silent for long: a build, a sleeping shell.
inline constexpr std::chrono::hours kStreamIdle{24 * 30};

class Api {
 public:
  // Tries the endpoints in their order until one connects, then stays with it. `interrupt` must
  // outlive this.
  Api(std::vector<Endpoint> endpoints, Redacted key, Interrupt& interrupt);
  ~Api();

  // The reply's body when its status is 2xx, else the error that it holds. `target` starts at
  // "/api/v1" or "/health".
  Task<Result<std::string>> call(std::string method, std::string target, std::string body = {},
                                 Clock::duration timeout = kCallTimeout);
  // The same with further request headers.
  Task<Result<std::string>> call_with(std::string method, std::string target, net::Headers more,
                                      std::string body, Clock::duration timeout);

  // A connection of the caller's own, for streams.
  Task<Result<net::Stream>> dial();
  // Host, User-Agent and the key.
  net::Headers headers() const;
  std::string host() const;
  std::string full_target(std::string_view target) const;
  // Of the endpoint that connected last.
  std::string address() const;

  Interrupt& interrupt() noexcept { return interrupt_; }

 private:
  Task<Result<void>> ensure_connected();

  std::vector<Endpoint> endpoints_;
  std::optional<Endpoint> chosen_;
  Redacted key_;
  Interrupt& interrupt_;
  std::unique_ptr<net::ClientConnection> connection_;
};

// What an error reply says. Bodies that are not the daemon's JSON give the status alone.
Error error_of_reply(int status, std::string_view body);

}  // namespace glovebox::cli
