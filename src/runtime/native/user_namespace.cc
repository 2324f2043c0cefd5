#include "runtime/native/user_namespace.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "os/files.h"

namespace glovebox::native {
namespace {

constexpr std::size_t kStackBytes = 64 << 10;

// Shared with the child, which runs in our memory (CLONE_VM) but never while we do: each side
// waits on a pipe for the other.
struct Exchange {
  uid_t base = 0;
  bool forbid_nested = true;
  int ready = -1;       // The child writes a byte when it is in the new namespace.
  int release = -1;     // The child leaves at its end of file…
  int release_in = -1;  // …which needs its own copy of the other end closed.
};

// Keeps what unshare(2) needs, in a process that is no longer root: the owner of the new
// namespace is the effective uid of its maker.
bool become_owner(uid_t base) {
  if (::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0) return false;
  if (::syscall(SYS_setresgid, base, base, base) != 0) return false;
  if (::syscall(SYS_setresuid, base, base, base) != 0) return false;
  constexpr std::uint32_t kSysAdmin = 1U << CAP_SYS_ADMIN;
  ::__user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  ::__user_cap_data_struct data[2] = {{kSysAdmin, kSysAdmin, 0}, {0, 0, 0}};
  return ::syscall(SYS_capset, &header, data) == 0;
}

bool forbid_nested() {
  const int fd = ::open("/proc/sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool ok = ::write(fd, "0", 1) == 1;
  ::close(fd);
  return ok;
}

// Without CLONE_FILES the child has its own copies of the pipes.
int in_child(void* argument) {
  const auto& x = *static_cast<const Exchange*>(argument);
  char byte = 0;
  ::close(x.release_in);
  if (become_owner(x.base) && ::unshare(CLONE_NEWUSER) == 0 &&
      (!x.forbid_nested || forbid_nested()) && ::write(x.ready, "r", 1) == 1) {
    while (::read(x.release, &byte, 1) < 0 && errno == EINTR) {
    }
  }
  ::syscall(SYS_exit, 0);
  return 0;
}

struct Pipe {
  UniqueFd out;
  UniqueFd in;
};
Result<Pipe> make_pipe() {
  int fds[2];
  GB_TRY(os::retry("pipe2", "", [&] { return ::pipe2(fds, O_CLOEXEC); }));
  return Pipe{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

}  // namespace

Result<UniqueFd> make_user_namespace(uid_t base, bool forbid_nested_ones) {
  GB_TRY_ASSIGN(Pipe ready, make_pipe());
  GB_TRY_ASSIGN(Pipe release, make_pipe());
  Exchange exchange{base, forbid_nested_ones, ready.in.get(), release.out.get(), release.in.get()};
  void* stack = ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) return Error::from_errno(errno, "mmap stack");
  const pid_t pid =
      ::clone(in_child, static_cast<char*>(stack) + kStackBytes, CLONE_VM | SIGCHLD, &exchange);
  const auto finish = [&] {
    release.in.reset();
    if (pid > 0) {
      while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
    ::munmap(stack, kStackBytes);
  };
  if (pid < 0) {
    const int err = errno;
    finish();
    return Error::from_errno(err, "clone");
  }
  // With our copy gone, the end of the child is the end of the pipe.
  ready.in.reset();
  char byte = 0;
  ssize_t n = 0;
  while ((n = ::read(ready.out.get(), &byte, 1)) < 0 && errno == EINTR) {
  }
  const std::string proc = "/proc/" + std::to_string(pid);
  const std::string map = "0 " + std::to_string(base) + " 65536";
  Result<UniqueFd> made = Error(Errc::kDenied, "this kernel refuses a new user namespace");
  if (n == 1) {
    made = [&]() -> Result<UniqueFd> {
      GB_TRY(os::write_file(AT_FDCWD, proc + "/uid_map", map));
      GB_TRY(os::write_file(AT_FDCWD, proc + "/gid_map", map));
      GB_TRY_ASSIGN(const int fd, os::retry("open", proc + "/ns/user", [&] {
                      return ::open((proc + "/ns/user").c_str(), O_RDONLY | O_CLOEXEC);
                    }));
      return UniqueFd(fd);
    }();
  }
  finish();
  return made;
}

}  // namespace glovebox::native
