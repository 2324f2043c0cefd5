// Front: the handler of the daemon's server. It finds the API that a request is for, has it
// handled, and keeps the books: a log line, a counter and a duration for each request.

#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "async/task.h"
#include "base/log.h"
#include "base/metrics.h"
#include "net/server.h"

namespace glovebox::api {

// What one route counts. Made once at start, so that a request looks nothing up.
struct RouteMetrics {
  std::string name;  // "GET /api/v1/sandboxes/{id}"; never what a client sent.
  std::array<metrics::Counter*, 6> by_class{};  // [2] counts 2xx; [0] cut off before a reply.
  metrics::Histogram* seconds = nullptr;
};

class Instruments {
 public:
  explicit Instruments(metrics::Registry& registry);
  // The same name gives the same metrics.
  RouteMetrics& route(const std::string& name);
  metrics::Gauge& in_flight() noexcept { return *in_flight_; }

 private:
  metrics::Family<metrics::Counter>* requests_;
  metrics::Family<metrics::Histogram>* seconds_;
  metrics::Gauge* in_flight_;
  std::vector<std::unique_ptr<RouteMetrics>> routes_;
};

// What an API tells the Front about a request it handled.
struct Trace {
  RouteMetrics* route = nullptr;  // Null: counted as unmatched.
  std::string caller;             // "key-…", "uid 0"; empty when refused or not asked.
  std::string sandbox;
  std::string error;  // What went wrong, for the log only.
  log::Level level = log::Level::kInfo;
};

// One API on the common port.
class Adapter {
 public:
  virtual ~Adapter() = default;
  // Whether this request is this API's, by path, host or header. Called for every request.
  virtual bool claims(const net::RequestHead& head) const = 0;
  virtual Task<void> handle(net::Exchange& exchange, Trace& trace) = 0;
};

class Front {
 public:
  // Borrows all. The first adapter that claims a request gets it; the last one must claim all.
  Front(log::Logger& log, Instruments& instruments, std::vector<Adapter*> adapters);
  Task<void> handle(net::Exchange& exchange);

 private:
  void record(net::Exchange& exchange, const Trace& trace, double seconds);

  log::Logger& log_;
  Instruments& instruments_;
  RouteMetrics& unmatched_;
  std::vector<Adapter*> adapters_;
};

}  // namespace glovebox::api
