#include "testing/in_child.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

namespace glovebox::testing {

ChildOutcome run_in_child(const std::function<bool()>& body) {
  constexpr int kRefused = 77;
  const pid_t pid = ::fork();
  if (pid == 0) {
    const int flags = CLONE_NEWNS | (::geteuid() == 0 ? 0 : CLONE_NEWUSER);
    if (::unshare(flags) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
      ::_exit(kRefused);
    }
    ::_exit(body() ? 0 : 1);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
  }
  if (!WIFEXITED(status)) return ChildOutcome::kFailed;
  if (WEXITSTATUS(status) == kRefused) return ChildOutcome::kNamespacesRefused;
  return WEXITSTATUS(status) == 0 ? ChildOutcome::kPassed : ChildOutcome::kFailed;
}

}  // namespace glovebox::testing
