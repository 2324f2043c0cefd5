#include "os/cgroup.h"

#include <gtest/gtest.h>

namespace glovebox::os {
namespace {

TEST(Cgroups, HybridGivesEachItsOwnPlace) {
  const auto c = parse_cgroups(
      "30 24 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
      "31 24 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
      "32 24 0:28 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n"
      "33 24 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
      "34 24 0:30 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n",
      "8:pids:/\n4:memory:/api/x\n1:cpu:/\n0::/\n");
  EXPECT_EQ(c.unified.dir(), "/sys/fs/cgroup/unified");
  EXPECT_EQ(c.memory.dir(), "/sys/fs/cgroup/memory/api/x");
  EXPECT_EQ(c.cpu.dir(), "/sys/fs/cgroup/cpu");
  EXPECT_TRUE(c.has_v1());
}

TEST(Cgroups, JoinedControllersAreFound) {
  const auto c = parse_cgroups("31 24 0:27 / /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n",
                               "5:cpu,cpuacct:/a\n");
  EXPECT_EQ(c.cpu.dir(), "/cg/cpu,cpuacct/a");
  EXPECT_FALSE(c.has_v1());
}

TEST(Cgroups, VersionTwoAlone) {
  const auto c =
      parse_cgroups("25 24 0:22 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
                    "0::/user.slice/user-0.slice/session-1.scope\n");
  EXPECT_EQ(c.unified.dir(), "/sys/fs/cgroup/user.slice/user-0.slice/session-1.scope");
  EXPECT_FALSE(c.has_v1());
}

TEST(Cgroups, AMountOfASubtreeCountsFromItsRoot) {
  const auto c = parse_cgroups("25 24 0:22 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n",
                               "0::/docker/abc/inner\n");
  EXPECT_EQ(c.unified.dir(), "/sys/fs/cgroup/inner");
}

TEST(Cgroups, BrokenLinesAreSkipped) {
  const auto c = parse_cgroups("nonsense\n1 2 - cgroup2\n\n", "x\n::\n");
  EXPECT_TRUE(c.unified.mount.empty());
}

}  // namespace
}  // namespace glovebox::os
