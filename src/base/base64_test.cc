#include "base/base64.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace glovebox {
namespace {

struct Case {
  const char* bytes;
  const char* text;
};

// RFC 4648, section 10.
const Case kVectors[] = {{"", ""},
                         {"f", "Zg=="},
                         {"fo", "Zm8="},
                         {"foo", "Zm9v"},
                         {"foob", "Zm9vYg=="},
                         {"fooba", "Zm9vYmE="},
                         {"foobar", "Zm9vYmFy"}};

TEST(Base64, AgreesWithTheRfc) {
  for (const Case& c : kVectors) {
    EXPECT_EQ(to_base64(c.bytes), c.text);
    EXPECT_EQ(from_base64(c.text), c.bytes);
  }
  EXPECT_EQ(to_base64("\xfb\xff"), "+/8=");
  EXPECT_EQ(to_base64url("\xfb\xff"), "-_8");
}

TEST(Base64, GivesBackEveryLength) {
  for (std::size_t n = 0; n < 70; ++n) {
    const std::string bytes = random_bytes(n);
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
    EXPECT_EQ(from_base64url(to_base64url(bytes)), bytes);
  }
}

TEST(Base64, RefusesEveryOtherSpelling) {
  for (const char* text : {"Z", "Zg", "Zg=", "Zg===", "Zh==", "Zm9=", "Zm 9v", "Zm9v\n",
                           "Z===", "====", "-_8=", "Zg==Zg=="}) {
    EXPECT_FALSE(from_base64(text)) << text;
  }
  for (const char* text : {"Z", "Zg==", "Zh", "+/8", "Zm9v="}) {
    EXPECT_FALSE(from_base64url(text)) << text;
  }
}

}  // namespace
}  // namespace glovebox
