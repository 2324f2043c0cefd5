// Numbers about the domain, for /metrics. Plain values: the adapter gives them names.

#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "sandbox/lifecycle.h"

namespace glovebox::sandbox {

// Upper bounds in seconds; a last bucket holds the rest. Not cumulative.
inline constexpr std::array kLatencyBounds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                           0.25,  0.5,    1.0,   2.5,  5.0,   10.0, 30.0};

struct Histogram {
  std::array<std::uint64_t, kLatencyBounds.size() + 1> counts{};
  std::uint64_t count = 0;
  double sum_s = 0;

  void add(std::chrono::nanoseconds d) {
    const double s = std::chrono::duration<double>(d).count();
    std::size_t i = 0;
    while (i < kLatencyBounds.size() && s > kLatencyBounds[i]) ++i;
    ++counts[i];
    ++count;
    sum_s += s;
  }
};

struct Stats {
  // By State. The two ended ones stay 0: they are rows only.
  std::array<std::uint32_t, kStates.size()> by_state{};
  std::uint32_t streams_open = 0;  // Uses held now.

  std::uint32_t queue_length = 0;  // Creates that wait for their turn.
  std::uint32_t workers_busy = 0;
  std::uint32_t workers = 0;
  std::uint32_t capacity_used = 0;  // Sandboxes that take a place on the node.
  std::uint32_t capacity = 0;
  std::uint64_t memory_committed_bytes = 0;  // Sum of their memory limits.

  // Since the start of the daemon.
  std::uint64_t created_total = 0;
  std::uint64_t create_failed_total = 0;
  std::uint64_t create_refused_total = 0;    // kExhausted: queue full or its deadline passed.
  std::uint64_t create_abandoned_total = 0;  // The client hung up.
  std::uint64_t expired_total = 0;           // By either timeout, killed or paused.
  std::uint64_t died_total = 0;
  std::uint64_t lost_total = 0;
  std::uint64_t orphans_destroyed_total = 0;
  std::uint64_t reconcile_total = 0;
  std::uint64_t reconcile_failed_total = 0;

  Histogram queue_wait;
  Histogram create;  // From the turn to running, without the queue.
  Histogram destroy;
};

}  // namespace glovebox::sandbox
