#include "warden/client/stock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>

namespace glovebox::warden {
namespace {

using std::chrono::seconds;

std::vector<UniqueFd> some(int count) {
  std::vector<UniqueFd> fds;
  fds.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) fds.emplace_back(::eventfd(0, EFD_CLOEXEC));
  return fds;
}

constexpr Deadline kStart{};

TEST(SocketStock, GivesWhatWasPut) {
  SocketStock stock(100, 16);
  EXPECT_FALSE(stock.take("a", Family::kV4, kStart));
  stock.put("a", Family::kV4, some(2), kStart);
  EXPECT_EQ(stock.total(), 2U);
  EXPECT_FALSE(stock.take("a", Family::kV6, kStart));
  EXPECT_FALSE(stock.take("b", Family::kV4, kStart));
  EXPECT_TRUE(stock.take("a", Family::kV4, kStart));
  EXPECT_TRUE(stock.take("a", Family::kV4, kStart));
  EXPECT_FALSE(stock.take("a", Family::kV4, kStart));
  EXPECT_EQ(stock.total(), 0U);
}

TEST(SocketStock, ClosesWhatItDrops) {
  SocketStock stock(100, 16);
  std::vector<UniqueFd> fds = some(1);
  const int fd = fds[0].get();
  stock.put("a", Family::kV4, std::move(fds), kStart);
  EXPECT_GE(::fcntl(fd, F_GETFD), 0);
  stock.drop("a");
  EXPECT_LT(::fcntl(fd, F_GETFD), 0);
  EXPECT_EQ(stock.total(), 0U);
}

TEST(SocketStock, IsBoundedForEachSandbox) {
  SocketStock stock(100, 4);
  stock.put("a", Family::kV4, some(10), kStart);
  stock.put("a", Family::kV6, some(10), kStart);
  EXPECT_EQ(stock.size("a", Family::kV4), 4U);
  EXPECT_EQ(stock.total(), 8U);
}

TEST(SocketStock, IsBoundedInAllAndTheLongestUnusedGivesWay) {
  SocketStock stock(6, 16);
  stock.put("old", Family::kV4, some(3), kStart);
  stock.put("new", Family::kV4, some(3), kStart + seconds(1));
  stock.put("third", Family::kV4, some(3), kStart + seconds(2));
  EXPECT_EQ(stock.size("old", Family::kV4), 0U);
  EXPECT_EQ(stock.size("new", Family::kV4), 3U);
  EXPECT_EQ(stock.size("third", Family::kV4), 3U);
  stock.put("third", Family::kV4, some(50), kStart + seconds(3));
  EXPECT_EQ(stock.total(), 6U);
}

TEST(SocketStock, ForgetsTheUnused) {
  SocketStock stock(100, 16);
  stock.put("a", Family::kV4, some(2), kStart);
  stock.put("b", Family::kV4, some(2), kStart);
  EXPECT_TRUE(stock.take("b", Family::kV4, kStart + seconds(10)));
  stock.drop_unused_since(kStart + seconds(5));
  EXPECT_EQ(stock.size("a", Family::kV4), 0U);
  EXPECT_EQ(stock.size("b", Family::kV4), 1U);
  EXPECT_EQ(stock.total(), 1U);
}

}  // namespace
}  // namespace glovebox::warden
