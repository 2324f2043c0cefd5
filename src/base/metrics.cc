#include "base/metrics.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <variant>

#include "base/text.h"

namespace glovebox::metrics {
namespace {

[[noreturn]] void refuse(const std::string& name, const char* why) {
  std::fprintf(stderr, "metric %s: %s\n", name.c_str(), why);
  std::abort();
}

bool valid_name(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  if (name.empty() || !letter(name.front())) return false;
  return std::all_of(name.begin(), name.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

void append_double(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "NaN";
  } else if (std::isinf(value)) {
    out += value > 0 ? "+Inf" : "-Inf";
  } else {
    char digits[32];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  }
}

void append_escaped(std::string& out, std::string_view text, bool quotes) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    const char32_t code = next_code_point(text, at);
    if (code == '\\') {
      out += "\\\\";
    } else if (code == '\n') {
      out += "\\n";
    } else if (code == '"' && quotes) {
      out += "\\\"";
    } else if (code == 0xFFFD) {
      out += "\xEF\xBF\xBD";
    } else {
      out.append(text, start, at - start);
    }
  }
}

// {a="1",b="2"}; `extra` is a bucket's le.
void append_labels(std::string& out, const std::vector<std::string>& names,
                   const LabelValues& values, std::string_view extra) {
  if (names.empty() && extra.empty()) return;
  out += '{';
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += ',';
    out += names[i];
    out += "=\"";
    append_escaped(out, values[i], true);
    out += '"';
  }
  if (!extra.empty()) {
    if (!names.empty()) out += ',';
    out.append("le=\"").append(extra).append("\"");
  }
  out += '}';
}

void append_sample(std::string& out, std::string_view name, std::string_view suffix,
                   const std::vector<std::string>& labels, const LabelValues& values,
                   std::string_view le, double value) {
  out.append(name).append(suffix);
  append_labels(out, labels, values, le);
  out += ' ';
  append_double(out, value);
  out += '\n';
}

// `counts` of each bucket by itself.
void append_histogram(std::string& out, std::string_view name,
                      const std::vector<std::string>& labels, const LabelValues& values,
                      std::span<const double> bounds, std::span<const std::uint64_t> counts,
                      double sum) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    std::string le;
    append_double(le, i < bounds.size() ? bounds[i] : INFINITY);
    total += counts[i];
    append_sample(out, name, "_bucket", labels, values, le, static_cast<double>(total));
  }
  append_sample(out, name, "_sum", labels, values, {}, sum);
  append_sample(out, name, "_count", labels, values, {}, static_cast<double>(total));
}

void append_header(std::string& out, std::string_view name, std::string_view help,
                   std::string_view type) {
  out.append("# HELP ").append(name).append(" ");
  append_escaped(out, help, false);
  out.append("\n# TYPE ").append(name).append(" ").append(type).append("\n");
}

}  // namespace

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), buckets_(bounds_.size() + 1) {}

void Histogram::observe(double value) noexcept {
  const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  buckets_[static_cast<std::size_t>(at)].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

std::vector<std::uint64_t> Histogram::counts() const {
  std::vector<std::uint64_t> counts;
  counts.reserve(buckets_.size());
  for (const auto& bucket : buckets_) counts.push_back(bucket.load(std::memory_order_relaxed));
  return counts;
}

std::uint64_t Histogram::count() const noexcept {
  std::uint64_t total = 0;
  for (const auto& bucket : buckets_) total += bucket.load(std::memory_order_relaxed);
  return total;
}

std::vector<double> latency_bounds() {
  return {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
          0.1,    0.25,    0.5,    1,     2.5,    5,     10,   30,    60};
}

template <class Instrument>
Instrument& Family<Instrument>::with(const LabelValues& values) {
  if (values.size() != labels_.size()) refuse(labels_.front(), "wrong number of label values");
  const std::lock_guard lock(mutex_);
  auto it = series_.find(values);
  if (it == series_.end()) {
    const bool full = series_.size() >= series_max_;
    const LabelValues& key = full ? LabelValues(labels_.size(), "other") : values;
    it = series_.try_emplace(key).first;
    if (it->second == nullptr) it->second = make_();
  }
  return *it->second;
}

template <class Instrument>
void Family<Instrument>::for_each(
    const std::function<void(const LabelValues&, const Instrument&)>& f) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [values, instrument] : series_) f(values, *instrument);
}

template class Family<Counter>;
template class Family<Histogram>;

struct Registry::Entry {
  std::string help;
  std::string_view type;
  std::variant<std::monostate, std::unique_ptr<Counter>, std::unique_ptr<Gauge>,
               std::unique_ptr<Histogram>, std::unique_ptr<Family<Counter>>,
               std::unique_ptr<Family<Histogram>>>
      what;

