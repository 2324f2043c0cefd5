#include "runtime/native/user_namespace.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace glovebox::native {
namespace {

constexpr uid_t kBase = 0x70000000;

// Exit code of `body` inside the namespace; 99 when it could not be entered.
int inside(int user_ns, const std::function<int()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(::setns(user_ns, CLONE_NEWUSER) == 0 ? body() : 99);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(UserNamespace, RootInsideIsNobodyOutside) {
  auto ns = make_user_namespace(kBase, true);
  ASSERT_TRUE(ns) << ns.error().text();
  const int fd = ::memfd_create("owner", 0);
  EXPECT_EQ(inside(ns->get(),
                   [&] {
                     if (::setgid(0) != 0 || ::setuid(0) != 0) return 1;
                     return ::fchown(fd, 1000, 1000) == 0 ? 2 : 3;  // Not its file: refused.
                   }),
            3);
  struct stat st;
  ::fstat(fd, &st);
  EXPECT_EQ(st.st_uid, 0U);
  ::close(fd);
}

TEST(UserNamespace, NestedOnesAreRefusedByTheKernelItself) {
  auto guarded = make_user_namespace(kBase, true);
  ASSERT_TRUE(guarded) << guarded.error().text();
  auto open = make_user_namespace(kBase, false);
  ASSERT_TRUE(open) << open.error().text();
  const auto nest = [] { return ::unshare(CLONE_NEWUSER) == 0 ? 0 : errno; };
  const auto as_root = [&] {
    if (::setgid(0) != 0 || ::setuid(0) != 0) return 98;
    return nest();
  };
  EXPECT_EQ(inside(guarded->get(), as_root), ENOSPC);
  EXPECT_EQ(inside(open->get(), as_root), 0);
}

}  // namespace
}  // namespace glovebox::native
