#include "base/text.h"

#include <gtest/gtest.h>

namespace glovebox {
namespace {

TEST(Utf8, AcceptsWhatRfc3629Defines) {
  for (const char* good :
       {"", "a", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
        "\xEF\xBF\xBD", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(is_utf8(good)) << good;
  }
}

TEST(Utf8, RefusesOverlongFormsSurrogatesAndCutSequences) {
  for (const char* bad :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC2", "\xE0\x9F\xBF", "\xE2\x82", "\xED\xA0\x80",
        "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "a\xC3(b"}) {
    EXPECT_FALSE(is_utf8(bad)) << testing::PrintToString(std::string(bad));
  }
}

TEST(Iequals, FoldsAsciiLettersOnly) {
  EXPECT_TRUE(iequals("X-API-Key", "x-api-kEY"));
  EXPECT_FALSE(iequals("a", "ab"));
  EXPECT_FALSE(iequals("@", "`"));
  EXPECT_FALSE(iequals("\xC3\x84", "\xC3\xA4"));
  EXPECT_TRUE(istarts_with("Glovebox-X", "glovebox-"));
  EXPECT_FALSE(istarts_with("glove", "glovebox-"));
}

std::string json(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

TEST(JsonString, EscapesWhatJsonOrATerminalWouldActOn) {
  EXPECT_EQ(json("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(json("\n\r\t"), R"("\n\r\t")");
  EXPECT_EQ(json(std::string_view("\0\x1b[2J\x7f", 6)), R"("\u0000\u001b[2J\u007f")");
  EXPECT_EQ(json("\xC2\x9B"), R"("\u009b")");  // The one-character form of ESC [.
  EXPECT_EQ(json("\xE2\x82\xAC"), "\"\xE2\x82\xAC\"");
  EXPECT_EQ(json("x\xFFy"), "\"x\xEF\xBF\xBDy\"");
  EXPECT_EQ(json("\xE2\x82"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

std::string time(std::int64_t ms) {
  std::string out;
  append_rfc3339(out, ms);
  return out;
}

TEST(Rfc3339, IsUtcWithMilliseconds) {
  EXPECT_EQ(time(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(time(-1), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(time(1'709'164'800'007), "2024-02-29T00:00:00.007Z");
  EXPECT_EQ(time(INT64_MAX), "9999-12-31T23:59:59.999Z");
}

}  // namespace
}  // namespace glovebox
