#include "api/native/agent_link.h"

#include "api/common/json_writer.h"
#include "async/coro.h"
#include "base/base64.h"
#include "base/text.h"
#include "net/relay.h"

namespace glovebox::api::native {
namespace {

using sandbox::SandboxService;

// Event streams carry a heartbeat, so a silence of this length means that nobody is there.
constexpr std::chrono::seconds kIdle{3600};

Task<Result<net::Stream>> dial_agent(SandboxService& service, SandboxId id, Deadline deadline) {
  Result<UniqueFd> fd = co_await service.open_agent(std::move(id), deadline);
  if (!fd) co_return std::move(fd).error();
  const Executor executor = co_await boost::asio::this_coro::executor;
  co_return net::Stream::adopt(executor, std::move(fd).value());
}

std::string default_env_header(const sandbox::Env& env) {
  JsonWriter out;
  out.text_map(env);
  return to_base64(std::move(out).take());
}

std::vector<std::string> headers_to_drop(const net::RequestHead& head) {
  std::vector<std::string> names{"Authorization", "X-API-Key", "X-Request-ID"};
  for (const net::Header& header : head.headers) {
    if (istarts_with(header.name, "Glovebox-")) names.push_back(header.name);
  }
  return names;
}

}  // namespace

Task<Result<void>> AgentLink::pass(net::Exchange& exchange, SandboxId id, std::string target,
                                   std::chrono::seconds reply_timeout) {
  GB_CO_TRY_ASSIGN(const SandboxService::Use use, service_.use(id));
  const std::shared_ptr<Upstream> upstream = upstreams_.get(id, 0);
  if (!upstream->has_default_env) {
    if (!use.env().empty()) upstream->default_env = default_env_header(use.env());
    upstream->has_default_env = true;
  }

  net::RelayOptions options;
  options.target = std::move(target);
  options.drop_headers = headers_to_drop(exchange.head());
  options.add_headers.add("X-Request-ID", exchange.request_id());
  if (!upstream->default_env.empty()) {
    options.add_headers.add("Glovebox-Default-Env", upstream->default_env);
  }
  options.head_timeout = reply_timeout;
  options.idle = kIdle;

  SandboxService* service = &service_;
  net::Dial dial = [service, &id](Deadline deadline) { return dial_agent(*service, id, deadline); };
  Result<void> done =
      co_await net::relay(exchange, upstream->pool, std::move(dial), std::move(options));
  if (done || exchange.started()) co_return done;

  // It may have been paused or deleted meanwhile, and that is the better answer.
  if (Result<SandboxService::Use> still = service_.use(id); !still) {
    co_return std::move(still).error();
  }
  if (done.error().code() == Errc::kTimeout) co_return std::move(done).context("sandbox");
  co_return Error(Errc::kUnavailable, "sandbox is not answering: " + done.error().text());
}

}  // namespace glovebox::api::native
