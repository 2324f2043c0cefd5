#include "agent/files/byte_range.h"

#include <gtest/gtest.h>

namespace glovebox::agent {
namespace {

struct Case {
  const char* header;
  std::uint64_t file_size;
  RangeKind kind;
  std::uint64_t first;
  std::uint64_t size;
};

TEST(ByteRange, FollowsRfc9110) {
  const Case cases[] = {
      {"", 10, RangeKind::kNone, 0, 0},
      {"bytes=0-0", 10, RangeKind::kOne, 0, 1},
      {"bytes=2-4", 10, RangeKind::kOne, 2, 3},
      {"bytes=5-", 10, RangeKind::kOne, 5, 5},
      {"bytes=5-999", 10, RangeKind::kOne, 5, 5},
      {"bytes=-3", 10, RangeKind::kOne, 7, 3},
      {"bytes=-99", 10, RangeKind::kOne, 0, 10},
      {"bytes=-0", 10, RangeKind::kUnsatisfiable, 0, 0},
      {"bytes=10-", 10, RangeKind::kUnsatisfiable, 0, 0},
      {"bytes=0-", 0, RangeKind::kUnsatisfiable, 0, 0},
      {"bytes=4-2", 10, RangeKind::kNone, 0, 0},
      {"bytes=0-1,3-4", 10, RangeKind::kNone, 0, 0},
      {"bytes=a-b", 10, RangeKind::kNone, 0, 0},
      {"bytes=-", 10, RangeKind::kNone, 0, 0},
      {"bytes=99999999999999999999-", 10, RangeKind::kNone, 0, 0},
      {"lines=1-2", 10, RangeKind::kNone, 0, 0},
      {"bytes=0-18446744073709551615", 10, RangeKind::kOne, 0, 10},
  };
  for (const Case& c : cases) {
    ByteRange range;
    EXPECT_EQ(parse_range(c.header, c.file_size, range), c.kind) << c.header;
    if (c.kind != RangeKind::kOne) continue;
    EXPECT_EQ(range.first, c.first) << c.header;
    EXPECT_EQ(range.size, c.size) << c.header;
  }
}

}  // namespace
}  // namespace glovebox::agent
