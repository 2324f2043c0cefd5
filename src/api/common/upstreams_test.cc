#include "api/common/upstreams.h"

#include <gtest/gtest.h>

namespace glovebox::api {
namespace {

using std::chrono::seconds;

SandboxId id(char c) { return SandboxId("sb-" + std::string(20, c)); }

TEST(Upstreams, KeepsOneForEachDestination) {
  Upstreams upstreams({});
  const auto a = upstreams.get(id('a'), 80);
  EXPECT_EQ(upstreams.get(id('a'), 80), a);
  EXPECT_NE(upstreams.get(id('a'), 81), a);
  EXPECT_NE(upstreams.get(id('b'), 80), a);
  EXPECT_EQ(upstreams.size(), 3U);
}

TEST(Upstreams, TheLeastRecentlyUsedGoesWhenThereAreTooMany) {
  Upstreams upstreams({.destinations_max = 2});
  const auto a = upstreams.get(id('a'), 0);
  const auto b = upstreams.get(id('b'), 0);
  upstreams.get(id('a'), 0);
  upstreams.get(id('c'), 0);
  EXPECT_EQ(upstreams.size(), 2U);
  EXPECT_EQ(upstreams.get(id('a'), 0), a);
  EXPECT_NE(upstreams.get(id('b'), 0), b);  // What was held is whole, and made anew here.
}

TEST(Upstreams, AnEndedSandboxIsDroppedWithAllItsPorts) {
  Upstreams upstreams({});
  upstreams.get(id('a'), 0);
  upstreams.get(id('b'), 0);
  upstreams.get(id('a'), 80);
  upstreams.drop(id('a'));
  EXPECT_EQ(upstreams.size(), 1U);
  upstreams.drop(id('a'));
  EXPECT_EQ(upstreams.size(), 1U);
}

TEST(Upstreams, WhatNobodyUsesIsDropped) {
  Upstreams upstreams({.unused_max = seconds(60)});
  upstreams.get(id('a'), 0);
  upstreams.drop_unused(after(seconds(59)));
  EXPECT_EQ(upstreams.size(), 1U);
  upstreams.drop_unused(after(seconds(61)));
  EXPECT_EQ(upstreams.size(), 0U);
}

}  // namespace
}  // namespace glovebox::api
