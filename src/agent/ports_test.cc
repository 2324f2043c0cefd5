#include "agent/ports.h"

#include <gtest/gtest.h>

namespace glovebox::agent {
namespace {

constexpr char kTcp[] =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n"
    "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 "
    "4711 1 0000000000000000 100 0 0 10 0\n"
    "   1: 0100007F:1F91 0100007F:1234 01 00000000:00000000 00:00000000 00000000     0        0 "
    "4712 1 0000000000000000 20 4 30 10 -1\n"
    "garbage 0A\n"
    "   2: ZZ:1 0 0A 0 0 0 0 0 0\n";
constexpr char kTcp6[] =
    "   0: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A "
    "00000000:00000000 00:00000000 00000000     0        0 99 1 0 100 0 0 10 0\n";

TEST(Ports, AreThoseThatListen) {
  const auto ports = parse_proc_net_tcp(kTcp);
  ASSERT_EQ(ports.size(), 1U);
  EXPECT_EQ(ports[0].port, 8080);
  EXPECT_EQ(ports[0].address, "127.0.0.1");
  EXPECT_EQ(ports[0].inode, 4711U);
  EXPECT_EQ(ports[0].uid, 1000U);
  const auto ports6 = parse_proc_net_tcp(kTcp6);
  ASSERT_EQ(ports6.size(), 1U);
  EXPECT_EQ(ports6[0].port, 80);
  EXPECT_EQ(ports6[0].address, "::1");
}

}  // namespace
}  // namespace glovebox::agent
