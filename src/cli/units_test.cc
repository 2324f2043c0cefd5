#include "cli/units.h"

#include <gtest/gtest.h>

namespace glovebox::cli {
namespace {

TEST(ParseDuration, TakesUnitsAndSums) {
  struct Case {
    const char* text;
    double seconds;
  };
  for (const Case& c : {Case{"30", 30},
                        {"30s", 30},
                        {"250ms", 0.25},
                        {"5m", 300},
                        {"2h", 7200},
                        {"1d", 86400},
                        {"1h30m", 5400},
                        {"1.5h", 5400},
                        {"0.5", 0.5},
                        {"10MIN", 600}}) {
    const Result<double> got = parse_duration(c.text);
    ASSERT_TRUE(got) << c.text << ": " << got.error().text();
    EXPECT_DOUBLE_EQ(*got, c.seconds) << c.text;
  }
}

TEST(ParseDuration, RefusesWhatCouldMeanSomethingElse) {
  for (const char* text : {"", "s", "-5", "+5", "0", "0s", "5x", "1h30", "5 m", "1e3", "inf", "nan",
                           "0x10", "5mm", "11y", "100000d", "1..5", "1m ", "\n5"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

TEST(ParseSize, CountsInPowersOf1024) {
  struct Case {
    const char* text;
    std::uint64_t bytes;
  };
  for (const Case& c : {Case{"512", 512},
                        {"0", 0},
                        {"1k", 1024},
                        {"512m", 512ULL << 20},
                        {"2g", 2ULL << 30},
                        {"2GiB", 2ULL << 30},
                        {"2GB", 2ULL << 30},
                        {"1.5g", 3ULL << 29},
                        {"1t", 1ULL << 40},
                        {"7b", 7}}) {
    const Result<std::uint64_t> got = parse_size(c.text);
    ASSERT_TRUE(got) << c.text;
    EXPECT_EQ(*got, c.bytes) << c.text;
  }
  for (const char* text : {"", "m", "-1", "1x", "1mm", "1 g", "99999999t", "0x1", "1gg", "1kbb"}) {
    EXPECT_FALSE(parse_size(text)) << text;
  }
}

TEST(ParseCpus, TakesFractionsOnly) {
  EXPECT_DOUBLE_EQ(*parse_cpus("0.5"), 0.5);
  EXPECT_DOUBLE_EQ(*parse_cpus("2"), 2);
  for (const char* text : {"", "0", "-1", "2c", "1025", "1e2"}) EXPECT_FALSE(parse_cpus(text));
}

TEST(ParseKeyValue, SplitsAtTheFirstEquals) {
  const auto pair = parse_key_value("A=b=c", "label");
  ASSERT_TRUE(pair);
  EXPECT_EQ(pair->first, "A");
  EXPECT_EQ(pair->second, "b=c");
  EXPECT_EQ(parse_key_value("A=", "label")->second, "");
  EXPECT_FALSE(parse_key_value("A", "label"));
  EXPECT_FALSE(parse_key_value("=b", "label"));
}

TEST(ParseSignal, GivesTheFullName) {
  EXPECT_EQ(*parse_signal("term"), "SIGTERM");
  EXPECT_EQ(*parse_signal("SIGKILL"), "SIGKILL");
  EXPECT_EQ(*parse_signal("9"), "9");
  for (const char* text : {"", "0", "65", "-9", "SIGFOO", "SIG", "9x"}) {
    EXPECT_FALSE(parse_signal(text)) << text;
  }
}

TEST(FormatDuration, ShowsTheLargestUnit) {
  EXPECT_EQ(format_duration(-3), "0s");
  EXPECT_EQ(format_duration(0.85), "850ms");
  EXPECT_EQ(format_duration(59.9), "59s");
  EXPECT_EQ(format_duration(299), "4m");
  EXPECT_EQ(format_duration(7300), "2h");
  EXPECT_EQ(format_duration(200000), "2d");
}

TEST(FormatBytes, HasThreeDigitsAtMost) {
  EXPECT_EQ(format_bytes(0), "0B");
  EXPECT_EQ(format_bytes(1023), "1023B");
  EXPECT_EQ(format_bytes(1024), "1K");
  EXPECT_EQ(format_bytes(1536), "1.5K");
  EXPECT_EQ(format_bytes(20 << 20), "20M");
  EXPECT_EQ(format_bytes(1023ULL << 10), "1M");
  EXPECT_EQ(format_bytes(UINT64_MAX), "16E");
}

}  // namespace
}  // namespace glovebox::cli
