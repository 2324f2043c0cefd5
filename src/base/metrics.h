// Metrics: counters, gauges and histograms, exposed as Prometheus text (version 0.0.4).
//
// One Registry a program, made in main() and passed on. Instruments live as long as it does; keep
// the reference, since looking a label up takes a lock. Updating is lock-free, from any thread.
// Names are base units with their unit: glovebox_request_seconds, never _ms.

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace glovebox::metrics {

class Counter {
 public:
  void add(std::uint64_t n = 1) noexcept { value_.fetch_add(n, std::memory_order_relaxed); }
  std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

class Gauge {
 public:
  void set(std::int64_t v) noexcept { value_.store(v, std::memory_order_relaxed); }
  void add(std::int64_t n) noexcept { value_.fetch_add(n, std::memory_order_relaxed); }
  std::int64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};

class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds);  // Ascending; +Inf is added.
  void observe(double value) noexcept;
  std::uint64_t count() const noexcept;

  // For the registry: how many fell into each bucket, and the sum of all.
  const std::vector<double>& bounds() const noexcept { return bounds_; }
  std::vector<std::uint64_t> counts() const;
  double sum() const noexcept { return sum_.load(std::memory_order_relaxed); }

 private:
  std::vector<double> bounds_;
  std::vector<std::atomic<std::uint64_t>> buckets_;
  std::atomic<double> sum_{0};
};

// 0.1 ms to 60 s, about three steps a decade.
std::vector<double> latency_bounds();

using LabelValues = std::vector<std::string>;

// One instrument for each combination of label values, up to `series_max`: whoever comes later is
// counted under "other" in every label, so that no client can make the daemon's memory grow. What
// has counted nothing yet is not exposed: there are many routes, and most are idle.
template <class Instrument>
class Family {
 public:
  using Make = std::function<std::unique_ptr<Instrument>()>;
  Family(std::vector<std::string> labels, std::size_t series_max, Make make)
      : labels_(std::move(labels)), series_max_(series_max), make_(std::move(make)) {}

  // As many values as there are labels.
  Instrument& with(const LabelValues& values);
  const std::vector<std::string>& labels() const noexcept { return labels_; }
  void for_each(const std::function<void(const LabelValues&, const Instrument&)>& f) const;

 private:
  const std::vector<std::string> labels_;
  const std::size_t series_max_;
  const Make make_;
  mutable std::mutex mutex_;
  std::map<LabelValues, std::unique_ptr<Instrument>> series_;
};

// Writes metrics whose values are kept elsewhere; see Registry::add_collector().
class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}
  void gauge(std::string_view name, std::string_view help, double value);
  void counter(std::string_view name, std::string_view help, double value);
  // One sample for each value of one label.
  using Labelled = std::vector<std::pair<std::string, double>>;
  void gauges(std::string_view name, std::string_view help, const std::string& label,
              const Labelled& values);
  // `counts` of each bucket by itself, with one more than there are bounds.
  void histogram(std::string_view name, std::string_view help, std::span<const double> bounds,
                 std::span<const std::uint64_t> counts, double sum);

 private:
  std::string& out_;
};

class Registry {
 public:
  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // A name is registered once; a second time, or a name that Prometheus would refuse, aborts.
  Counter& counter(std::string name, std::string help);
  Gauge& gauge(std::string name, std::string help);
  Histogram& histogram(std::string name, std::string help, std::vector<double> bounds);
  Family<Counter>& counters(std::string name, std::string help, std::vector<std::string> labels,
                            std::size_t series_max = 256);
  Family<Histogram>& histograms(std::string name, std::string help, std::vector<std::string> labels,
                                std::vector<double> bounds, std::size_t series_max = 256);
  // Called at each exposition, on the exposing thread, after everything else was written. Must not
  // throw, nor write names that are taken.
  void add_collector(std::function<void(Writer&)> collect);

  // All metrics, registered ones by name.
  std::string expose() const;

 private:
  struct Entry;
  Entry& add(std::string name, std::string help, std::string_view type);
  mutable std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Entry>, std::less<>> entries_;
  std::vector<std::function<void(Writer&)>> collectors_;
};

extern template class Family<Counter>;
extern template class Family<Histogram>;

}  // namespace glovebox::metrics
