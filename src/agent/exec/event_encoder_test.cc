#include "agent/exec/event_encoder.h"

#include <gtest/gtest.h>

namespace glovebox::agent {
namespace {

OutputRing::Piece piece(Channel channel, std::uint64_t cursor, std::string_view bytes) {
  return {channel, cursor, bytes};
}

TEST(EventEncoder, NeverCutsACharacter) {
  EventEncoder encoder;
  std::string out;
  const std::string text = "≤🙂é";
  for (std::size_t i = 0; i < text.size(); ++i) {
    encoder.output(out, piece(Channel::kStdout, i, std::string_view(text).substr(i, 1)));
  }
  EXPECT_EQ(out,
            "event: stdout\ndata: {\"text\":\"≤\",\"cursor\":3}\n\n"
            "event: stdout\ndata: {\"text\":\"🙂\",\"cursor\":7}\n\n"
            "event: stdout\ndata: {\"text\":\"é\",\"cursor\":9}\n\n");
  EXPECT_FALSE(encoder.flush_at());
}

TEST(EventEncoder, GivesBytesThatAreNoTextAsTheyAre) {
  EventEncoder encoder;
  std::string out;
  encoder.output(out, piece(Channel::kStdout, 0, "\xff\xfe"));
  EXPECT_EQ(out, "event: stdout\ndata: {\"b64\":\"//4=\",\"cursor\":2}\n\n");
}

TEST(EventEncoder, FlushesAnOpenCharacterAtTheEnd) {
  EventEncoder encoder;
  std::string out;
  encoder.output(out, piece(Channel::kStdout, 0, "a\xe2\x82"));
  EXPECT_EQ(out, "event: stdout\ndata: {\"text\":\"a\",\"cursor\":1}\n\n");
  EXPECT_TRUE(encoder.flush_at());
  out.clear();
  encoder.exit(out, ExitInfo{});
  EXPECT_EQ(out,
            "event: stdout\ndata: {\"b64\":\"4oI=\",\"cursor\":3}\n\n"
            "event: exit\ndata: {\"exit_code\":0,\"signal\":null,\"timed_out\":false,"
            "\"oom_killed\":false,\"duration_ms\":0}\n\n");
}

TEST(EventEncoder, PromisesNoCursorPastWhatItHoldsBack) {
  EventEncoder encoder;
  std::string out;
  encoder.output(out, piece(Channel::kStdout, 0, "\xe2"));
  encoder.output(out, piece(Channel::kStderr, 1, "x"));
  EXPECT_EQ(out, "event: stderr\ndata: {\"text\":\"x\",\"cursor\":0}\n\n");
}

}  // namespace
}  // namespace glovebox::agent
