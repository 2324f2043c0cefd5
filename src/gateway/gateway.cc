#include "gateway/gateway.h"

#include "api/common/reply.h"
#include "async/coro.h"
#include "gateway/forward.h"
#include "net/relay.h"

namespace glovebox::gateway {
namespace {

using sandbox::SandboxService;
using sandbox::State;

// Lives in the frame of pass(), as long as the relay that calls dial().
struct Dialler {
  SandboxService& service;
  SandboxId id;
  std::uint16_t port;
  bool failed = false;  // The last dial did not get a connection: not the program's fault.

  Task<Result<net::Stream>> dial(Deadline deadline) {
    Result<UniqueFd> fd = co_await service.open_port(id, port, deadline);
    failed = !fd;
    if (!fd) co_return std::move(fd).error();
    const Executor executor = co_await boost::asio::this_coro::executor;
    co_return net::Stream::adopt(executor, std::move(fd).value());
  }
};

}  // namespace

// What to answer when nothing of the program's reply was passed on. Empty: it was.
struct Gateway::Outcome {
  int status = 0;
  std::string code;
  std::string message;
};

Gateway::Gateway(SandboxService& service, const api::Authenticator& auth, api::Upstreams& upstreams,
                 api::Instruments& instruments, Options options)
    : service_(service),
      auth_(auth),
      upstreams_(upstreams),
      route_(instruments.route("gateway")),
      options_(std::move(options)) {}

bool Gateway::claims(const net::RequestHead& head) const {
  return gateway::claims(head, options_.domains);
}

Result<api::Caller> Gateway::admit(const net::Exchange& exchange) const {
  // The socket is never open to all: only its owner may reach what is behind it.
  if (!options_.key_required && !exchange.peer().local) return api::Caller{};
  return auth_.check(exchange.head(), exchange.peer());
}

Task<void> Gateway::handle(net::Exchange& exchange, api::Trace& trace) {
  trace.route = &route_;
  trace.level = log::Level::kDebug;  // The program inside logs its own requests.
  Outcome outcome;
  // Who may not ask learns nothing of what is there, not even whether the question made sense.
  const Result<api::Caller> caller = admit(exchange);
  if (!caller) {
    const Error& error = caller.error();
    outcome = {api::http_status(error.code()), std::string(to_string(error.code())), error.text()};
  } else {
    trace.caller = caller.value().name;
    const Result<Destination> to = find(exchange.head(), options_.domains);
    if (to) {
      trace.sandbox = to.value().id.str();
      outcome = co_await pass(exchange, to.value(), caller.value().by);
    } else {
      const Error& error = to.error();
      outcome = {api::http_status(error.code()), std::string(to_string(error.code())),
                 error.text()};
    }
  }
  trace.error = outcome.message;
  if (outcome.status == 0 || exchange.started()) co_return;
  net::Response response = api::error_response(outcome.status, outcome.code, outcome.message);
  response.headers.add("Glovebox-Gateway-Error", outcome.code);
  Result<void> sent = co_await exchange.respond(std::move(response));
  if (!sent) trace.error = sent.error().text();
}

Task<Gateway::Outcome> Gateway::pass(net::Exchange& exchange, const Destination& to,
                                     api::Caller::By by) {
  Result<SandboxService::Use> use = service_.use(to.id);
  if (!use) co_return co_await why_not(to.id, std::move(use).error());

  ForwardedHeaders headers = forwarded_headers(exchange, to, by);
  net::RelayOptions options;
  options.target = forwarded_target(to.target);
  options.drop_headers = std::move(headers.drop);
  options.add_headers = std::move(headers.add);
  options.head_timeout = options_.response_timeout;
  options.idle = options_.idle_timeout;

  const std::shared_ptr<api::Upstream> upstream = upstreams_.get(to.id, to.port);
  Dialler dialler{service_, to.id, to.port};
  net::Dial dial = [&dialler](Deadline deadline) { return dialler.dial(deadline); };
  Result<void> done =
      co_await net::relay(exchange, upstream->pool, std::move(dial), std::move(options));
  if (done) co_return Outcome();

  const std::string port = "port " + std::to_string(to.port);
  const std::string why = ": " + done.error().text();
  if (dialler.failed) {
    // The sandbox may have ended between use() and here.
    if (Result<SandboxService::Use> still = service_.use(to.id); !still) {
      co_return co_await why_not(to.id, std::move(still).error());
    }
    if (done.error().code() == Errc::kUnavailable) {
      co_return Outcome{502, "port_closed", "nothing listens on " + port + " in the sandbox"};
    }
    co_return Outcome{503, "unavailable", port + " cannot be reached" + why};
  }
  if (done.error().code() == Errc::kTimeout) {
    co_return Outcome{504, "timeout", "what listens on " + port + " did not answer in time" + why};
  }
  co_return Outcome{502, "bad_gateway", "what listens on " + port + " gave no reply" + why};
}

// The service refuses whatever is not running; a caller needs to know what to do about it.
Task<Gateway::Outcome> Gateway::why_not(SandboxId id, Error error) {
  if (error.code() != Errc::kConflict && error.code() != Errc::kNotFound) {
    const int status = api::http_status(error.code());
    co_return Outcome{status, std::string(to_string(error.code())), error.text()};
  }
  const Result<sandbox::Sandbox> found = co_await service_.get(std::move(id));
  if (!found) {
    const Errc code = found.error().code();
    co_return Outcome{api::http_status(code), std::string(to_string(code)), "no such sandbox"};
  }
  switch (found.value().state) {
    case State::kPausing:
    case State::kPaused:
    case State::kResuming:
      co_return Outcome{409, "sandbox_paused", "the sandbox is paused; resume it first"};
    case State::kStopping:
    case State::kStopped:
    case State::kFailed:
      co_return Outcome{410, "sandbox_ended", "the sandbox has ended: " + found.value().reason};
    case State::kCreating:
    case State::kRunning: break;
  }
  co_return Outcome{409, "sandbox_not_running", error.text()};
}

}  // namespace glovebox::gateway
