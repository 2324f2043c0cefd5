#include "api/common/domain_metrics.h"

#include <string>

namespace glovebox::api {
namespace {

void write_histogram(metrics::Writer& out, std::string_view name, std::string_view help,
                     const sandbox::Histogram& h) {
  out.histogram(name, help, sandbox::kLatencyBounds, h.counts, h.sum_s);
}

}  // namespace

void write_metrics(metrics::Writer& out, const sandbox::Stats& stats) {
  metrics::Writer::Labelled states;
  for (const sandbox::State state : sandbox::kStates) {
    // Ended ones are rows in the store and not counted.
    if (sandbox::is_terminal(state)) continue;
    states.emplace_back(std::string(to_string(state)),
                        stats.by_state[static_cast<std::size_t>(state)]);
  }
  out.gauges("glovebox_sandboxes", "Sandboxes by state.", "state", states);
  out.gauge("glovebox_streams_open", "Requests into sandboxes that are open.", stats.streams_open);
  out.gauge("glovebox_create_queue_length", "Creates that wait for their turn.",
            stats.queue_length);
  out.gauge("glovebox_create_workers", "Creates that may be worked on at a time.", stats.workers);
  out.gauge("glovebox_create_workers_busy", "Creates that are worked on.", stats.workers_busy);
  out.gauge("glovebox_sandboxes_capacity", "Sandboxes that this node takes.", stats.capacity);
  out.gauge("glovebox_sandboxes_capacity_used", "Places taken.", stats.capacity_used);
  out.gauge("glovebox_memory_committed_bytes", "Sum of the memory limits of all sandboxes.",
            static_cast<double>(stats.memory_committed_bytes));
  const auto counter = [&](std::string_view name, std::string_view help, std::uint64_t value) {
    out.counter(name, help, static_cast<double>(value));
  };
  counter("glovebox_creates_total", "Sandboxes created.", stats.created_total);
  counter("glovebox_create_failures_total", "Creates that failed.", stats.create_failed_total);
  counter("glovebox_create_refusals_total", "Creates refused because the node was full.",
          stats.create_refused_total);
  counter("glovebox_create_abandoned_total", "Creates whose client hung up.",
          stats.create_abandoned_total);
  counter("glovebox_expired_total", "Sandboxes whose time ran out.", stats.expired_total);
  counter("glovebox_died_total", "Sandboxes that ended by themselves.", stats.died_total);
  counter("glovebox_lost_total", "Sandboxes that the runtime no longer had.", stats.lost_total);
  counter("glovebox_orphans_destroyed_total", "Sandboxes nobody knew that were removed.",
          stats.orphans_destroyed_total);
  counter("glovebox_reconciles_total", "Comparisons of store and runtime.", stats.reconcile_total);
  counter("glovebox_reconcile_failures_total", "Of these, failed.", stats.reconcile_failed_total);
  write_histogram(out, "glovebox_create_queue_seconds", "How long creates waited for their turn.",
                  stats.queue_wait);
  write_histogram(out, "glovebox_create_seconds", "From a create's turn until it runs.",
                  stats.create);
  write_histogram(out, "glovebox_destroy_seconds", "How long removing took.", stats.destroy);
}

}  // namespace glovebox::api
