#include "base/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace glovebox::metrics {
namespace {

using testing::HasSubstr;

TEST(Metrics, ExposesEachKindByName) {
  Registry registry;
  registry.counter("b_total", "Things.").add(3);
  registry.gauge("a", "Line one\nback\\slash").set(-2);
  registry.add_collector([](Writer& out) {
    out.gauge("c", "Asked.", 0.5);
    out.gauges("d", "By state.", "state", {{"up", 1}, {"down", 0}});
    out.histogram("e", "E.", std::vector<double>{1}, std::vector<std::uint64_t>{2, 3}, 9);
  });
  EXPECT_EQ(registry.expose(),
            "# HELP a Line one\\nback\\\\slash\n# TYPE a gauge\na -2\n"
            "# HELP b_total Things.\n# TYPE b_total counter\nb_total 3\n"
            "# HELP c Asked.\n# TYPE c gauge\nc 0.5\n"
            "# HELP d By state.\n# TYPE d gauge\nd{state=\"up\"} 1\nd{state=\"down\"} 0\n"
            "# HELP e E.\n# TYPE e histogram\ne_bucket{le=\"1\"} 2\ne_bucket{le=\"+Inf\"} 5\n"
            "e_sum 9\ne_count 5\n");
}

TEST(Metrics, HistogramBucketsAreCumulativeAndInclusive) {
  Registry registry;
  Histogram& h = registry.histogram("h", "H.", {1, 2});
  for (const double v : {0.5, 1.0, 1.5, 9.0}) h.observe(v);
  EXPECT_EQ(registry.expose(),
            "# HELP h H.\n# TYPE h histogram\n"
            "h_bucket{le=\"1\"} 2\nh_bucket{le=\"2\"} 3\nh_bucket{le=\"+Inf\"} 4\n"
            "h_sum 12\nh_count 4\n");
  EXPECT_EQ(h.count(), 4U);
}

TEST(Metrics, LabelValuesAreEscaped) {
  Registry registry;
  registry.counters("r_total", "R.", {"path", "code"}).with({"a\"\\\n\xFF", "200"}).add();
  EXPECT_THAT(registry.expose(),
              HasSubstr("r_total{path=\"a\\\"\\\\\\n\xEF\xBF\xBD\",code=\"200\"} 1\n"));
}

TEST(Metrics, AFamilyStopsGrowingAtItsBound) {
  Registry registry;
  Family<Counter>& family = registry.counters("r_total", "R.", {"who"}, 2);
  Counter& first = family.with({"a"});
  family.with({"b"});
  for (int i = 0; i < 100; ++i) family.with({std::to_string(i)}).add();
  first.add();
  EXPECT_EQ(&family.with({"a"}), &first);
  EXPECT_THAT(registry.expose(), HasSubstr("r_total{who=\"a\"} 1\n"
                                           "r_total{who=\"other\"} 100\n"));
}

TEST(Metrics, LabelledHistogramsCarryTheirLabels) {
  Registry registry;
  registry.histograms("d_seconds", "D.", {"route"}, {1}).with({"x"}).observe(0.25);
  EXPECT_THAT(registry.expose(), HasSubstr("d_seconds_bucket{route=\"x\",le=\"1\"} 1\n"
                                           "d_seconds_bucket{route=\"x\",le=\"+Inf\"} 1\n"
                                           "d_seconds_sum{route=\"x\"} 0.25\n"
                                           "d_seconds_count{route=\"x\"} 1\n"));
}

TEST(MetricsDeathTest, TwoMetricsOfOneNameAreABug) {
  Registry registry;
  registry.gauge("a", "A.");
  EXPECT_DEATH(registry.counter("a", "A."), "metric a: registered twice");
  EXPECT_DEATH(registry.counter("0a", "A."), "not a metric name");
}

}  // namespace
}  // namespace glovebox::metrics
