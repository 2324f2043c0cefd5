#include "api/common/routes.h"

#include <gtest/gtest.h>

namespace glovebox::api {
namespace {

const RouteSpec kSpecs[] = {
    {"GET", "/health"},     {"GET", "/box"},           {"POST", "/box"},
    {"GET", "/box/{id}"},   {"POST", "/box/{id}/run"}, {"GET", "/box/{id}/p/{pid}"},
    {"GET", "/box/{id}/p"},
};

TEST(RouteTable, FindsByMethodAndPath) {
  const RouteTable table(kSpecs);
  const auto run = table.find("POST", "/box/b1/run");
  ASSERT_TRUE(run);
  EXPECT_EQ(run->index, 4U);
  EXPECT_EQ(run->params[0], "b1");
  const auto process = table.find("GET", "/box/b1/p/7");
  ASSERT_TRUE(process);
  EXPECT_EQ(process->index, 5U);
  EXPECT_EQ(process->params[1], "7");
  EXPECT_EQ(table.find("HEAD", "/health")->index, 0U);
}

TEST(RouteTable, AKnownPathWithAnotherMethodTellsWhatItTakes) {
  const RouteTable table(kSpecs);
  const auto match = table.find("DELETE", "/box");
  ASSERT_TRUE(match);
  EXPECT_FALSE(match->index);
  EXPECT_EQ(match->allow, "GET, HEAD, POST");
  EXPECT_EQ(table.find("HEAD", "/box/b1/run")->allow, "POST");
  EXPECT_FALSE(table.find("get", "/health")->index);
}

TEST(RouteTable, OnlyTheExactPathMatches) {
  const RouteTable table(kSpecs);
  for (const char* path : {"", "/", "health", "/health/", "//health", "/Health", "/healt%68",
                           "/health;x", "/box/", "/box//run", "/box/a/b/run", "/box/../health",
                           "/box/a/run/", "/box/a/p/", "/box/a/p/1/2"}) {
    EXPECT_FALSE(table.find("GET", path)) << path;
  }
}

TEST(RouteTableDeathTest, ARouteIsThereOnce) {
  const RouteSpec twice[] = {{"GET", "/a/{x}"}, {"GET", "/a/{y}"}};
  EXPECT_DEATH(RouteTable{twice}, "is there twice");
}

TEST(SandboxIdForm, IsExact) {
  EXPECT_TRUE(parse_sandbox_id("sb-0123456789abcdefghij"));
  for (const char* bad :
       {"", "sb-", "sb-0123456789abcdefghi", "sb-0123456789abcdefghijk", "SB-0123456789abcdefghij",
        "sb-0123456789ABCDEFGHIJ", "sb-0123456789abcdef%2Fj", "sb-0123456789abcdef/../",
        "sb-0123456789abcdefghi\n", "xx-0123456789abcdefghij"}) {
    EXPECT_FALSE(parse_sandbox_id(bad)) << bad;
  }
}

TEST(Port, IsPlainDecimal) {
  EXPECT_EQ(parse_port("1"), 1);
  EXPECT_EQ(parse_port("65535"), 65535);
  for (const char* bad :
       {"", "0", "00", "080", "65536", "-1", "+1", " 1", "1 ", "0x1", "1e2", "1.0"}) {
    EXPECT_FALSE(parse_port(bad)) << bad;
  }
}

}  // namespace
}  // namespace glovebox::api
