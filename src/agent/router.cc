#include "agent/router.h"

#include <charconv>
#include <exception>
#include <utility>

#include "agent/common/json_writer.h"
#include "agent/common/reply.h"
#include "agent/ports.h"
#include "async/coro.h"

namespace glovebox::agent {
namespace {

Task<Result<void>> refuse(net::Exchange& exchange, std::string allowed) {
  const Error error(Errc::kInvalid, exchange.head().method + " is not for this path");
  net::Response reply = error_reply(error);
  reply.status = 405;
  reply.headers.add("Allow", std::move(allowed));
  Result<void> sent = co_await exchange.respond(std::move(reply));
  co_return sent;
}

Task<Result<void>> answer_health(net::Exchange& exchange) {
  net::Response reply = json_reply(200, R"({"status":"ok"})");
  Result<void> sent = co_await exchange.respond(std::move(reply));
  co_return sent;
}

Task<Result<void>> answer_ports(net::Exchange& exchange) {
  JsonWriter json;
  json.begin('{').key("ports").begin('[');
  for (const ListeningPort& port : listening_ports()) {
    json.begin('{').key("port").number(port.port).key("address").string(port.address);
    if (port.pid) json.key("pid").number(*port.pid);
    json.end('}');
  }
  json.end(']').end('}');
  net::Response reply = json_reply(200, std::move(json).take());
  Result<void> sent = co_await exchange.respond(std::move(reply));
  co_return sent;
}

Result<pid_t> parse_pid(const std::string& text) {
  pid_t pid = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (ec != std::errc() || end != text.data() + text.size() || pid < 1) {
    return Error(Errc::kNotFound, "there is no process \"" + text + "\"");
  }
  return pid;
}

Task<Result<void>> no_such_route() {
  co_return Error(Errc::kNotFound, "there is nothing at this path");
}

Task<Result<void>> fail(Error error) { co_return error; }

}  // namespace

Task<void> Router::handle(net::Exchange& exchange) {
  Result<void> done;
  try {
    done = co_await route(exchange);
  } catch (const std::exception& e) {
    // Only the standard library throws here, for want of memory above all.
    done = Error(Errc::kInternal, e.what());
  }
  if (done) co_return;
  if (exchange.started()) {
    exchange.abort();
    co_return;
  }
  net::Response reply = error_reply(done.error());
  [[maybe_unused]] Result<void> sent = co_await exchange.respond(std::move(reply));
}

Task<Result<void>> Router::route(net::Exchange& exchange) {
  GB_CO_TRY_ASSIGN(net::Target target, net::parse_target(exchange.head().target));
  Task<Result<void>> task = dispatch(exchange, std::move(target));
  Result<void> done = co_await std::move(task);
  co_return done;
}

// Not a coroutine: it only picks one.
Task<Result<void>> Router::dispatch(net::Exchange& exchange, net::Target target) {
  const std::vector<std::string> path = target.segments;
  const std::string& method = exchange.head().method;
  if (path.size() < 2 || path[0] != "v1") return no_such_route();
  const std::string& noun = path[1];
  if (noun == "files") return dispatch_file(exchange, std::move(target));
  if (noun == "processes" && path.size() > 2) {
    const Result<pid_t> pid = parse_pid(path[2]);
    if (!pid) return fail(pid.error());
    return dispatch_process(exchange, pid.value(), std::move(target));
  }
  if (path.size() > 2) return no_such_route();
  if (noun == "exec") {
    if (method == "POST") return exec_.exec(exchange);
    if (method == "GET") return exec_.exec_websocket(exchange);
    return refuse(exchange, "GET, POST");
  }
  if (noun != "processes" && noun != "ports" && noun != "health") return no_such_route();
  if (method != "GET") return refuse(exchange, "GET");
  if (noun == "processes") return exec_.list(exchange);
  return noun == "ports" ? answer_ports(exchange) : answer_health(exchange);
}

Task<Result<void>> Router::dispatch_process(net::Exchange& exchange, pid_t pid,
                                            net::Target target) {
  const std::string& method = exchange.head().method;
  const std::string verb = target.segments.size() > 3 ? target.segments[3] : "";
  if (target.segments.size() > 4) return no_such_route();
  if (verb.empty() && target.segments.size() == 3) {
    return method == "GET" ? exec_.get(exchange, pid) : refuse(exchange, "GET");
  }
  if (verb == "output") {
    if (method != "GET") return refuse(exchange, "GET");
    return exec_.output(exchange, pid, std::move(target));
  }
  if (verb != "stdin" && verb != "signal" && verb != "resize") return no_such_route();
  if (method != "POST") return refuse(exchange, "POST");
  if (verb == "stdin") return exec_.write_stdin(exchange, pid, std::move(target));
  return verb == "signal" ? exec_.signal(exchange, pid) : exec_.resize(exchange, pid);
}

Task<Result<void>> Router::dispatch_file(net::Exchange& exchange, net::Target target) {
  using Handler = Task<Result<void>> (FileRoutes::*)(net::Exchange&, net::Target);
  struct Route {
    std::string_view method;
    std::string_view verb;  // What follows files/.
    Handler handler;
  };
  static constexpr Route kRoutes[] = {
      {"GET", "", &FileRoutes::read},        {"HEAD", "", &FileRoutes::read},
      {"PUT", "", &FileRoutes::write},       {"DELETE", "", &FileRoutes::remove},
      {"GET", "stat", &FileRoutes::stat},    {"GET", "list", &FileRoutes::list},
      {"POST", "mkdir", &FileRoutes::mkdir}, {"POST", "move", &FileRoutes::move},
      {"POST", "chmod", &FileRoutes::chmod}, {"GET", "watch", &FileRoutes::watch},
  };
  const std::string verb = target.segments.size() > 2 ? target.segments[2] : "";
  if (target.segments.size() > 3) return no_such_route();
  std::string allowed;
  for (const Route& route : kRoutes) {
    if (route.verb != verb) continue;
    if (route.method == exchange.head().method) {
      return (files_.*route.handler)(exchange, std::move(target));
    }
    allowed.append(allowed.empty() ? "" : ", ").append(route.method);
  }
  return allowed.empty() ? no_such_route() : refuse(exchange, std::move(allowed));
}

}  // namespace glovebox::agent
