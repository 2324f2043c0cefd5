#include "net/url.h"

#include <gtest/gtest.h>

#include <map>

namespace glovebox::net {
namespace {

struct Good {
  const char* target;
  std::vector<std::string> segments;
  std::vector<std::pair<std::string, std::string>> params;
};

TEST(Target, TakesApartWhatIsSound) {
  const Good cases[] = {
      {"/", {""}, {}},
      {"/a", {"a"}, {}},
      {"/a/", {"a", ""}, {}},
      {"//a", {"", "a"}, {}},
      {"/a/b%20c", {"a", "b c"}, {}},
      {"/a+b", {"a+b"}, {}},
      {"/%E2%82%AC", {"\xe2\x82\xac"}, {}},
      {"/a%25%32%66b", {"a%2fb"}, {}},
      {"/...", {"..."}, {}},
      {"/.a/a.", {".a", "a."}, {}},
      {"/a;b=c:d@e!$&'()*,", {"a;b=c:d@e!$&'()*,"}, {}},
      {"/?", {""}, {}},
      {"/a?b=c", {"a"}, {{"b", "c"}}},
      {"/a?b=c&b=d", {"a"}, {{"b", "c"}, {"b", "d"}}},
      {"/a?b=c=d&e&=f&&g=", {"a"}, {{"b", "c=d"}, {"e", ""}, {"", "f"}, {"g", ""}}},
      {"/a?x=1+2%2B3", {"a"}, {{"x", "1 2+3"}}},
      {"/a?path=/../%2e%2e/?", {"a"}, {{"path", "/../../?"}}},
      {"/a?l=k%3Dv%26", {"a"}, {{"l", "k=v&"}}},
      {"/a?x=%0a", {"a"}, {{"x", "\n"}}},
      {"/a?x[]={|}^`", {"a"}, {{"x[]", "{|}^`"}}},
  };
  for (const Good& c : cases) {
    SCOPED_TRACE(c.target);
    Result<Target> target = parse_target(c.target);
    ASSERT_TRUE(target) << target.error().text();
    EXPECT_EQ(target->segments, c.segments);
    EXPECT_EQ(target->params, c.params);
    EXPECT_EQ(target->path + (std::string(c.target).find('?') == std::string::npos ? "" : "?") +
                  target->query,
              c.target);
  }
}

TEST(Target, RefusesWhatTwoReadersCouldTakeApartDifferently) {
  const std::string cases[] = {
      "",
      "a",
      "*",
      "http://a/",
      "/a b",
      "/a\tb",
      "/a\r\nb",
      "/\x7f",
      "/\xff",
      "/a#b",
      "/a\\b",
      "/a\"b",
      "/<a>",
      "/%",
      "/%4",
      "/%zz",
      "/a%4",
      "/a?b=%",
      "/a?%g0=1",
      "/%00",
      "/a%0ab",
      "/%1f",
      "/%7f",
      "/a?b=%00",
      "/.",
      "/..",
      "/a/../b",
      "/a/./b",
      "/%2e",
      "/%2E%2e",
      "/.%2e/a",
      "/a/%2e%2E",
      "/a%2fb",
      "/a%2Fb",
      "/a%5cb",
      "/%2f",
      "/a/..",
      "/../",
      std::string("/a\0b", 4),
      "/" + std::string(9000, 'a'),
  };
  for (const std::string& c : cases) {
    SCOPED_TRACE(c.substr(0, 40));
    const Result<Target> target = parse_target(c);
    ASSERT_FALSE(target);
    EXPECT_EQ(target.error().code(), Errc::kInvalid);
  }
}

TEST(Target, FindsTheFirstParameterOfAName) {
  Result<Target> target = parse_target("/a?b=1&c=2&b=3");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->param("b"), "1");
  EXPECT_EQ(target->param("c"), "2");
  EXPECT_EQ(target->param("d"), std::nullopt);
}

TEST(PercentEncoding, GoesThereAndBack) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  Result<std::string> back = percent_decode(percent_encode(all));
  ASSERT_TRUE(back);
  EXPECT_TRUE(*back == all);
  EXPECT_EQ(percent_encode("aZ09-._~ /%+\xff"), "aZ09-._~%20%2F%25%2B%FF");
  EXPECT_FALSE(percent_decode("%"));
  EXPECT_FALSE(percent_decode("%a"));
  EXPECT_FALSE(percent_decode("%ag"));
}

}  // namespace
}  // namespace glovebox::net
