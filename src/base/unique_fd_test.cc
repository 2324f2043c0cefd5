#include "base/unique_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/strong_id.h"

namespace glovebox {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(UniqueFd, ClosesOnceWhoeverOwnsItLast) {
  UniqueFd a(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int n = a.get();
  {
    UniqueFd b = std::move(a);
    EXPECT_TRUE(is_open(n));
    EXPECT_EQ(b.get(), n);
  }
  EXPECT_FALSE(is_open(n));
}

TEST(UniqueFdDeathTest, DoubleCloseAborts) {
  EXPECT_DEATH(
      {
        UniqueFd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        ::close(fd.get());
      },
      "closed twice");
}

static_assert(!std::is_convertible_v<std::string, SandboxId>);

}  // namespace
}  // namespace glovebox
