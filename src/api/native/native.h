// The native API under /api/v1, with /health, /ready, /metrics and /openapi.yaml: an adapter over
// SandboxService that decides nothing. docs/api/openapi.yaml describes it.

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/common/auth.h"
#include "api/common/front.h"
#include "api/common/routes.h"
#include "api/native/agent_link.h"
#include "api/native/routes.h"
#include "sandbox/service.h"

namespace glovebox::api::native {

// One line of /ready. Must not throw or block.
struct ReadyCheck {
  std::string name;
  std::function<std::optional<std::string>()> why_not;  // Empty: it is ready.
};

struct Options {
  std::size_t json_bytes_max = 1 << 20;
  std::vector<ReadyCheck> checks;
};

class NativeApi final : public Adapter {
 public:
  // Borrows all but `options`.
  NativeApi(sandbox::SandboxService& service, const Authenticator& auth, Upstreams& upstreams,
            Instruments& instruments, metrics::Registry& registry, Options options);

  // Everything that nobody else claims: what is not a route is answered 404 here.
  bool claims(const net::RequestHead&) const override { return true; }
  Task<void> handle(net::Exchange& exchange, Trace& trace) override;

 private:
  struct Call;
  Task<Result<net::Response>> respond(Call& call);
  Task<Result<net::Response>> create(Call& call);
  Task<Result<net::Response>> list(Call& call);
  Task<Result<net::Response>> destroy(Call& call);
  Task<Result<net::Response>> extend(Call& call);
  Task<Result<net::Response>> pause_or_resume(Call& call);
  Task<Result<net::Response>> to_agent(Call& call);
  net::Response ready() const;
  net::Response metrics() const;
  net::Response refuse(Error error) const;

  sandbox::SandboxService& service_;
  const Authenticator& auth_;
  Upstreams& upstreams_;
  metrics::Registry& registry_;
  Options options_;
  AgentLink agent_;
  std::vector<RouteSpec> specs_;
  RouteTable table_;
  std::vector<RouteMetrics*> route_metrics_;
};

// The embedded docs/api/openapi.yaml.
std::string_view openapi_yaml() noexcept;

}  // namespace glovebox::api::native
