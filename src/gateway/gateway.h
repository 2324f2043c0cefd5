// Gateway: from the outside to a port inside a sandbox. It decides nothing but where a request goes
// and whether it may; bodies and upgraded connections pass through net::relay.
//
// Its own errors are JSON with a code for each cause: not_found 404, sandbox_paused 409,
// sandbox_ended 410, sandbox_not_running 409, port_closed 502, bad_gateway 502, timeout 504,
// unauthorized 401, denied 403, invalid 400, unavailable 503. They carry Glovebox-Gateway-Error
// with the code, which a reply of the program inside never does.

#pragma once

#include <chrono>
#include <memory>

#include "api/common/auth.h"
#include "api/common/front.h"
#include "api/common/upstreams.h"
#include "gateway/destination.h"
#include "sandbox/service.h"

namespace glovebox::gateway {

struct Options {
  Domains domains;
  bool key_required = true;
  std::chrono::seconds response_timeout{300};
  std::chrono::seconds idle_timeout{3600};
};

class Gateway final : public api::Adapter {
 public:
  // Borrows all but `options`.
  Gateway(sandbox::SandboxService& service, const api::Authenticator& auth,
          api::Upstreams& upstreams, api::Instruments& instruments, Options options);

  bool claims(const net::RequestHead& head) const override;
  Task<void> handle(net::Exchange& exchange, api::Trace& trace) override;

 private:
  struct Outcome;
  Result<api::Caller> admit(const net::Exchange& exchange) const;
  Task<Outcome> pass(net::Exchange& exchange, const Destination& to, api::Caller::By by);
  Task<Outcome> why_not(SandboxId id, Error error);

  sandbox::SandboxService& service_;
  const api::Authenticator& auth_;
  api::Upstreams& upstreams_;
  api::RouteMetrics& route_;
  Options options_;
};

}  // namespace glovebox::gateway
