#include "api/native/native.h"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <variant>

#include "api/common/json_writer.h"
#include "api/common/reply.h"
#include "api/native/codec.h"
#include "async/coro.h"
#include "net/url.h"

namespace glovebox::api::native {
namespace {

using sandbox::Sandbox;

constexpr std::string_view kSandboxes = "/api/v1/sandboxes/";
constexpr std::chrono::seconds kAgentReply{300};
// As long as a command may run: whoever asks without a stream waits for its end.
constexpr std::chrono::seconds kAgentWait{std::chrono::hours(24 * 30)};

std::vector<RouteSpec> all_specs() {
  std::vector<RouteSpec> specs;
  for (const RouteEntry& entry : routes()) specs.push_back(entry.spec);
  return specs;
}

std::string_view path_of(std::string_view target) { return target.substr(0, target.find('?')); }

// A whole reply without a body of its own to speak of.
net::Response text_response(std::string_view type, std::string body) {
  net::Response response;
  response.headers.add("Content-Type", std::string(type));
  response.body = std::move(body);
  return response;
}

net::Response sandbox_response(int status, const Sandbox& sandbox) {
  return json_response(status, encode(sandbox));
}

bool needs_key(Action action) {
  return action != Action::kHealth && action != Action::kReady && action != Action::kOpenApi;
}

Task<Result<std::string>> read_json(net::Exchange& exchange, std::size_t bytes_max) {
  Result<std::string> body = co_await exchange.read_whole_body(bytes_max);
  if (!body && body.error().code() == Errc::kExhausted) {
    co_return Error(Errc::kTooLarge, "body is over " + std::to_string(bytes_max) + " bytes");
  }
  co_return body;
}

}  // namespace

// One request, while it is worked on.
struct NativeApi::Call {
  net::Exchange& exchange;
  Trace& trace;
  Action action;
  SandboxId id;  // Empty where the route has none.
};

NativeApi::NativeApi(sandbox::SandboxService& service, const Authenticator& auth,
                     Upstreams& upstreams, Instruments& instruments, metrics::Registry& registry,
                     Options options)
    : service_(service),
      auth_(auth),
      upstreams_(upstreams),
      registry_(registry),
      options_(std::move(options)),
      agent_(service, upstreams),
      specs_(all_specs()),
      table_(specs_) {
  for (const RouteSpec& spec : specs_) {
    const std::string name = std::string(spec.method) + " " + std::string(spec.pattern);
    route_metrics_.push_back(&instruments.route(name));
  }
}

Task<void> NativeApi::handle(net::Exchange& exchange, Trace& trace) {
  const net::RequestHead& head = exchange.head();
  const auto match = table_.find(head.method, path_of(head.target));
  const bool found = match && match->index;
  const Action action = found ? routes()[*match->index].action : Action::kGet;
  if (found) trace.route = route_metrics_[*match->index];

  std::optional<net::Response> reply;
  // Whoever may not ask learns neither which routes nor which sandboxes there are.
  if (!found || needs_key(action)) {
    Result<Caller> caller = auth_.check(head, exchange.peer());
    if (caller) {
      trace.caller = std::move(caller).value().name;
    } else {
      trace.error = caller.error().text();
      reply = error_response(caller.error());
    }
  }
  if (!reply && !match) reply = error_response(404, "not_found", "no such route");
  if (!reply && !found) {
    reply = error_response(405, "invalid", "this route takes " + match->allow);
    reply->headers.add("Allow", match->allow);
  }
  if (!reply) {
    Call call{exchange, trace, action, {}};
    const bool has_id = head.target.starts_with(kSandboxes);
    auto id = has_id ? parse_sandbox_id(match->params[0]) : std::nullopt;
    Result<net::Response> result = Error(Errc::kNotFound, "no such sandbox");
    if (id) {
      call.id = *std::move(id);
      trace.sandbox = call.id.str();
    }
    if (!has_id || !call.id.empty()) result = co_await respond(call);
    if (exchange.started()) {
      if (!result) trace.error = result.error().text();
      co_return;
    }
    if (!result) trace.error = result.error().text();
    reply = result ? std::move(result).value() : refuse(std::move(result).error());
  }
  Result<void> sent = co_await exchange.respond(*std::move(reply));
  if (!sent && trace.error.empty()) trace.error = sent.error().text();
}

net::Response NativeApi::refuse(Error error) const {
  std::chrono::seconds retry{0};
  if (error.code() == Errc::kExhausted) retry = service_.retry_after();
  if (error.code() == Errc::kUnavailable) retry = std::chrono::seconds(1);
  return error_response(error, retry);
}

Task<Result<net::Response>> NativeApi::respond(Call& call) {
  switch (call.action) {
    case Action::kHealth: co_return json_response(200, "{\"status\":\"ok\"}\n");
    case Action::kReady: co_return ready();
    case Action::kMetrics: co_return metrics();
    case Action::kOpenApi: co_return text_response("application/yaml", std::string(openapi_yaml()));
    case Action::kCreate: co_return co_await create(call);
    case Action::kList: co_return co_await list(call);
    case Action::kGet: {
      GB_CO_TRY_ASSIGN(const Sandbox sandbox, co_await service_.get(call.id));
      co_return sandbox_response(200, sandbox);
    }
    case Action::kDelete: co_return co_await destroy(call);
    case Action::kExtend: co_return co_await extend(call);
    case Action::kPause:
    case Action::kResume: co_return co_await pause_or_resume(call);
    case Action::kUsage: {
      GB_CO_TRY_ASSIGN(const sandbox::Usage usage, co_await service_.usage(call.id));
      co_return json_response(200, encode(usage));
    }
    case Action::kAgent:
    case Action::kAgentWait: co_return co_await to_agent(call);
  }
  co_return Error(Errc::kInternal, "route without an action");
}

Task<Result<net::Response>> NativeApi::create(Call& call) {
  net::Exchange& exchange = call.exchange;
  GB_CO_TRY_ASSIGN(const std::string body, co_await read_json(exchange, options_.json_bytes_max));
  GB_CO_TRY_ASSIGN(sandbox::CreateSpec spec, decode_create(body));
  std::string key(exchange.head().headers.get("Idempotency-Key"));
  if (key.empty() && exchange.head().headers.has("Idempotency-Key")) {
    co_return Error(Errc::kInvalid, "Idempotency-Key must have 1 to 255 bytes");
  }
  // Whoever hangs up while it waits gives up its place; see SandboxService about what is left.
  using boost::asio::experimental::awaitable_operators::operator||;
  std::variant<Result<Sandbox>, std::monostate> first =
      co_await (service_.create(std::move(spec), std::move(key)) || exchange.wait_client_gone());
  if (first.index() == 1) co_return Error(Errc::kUnavailable, "the client went away");
  Result<Sandbox>& made = std::get<0>(first);
  if (!made) co_return std::move(made).error();
  call.trace.sandbox = made.value().id.str();
  net::Response response = sandbox_response(201, made.value());
  response.headers.add("Location", std::string(kSandboxes) + made.value().id.str());
  co_return response;
}

Task<Result<net::Response>> NativeApi::list(Call& call) {
  GB_CO_TRY_ASSIGN(const net::Target target, net::parse_target(call.exchange.head().target));
  GB_CO_TRY_ASSIGN(ListQuery query, decode_list(target.params));
  GB_CO_TRY_ASSIGN(
      const sandbox::Page page,
      co_await service_.list(std::move(query.filter), query.limit, std::move(query.cursor)));
  co_return json_response(200, encode(page));
}

Task<Result<net::Response>> NativeApi::destroy(Call& call) {
  GB_CO_TRY(co_await service_.destroy(call.id));
  upstreams_.drop(call.id);
  net::Response response;
  response.status = 204;
  co_return response;
}

Task<Result<net::Response>> NativeApi::extend(Call& call) {
  GB_CO_TRY_ASSIGN(const std::string body,
                   co_await read_json(call.exchange, options_.json_bytes_max));
  GB_CO_TRY_ASSIGN(const auto until, decode_extend(body));
  if (const Millis* timeout = std::get_if<Millis>(&until)) {
    GB_CO_TRY_ASSIGN(const Sandbox sandbox, co_await service_.extend(call.id, *timeout));
    co_return sandbox_response(200, sandbox);
  }
  const WallTime at = std::get<WallTime>(until);
  GB_CO_TRY_ASSIGN(const Sandbox sandbox, co_await service_.extend_until(call.id, at));
  co_return sandbox_response(200, sandbox);
}

Task<Result<net::Response>> NativeApi::pause_or_resume(Call& call) {
  GB_CO_TRY_ASSIGN(const std::string body,
                   co_await read_json(call.exchange, options_.json_bytes_max));
  GB_CO_TRY(decode_nothing(body));
  if (call.action == Action::kPause) {
    GB_CO_TRY_ASSIGN(const Sandbox sandbox, co_await service_.pause(call.id));
    co_return sandbox_response(200, sandbox);
  }
  GB_CO_TRY_ASSIGN(const Sandbox sandbox, co_await service_.resume(call.id));
  co_return sandbox_response(200, sandbox);
}

Task<Result<net::Response>> NativeApi::to_agent(Call& call) {
  // "/api/v1/sandboxes/ID/REST" is asked of the agent as "/v1/REST", byte for byte.
  const std::string_view target = call.exchange.head().target;
  std::string inside = "/v1";
  inside += target.substr(kSandboxes.size() + call.id.str().size());
  const auto timeout = call.action == Action::kAgentWait ? kAgentWait : kAgentReply;
  GB_CO_TRY(co_await agent_.pass(call.exchange, call.id, std::move(inside), timeout));
  co_return net::Response();  // Not sent: the agent's was.
}

net::Response NativeApi::ready() const {
  JsonWriter out;
  bool all = true;
  out.begin_object().key("checks").begin_array();
  for (const ReadyCheck& check : options_.checks) {
    const std::optional<std::string> why_not = check.why_not();
    all = all && !why_not;
    out.begin_object().key("name").text(check.name).key("ok").boolean(!why_not);
    out.key("detail").text(why_not.value_or("")).end_object();
  }
  out.end_array().key("status").text(all ? "ready" : "not_ready").end_object();
  return json_response(all ? 200 : 503, std::move(out).take() + "\n");
}

net::Response NativeApi::metrics() const {
  return text_response("text/plain; version=0.0.4; charset=utf-8", registry_.expose());
}

}  // namespace glovebox::api::native
