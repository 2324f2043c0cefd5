#include "cli/display.h"

#include <gtest/gtest.h>

#include "cli/progress.h"

namespace glovebox::cli {
namespace {

TEST(SafeText, ShowsWhatATerminalWouldActOn) {
  struct Case {
    std::string text;
    std::string shown;
  };
  const Case cases[] = {
      {"plain", "plain"},
      {"\x1b[2J", "\\x1b[2J"},
      {"a\nb\tc\r", "a\\x0ab\\x09c\\x0d"},
      {std::string("nul\0", 4), "nul\\x00"},
      {"\x7f", "\\x7f"},
      {"\xc2\x9b"
       "31m",
       "\\u{9b}31m"},                       // C1 CSI.
      {"\xff\xc3", "\\xff\\xc3"},           // Not UTF-8.
      {"exe\u202Etxt", "exe\\u{202e}txt"},  // Right-to-left override.
      {"a\u200Bb", "a\\u{200b}b"},          // Zero width space.
      {"h\u00e9 \u4e16\u754c", "h\u00e9 \u4e16\u754c"},
      {"\uFFFD", "\uFFFD"},
  };
  for (const Case& c : cases) EXPECT_EQ(safe_text(c.text), c.shown);
}

TEST(SafeText, LetsNoControlByteThrough) {
  for (int first = 0; first < 256; ++first) {
    for (const char* tail : {"", "[31m", "\x9b", "\x1b"}) {
      for (const char c : safe_text(std::string(1, static_cast<char>(first)) + tail)) {
        const auto byte = static_cast<unsigned char>(c);
        ASSERT_TRUE(byte >= 0x20 && byte != 0x7F) << first;
      }
    }
  }
}

TEST(DisplayWidth, CountsColumns) {
  EXPECT_EQ(display_width("abc"), 3U);
  EXPECT_EQ(display_width("\u4e16\u754c"), 4U);
  EXPECT_EQ(display_width("e\u0301"), 1U);
}

TEST(Fit, NeverExceedsAndNeverCutsACharacter) {
  EXPECT_EQ(fit("abc", 3), "abc");
  EXPECT_EQ(fit("abcd", 3), "ab\u2026");
  EXPECT_EQ(fit("\u4e16\u754c\u4e16", 4), "\u4e16\u2026");
  EXPECT_EQ(fit("abc", 0), "");
}

TEST(Table, PadsByColumnsAndKeepsRowsOnOneLine) {
  Table table({"ID", "NAME"});
  table.add({"1", "\u4e16\u754c"});
  table.add({"22", "evil\nsb-fake  running\x1b[31m"});
  table.add({"3"});
  EXPECT_EQ(table.render(),
            "ID  NAME\n"
            "1   \u4e16\u754c\n"
            "22  evil\\x0asb-fake  running\\x1b[31m\n"
            "3\n");
}

TEST(Table, CutsLongCells) {
  Table table({"A", "B"});
  table.add({std::string(1000, 'x'), "y"});
  EXPECT_NE(table.render(10).find("xxxxxxxxx\u2026  y\n"), std::string::npos);
}

TEST(Progress, FitsTheWindowWhateverTheLabel) {
  ProgressState state;
  state.done_bytes = 5 << 20;
  state.total_bytes = 10 << 20;
  state.elapsed_s = 1;
  for (const std::string& label :
       {std::string("a"), std::string(500, 'x'), std::string("\x1b[2J\u4e16\u754c")}) {
    state.label = label;
    for (const std::size_t columns : {1U, 20U, 40U, 79U, 200U}) {
      const std::string line = progress_line(state, columns);
      EXPECT_LE(display_width(line), std::max<std::size_t>(columns, 20)) << line;
      EXPECT_EQ(line.find('\x1b'), std::string::npos);
    }
  }
}

TEST(Progress, ShowsAmountRateAndRest) {
  ProgressState state{"file", 5 << 20, 10 << 20, 1};
  const std::string line = progress_line(state, 79);
  EXPECT_NE(line.find("[##########..........]"), std::string::npos) << line;
  EXPECT_NE(line.find("5M/10M  5M/s  1s"), std::string::npos) << line;
}

TEST(Progress, DoesNotOverflowWhenMoreCameThanWasSaid) {
  const ProgressState state{"file", 100, 10, 1};
  EXPECT_NE(progress_line(state, 79).find("[####################]"), std::string::npos);
  const ProgressState empty{"file", 0, 0, 0};
  EXPECT_NE(progress_line(empty, 79).find("0B/0B"), std::string::npos);
}

}  // namespace
}  // namespace glovebox::cli
