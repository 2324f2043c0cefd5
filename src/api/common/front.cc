#include "api/common/front.h"

#include <chrono>
#include <cmath>
#include <exception>

#include "api/common/reply.h"
#include "async/coro.h"

namespace glovebox::api {
namespace {

constexpr std::array kClassNames{"none", "1xx", "2xx", "3xx", "4xx", "5xx"};

Adapter* adapter_for(const std::vector<Adapter*>& adapters, const net::RequestHead& head) {
  for (Adapter* adapter : adapters) {
    if (adapter->claims(head)) return adapter;
  }
  return adapters.back();
}

// A target without its query: that may hold anything, a secret too.
std::string_view path_of(const net::RequestHead& head) {
  const std::string_view target = head.target;
  return target.substr(0, target.find('?'));
}

}  // namespace

Instruments::Instruments(metrics::Registry& registry)
    : requests_(&registry.counters("glovebox_http_requests_total",
                                   "Requests by route and class of the reply's status.",
                                   {"route", "status"}, 1024)),
      seconds_(&registry.histograms("glovebox_http_request_seconds",
                                    "From a request's head to the end of its reply.", {"route"},
                                    metrics::latency_bounds(), 256)),
      in_flight_(&registry.gauge("glovebox_http_requests_in_flight",
                                 "Requests that are being worked on.")) {}

RouteMetrics& Instruments::route(const std::string& name) {
  for (const auto& known : routes_) {
    if (known->name == name) return *known;
  }
  auto made = std::make_unique<RouteMetrics>();
  made->name = name;
  for (std::size_t i = 0; i < kClassNames.size(); ++i) {
    made->by_class[i] = &requests_->with({name, kClassNames[i]});
  }
  made->seconds = &seconds_->with({name});
  return *routes_.emplace_back(std::move(made));
}

Front::Front(log::Logger& log, Instruments& instruments, std::vector<Adapter*> adapters)
    : log_(log),
      instruments_(instruments),
      unmatched_(instruments.route("unmatched")),
      adapters_(std::move(adapters)) {}

Task<void> Front::handle(net::Exchange& exchange) {
  const auto begun = Clock::now();
  Trace trace;
  instruments_.in_flight().add(1);
  Adapter* adapter = adapter_for(adapters_, exchange.head());
  try {
    co_await adapter->handle(exchange, trace);
  } catch (const std::exception& e) {
    // A bug of ours: the request's state is unknown, so its connection ends.
    log_.error("handler threw", {{"request_id", exchange.request_id()}, {"what", e.what()}});
    trace.error = "internal error";
    if (exchange.started()) exchange.abort();
  }
  if (!exchange.started()) {
    net::Response reply = error_response(500, "internal", "internal error");
    auto sent = co_await exchange.respond(std::move(reply));
    static_cast<void>(sent);  // Whoever asked has hung up.
  }
  instruments_.in_flight().add(-1);
  record(exchange, trace, std::chrono::duration<double>(Clock::now() - begun).count());
}

void Front::record(net::Exchange& exchange, const Trace& trace, double seconds) {
  const int status = exchange.status();
  RouteMetrics& route = trace.route != nullptr ? *trace.route : unmatched_;
  const std::size_t status_class = status >= 100 && status < 600 ? status / 100 : 0;
  route.by_class[status_class]->add();
  route.seconds->observe(seconds);

  const net::RequestHead& head = exchange.head();
  // "Not yet" is what /ready is asked for, and whoever waits asks often.
  const bool not_ready = status == 503 && path_of(head) == "/ready";
  // What a program in a sandbox answers is its own business; what went wrong here is ours.
  const bool ours = trace.level != log::Level::kDebug || !trace.error.empty();
  const log::Level level = status >= 500 && ours && !not_ready ? log::Level::kWarn : trace.level;
  if (!log_.enabled(level)) return;
  std::vector<log::Field> fields{{"request_id", exchange.request_id()},
                                 {"method", head.method},
                                 {"path", path_of(head)},
                                 {"status", status},
                                 {"duration_ms", std::round(seconds * 1e6) / 1e3},
                                 {"route", route.name},
                                 {"peer", exchange.peer().address}};
  if (!trace.caller.empty()) fields.emplace_back("caller", trace.caller);
  if (!trace.sandbox.empty()) fields.emplace_back("sandbox", trace.sandbox);
  if (!trace.error.empty()) fields.emplace_back("error", trace.error);
  log_.write(level, "request", log::FieldSpan(fields));
}

}  // namespace glovebox::api
