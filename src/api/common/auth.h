// Who is asking. Over TCP an API key tells, over the Unix socket the kernel does.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/server.h"
#include "sandbox/keys.h"

namespace glovebox::api {

struct Caller {
  enum class By : std::uint8_t { kNobody, kSocket, kApiKeyHeader, kBearer };
  std::string name;  // For the log: "key-…", "uid 1000".
  By by = By::kNobody;
};

class Authenticator {
 public:
  // Borrows `keys`. Root and the daemon's own user may always use the Unix socket.
  Authenticator(sandbox::ApiKeys& keys, std::vector<std::uint32_t> socket_uids);

  // kUnauthorized without a good key; kDenied for a user who may not use the socket. Says the same
  // whatever is asked for, so that it gives nothing away of what exists.
  Result<Caller> check(const net::RequestHead& head, const net::Peer& peer) const;

 private:
  sandbox::ApiKeys& keys_;
  std::vector<std::uint32_t> socket_uids_;
};

// The headers of a request that must not go on into a sandbox because they hold a key of ours. An
// Authorization header that holds something else belongs to the program in the sandbox.
std::vector<std::string> key_headers(const net::RequestHead& head, Caller::By by);

}  // namespace glovebox::api
