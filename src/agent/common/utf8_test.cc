#include "agent/common/utf8.h"

#include <gtest/gtest.h>

namespace glovebox::agent {
namespace {

struct Case {
  const char* text;
  std::size_t tail;
};

TEST(IncompleteTail, IsWhatMayStillBecomeOneCharacter) {
  const Case cases[] = {
      {"", 0},
      {"abc", 0},
      {"é", 0},
      {"a\xc3", 1},
      {"\xe2\x82", 2},
      {"x\xe2", 1},
      {"🙂", 0},
      {"\xf0\x9f\x99", 3},
      {"\xf0\x9f", 2},
      {"\xff", 0},      // Never begins a character.
      {"\xc0", 0},      // Overlong.
      {"\xe0\x80", 0},  // Overlong.
      {"\xed\xa0", 0},  // A surrogate.
      {"\xf4\x90", 0},  // Above U+10FFFF.
      {"\xf5", 0},
      {"\x80\x80\x80", 0},  // Continuations of nothing.
      {"\xe2\x82\xac\xe2", 1},
  };
  for (const Case& c : cases) EXPECT_EQ(incomplete_tail(c.text), c.tail) << c.text;
}

}  // namespace
}  // namespace glovebox::agent
