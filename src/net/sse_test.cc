#include "net/sse.h"

#include <gtest/gtest.h>

namespace glovebox::net {
namespace {

std::string show(const std::vector<SseEvent>& events) {
  std::string out;
  for (const SseEvent& e : events) out += "[" + e.event + "|" + e.data + "|" + e.id + "]";
  return out;
}

TEST(FormatSse, WritesOneFieldALine) {
  struct Case {
    SseEvent event;
    const char* text;
  };
  const Case cases[] = {
      {{"", "a", ""}, "data: a\n\n"},
      {{"e", "a", "1"}, "event: e\nid: 1\ndata: a\n\n"},
      {{"", "a\nb", ""}, "data: a\ndata: b\n\n"},
      {{"", "a\r\nb\rc", ""}, "data: a\ndata: b\ndata: c\n\n"},
      {{"", "a\n", ""}, "data: a\ndata: \n\n"},
      {{"", "", ""}, "data: \n\n"},
      {{"e\nid: 9", "a", "1\r\ndata: x"}, "event: eid: 9\nid: 1data: x\ndata: a\n\n"},
  };
  for (const Case& c : cases) EXPECT_EQ(format_sse(c.event), c.text);
}

struct ParseCase {
  const char* name;
  const char* text;
  const char* events;
};

class ParsesSse : public ::testing::TestWithParam<ParseCase> {};

// However the bytes are cut.
TEST_P(ParsesSse, InAnyPieces) {
  const std::string text = GetParam().text;
  for (std::size_t size = 1; size <= text.size(); ++size) {
    SseParser parser;
    std::vector<SseEvent> events;
    for (std::size_t at = 0; at < text.size(); at += size) {
      for (SseEvent& event : parser.feed(std::string_view(text).substr(at, size))) {
        events.push_back(std::move(event));
      }
    }
    EXPECT_EQ(show(events), GetParam().events) << "in pieces of " << size;
    EXPECT_FALSE(parser.failed());
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, ParsesSse,
    ::testing::Values(ParseCase{"OneLine", "data: a\n\n", "[|a|]"},
                      ParseCase{"AllFields", "event: e\nid: 1\ndata: a\n\n", "[e|a|1]"},
                      ParseCase{"SeveralDataLines", "data: a\ndata: b\n\n", "[|a\nb|]"},
                      ParseCase{"CarriageReturns", "data: a\r\rdata: b\r\n\r\n", "[|a|][|b|]"},
                      ParseCase{"MixedLineEnds", "data: a\r\ndata: b\rdata: c\n\n", "[|a\nb\nc|]"},
                      ParseCase{"Comments", ": x\n\n:\ndata: a\n\n", "[|a|]"},
                      ParseCase{"NoSpace", "data:a\n\n", "[|a|]"},
                      ParseCase{"OneSpaceOnly", "data:  a\n\n", "[| a|]"},
                      ParseCase{"NoColon", "data\n\n", "[||]"},
                      ParseCase{"EventWithoutData", "event: e\n\ndata: a\n\n", "[|a|]"},
                      ParseCase{"IdStays", "id: 1\ndata: a\n\ndata: b\n\n", "[|a|1][|b|1]"},
                      ParseCase{"UnknownFields", "retry: 5\nx: y\ndata: a\n\n", "[|a|]"},
                      ParseCase{"Unfinished", "data: a\n\ndata: b\n", "[|a|]"},
                      ParseCase{"ByteOrderMark",
                                "\xEF\xBB\xBF"
                                "data: a\n\n",
                                "[|a|]"}),
    [](const auto& c) { return std::string(c.param.name); });

TEST(SseParser, GivesBackWhatWasFormatted) {
  const SseEvent event{"stdout", "{\"text\":\"a\\n\"}\nb\n", "77"};
  SseParser parser;
  EXPECT_EQ(show(parser.feed(format_sse(event))), show({event}));
  EXPECT_EQ(show(parser.feed(sse_heartbeat())), "");
}

TEST(SseParser, FailsOnAnEventWithoutEnd) {
  SseParser parser;
  const std::string block = "data: " + std::string(1 << 20, 'x') + "\n";
  for (int i = 0; i < 5 && !parser.failed(); ++i) EXPECT_TRUE(parser.feed(block).empty());
  EXPECT_TRUE(parser.failed());
  EXPECT_TRUE(parser.feed("\n\ndata: a\n\n").empty());
}

TEST(SseParser, FailsOnALineWithoutEnd) {
  SseParser parser;
  const std::string block(1 << 20, 'x');
  for (int i = 0; i < 5 && !parser.failed(); ++i) EXPECT_TRUE(parser.feed(block).empty());
  EXPECT_TRUE(parser.failed());
}

}  // namespace
}  // namespace glovebox::net
