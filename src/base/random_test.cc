#include "base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "base/base64.h"
#include "base/digest.h"

namespace glovebox {
namespace {

TEST(Random, NamesAreOfTheAlphabetAndDiffer) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string name = random_name(20);
    EXPECT_EQ(name.size(), 20U);
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789"), std::string::npos);
    EXPECT_TRUE(seen.insert(name).second);
  }
}

TEST(Random, NoCharacterIsFavoured) {
  std::array<int, 256> counts{};
  for (const char c : random_name(36'000)) ++counts[static_cast<unsigned char>(c)];
  // 1000 expected each, deviation 31: seven of them either way. A plain modulus gives the first
  // four +12 %.
  for (const char c : std::string("abcdefghijklmnopqrstuvwxyz0123456789")) {
    EXPECT_NEAR(counts[static_cast<unsigned char>(c)], 1000, 220) << c;
  }
}

TEST(Digest, AgreesWithFips180) {
  EXPECT_EQ(to_base64(sha256("abc")), "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
}

TEST(Digest, ComparesWholeStrings) {
  EXPECT_TRUE(equal_in_constant_time("abc", "abc"));
  EXPECT_FALSE(equal_in_constant_time("abc", "abd"));
  EXPECT_FALSE(equal_in_constant_time("abc", "ab"));
  EXPECT_TRUE(equal_in_constant_time("", ""));
}

}  // namespace
}  // namespace glovebox
