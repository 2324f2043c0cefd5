#include "os/sys.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace glovebox {
namespace {

TEST(Sys, OpenatStaysBeneathTheDirectory) {
  auto dir = os::openat(AT_FDCWD, "/proc/self", O_PATH, 0, os::Resolve::kAnywhere);
  ASSERT_TRUE(dir) << dir.error().text();

  struct Case {
    const char* path;
    bool ok;
  };
  for (const Case& c : {Case{"status", true}, Case{"../1/status", false},
                        Case{"/etc/passwd", false}, Case{"root/etc/passwd", false}}) {
    SCOPED_TRACE(c.path);
    EXPECT_EQ(os::openat(dir->get(), c.path, O_RDONLY).has_value(), c.ok);
  }
}

TEST(Sys, ErrorsNameTheCallAndItsSubject) {
  auto fd = os::openat(AT_FDCWD, "/no/such", O_RDONLY, 0, os::Resolve::kAnywhere);
  ASSERT_FALSE(fd);
  EXPECT_EQ(fd.error().code(), Errc::kNotFound);
  EXPECT_EQ(std::move(fd).context("load config").error().text(),
            "load config: openat2 /no/such: No such file or directory");
}

TEST(Sys, PidfdSignalsExactlyThatProcess) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    for (;;) ::pause();
  }
  auto pidfd = os::pidfd_open(pid);
  ASSERT_TRUE(pidfd) << pidfd.error().text();
  ASSERT_TRUE(os::pidfd_send_signal(pidfd->get(), SIGKILL));
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(os::pidfd_send_signal(pidfd->get(), SIGKILL).error().code(), Errc::kNotFound);
}

}  // namespace
}  // namespace glovebox