  void expose(const std::string& name, std::string& out) const {
    struct Visitor {
      const std::string& name;
      std::string& out;
      void operator()(std::monostate) const {}
      void operator()(const std::unique_ptr<Counter>& c) const {
        append_sample(out, name, {}, {}, {}, {}, static_cast<double>(c->value()));
      }
      void operator()(const std::unique_ptr<Gauge>& g) const {
        append_sample(out, name, {}, {}, {}, {}, static_cast<double>(g->value()));
      }
      void operator()(const std::unique_ptr<Histogram>& h) const {
        append_histogram(out, name, {}, {}, h->bounds(), h->counts(), h->sum());
      }
      void operator()(const std::unique_ptr<Family<Counter>>& f) const {
        f->for_each([&](const LabelValues& values, const Counter& c) {
          if (c.value() == 0) return;
          append_sample(out, name, {}, f->labels(), values, {}, static_cast<double>(c.value()));
        });
      }
      void operator()(const std::unique_ptr<Family<Histogram>>& f) const {
        f->for_each([&](const LabelValues& values, const Histogram& h) {
          if (h.count() == 0) return;
          append_histogram(out, name, f->labels(), values, h.bounds(), h.counts(), h.sum());
        });
      }
    };
    append_header(out, name, help, type);
    std::visit(Visitor{name, out}, what);
  }
};

Registry::Registry() = default;
Registry::~Registry() = default;

Registry::Entry& Registry::add(std::string name, std::string help, std::string_view type) {
  if (!valid_name(name)) refuse(name, "not a metric name");
  const std::lock_guard lock(mutex_);
  const auto [it, added] = entries_.try_emplace(name, std::make_unique<Entry>());
  if (!added) refuse(name, "registered twice");
  it->second->help = std::move(help);
  it->second->type = type;
  return *it->second;
}

Counter& Registry::counter(std::string name, std::string help) {
  Entry& entry = add(std::move(name), std::move(help), "counter");
  return *entry.what.emplace<std::unique_ptr<Counter>>(std::make_unique<Counter>());
}

Gauge& Registry::gauge(std::string name, std::string help) {
  Entry& entry = add(std::move(name), std::move(help), "gauge");
  return *entry.what.emplace<std::unique_ptr<Gauge>>(std::make_unique<Gauge>());
}

Histogram& Registry::histogram(std::string name, std::string help, std::vector<double> bounds) {
  Entry& entry = add(std::move(name), std::move(help), "histogram");
  return *entry.what.emplace<std::unique_ptr<Histogram>>(
      std::make_unique<Histogram>(std::move(bounds)));
}

Family<Counter>& Registry::counters(std::string name, std::string help,
                                    std::vector<std::string> labels, std::size_t series_max) {
  Entry& entry = add(std::move(name), std::move(help), "counter");
  return *entry.what.emplace<std::unique_ptr<Family<Counter>>>(std::make_unique<Family<Counter>>(
      std::move(labels), series_max, [] { return std::make_unique<Counter>(); }));
}

Family<Histogram>& Registry::histograms(std::string name, std::string help,
                                        std::vector<std::string> labels, std::vector<double> bounds,
                                        std::size_t series_max) {
  Entry& entry = add(std::move(name), std::move(help), "histogram");
  return *entry.what.emplace<std::unique_ptr<Family<Histogram>>>(
      std::make_unique<Family<Histogram>>(
          std::move(labels), series_max,
          [bounds = std::move(bounds)] { return std::make_unique<Histogram>(bounds); }));
}

void Registry::add_collector(std::function<void(Writer&)> collect) {
  const std::lock_guard lock(mutex_);
  collectors_.push_back(std::move(collect));
}

std::string Registry::expose() const {
  std::string out;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, entry] : entries_) entry->expose(name, out);
  Writer writer(out);
  for (const auto& collect : collectors_) collect(writer);
  return out;
}

void Writer::gauge(std::string_view name, std::string_view help, double value) {
  append_header(out_, name, help, "gauge");
  append_sample(out_, name, {}, {}, {}, {}, value);
}

void Writer::counter(std::string_view name, std::string_view help, double value) {
  append_header(out_, name, help, "counter");
  append_sample(out_, name, {}, {}, {}, {}, value);
}

void Writer::gauges(std::string_view name, std::string_view help, const std::string& label,
                    const Labelled& values) {
  append_header(out_, name, help, "gauge");
  for (const auto& [text, value] : values) {
    append_sample(out_, name, {}, {label}, {text}, {}, value);
  }
}

void Writer::histogram(std::string_view name, std::string_view help, std::span<const double> bounds,
                       std::span<const std::uint64_t> counts, double sum) {
  append_header(out_, name, help, "histogram");
  append_histogram(out_, name, {}, {}, bounds, counts, sum);
}

}  // namespace glovebox::metrics
