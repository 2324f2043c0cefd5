#include "agent/exec/child.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/openat2.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>

#include "agent/exec/clone.h"

namespace glovebox::agent {
namespace {

enum class Stage : std::uint8_t { kNone, kStdio, kCgroup, kUser, kCwd, kExec };

// Everything the child needs, as plain memory. The last two fields are its answer.
struct Plan {
  const ChildSpec* spec;
  const char* const* candidates;
  char** args;
  char** env;
  bool enter_cgroup;
  Stage failed_stage;
  int failed_errno;
};

// From here to `run` is the child: no allocation, no lock, nothing that can throw.

[[noreturn]] void fail(Plan* plan, Stage stage, int error) {
  plan->failed_stage = stage;
  plan->failed_errno = error;
  ::_exit(127);
}

void take_stdio(Plan* plan) {
  const ChildSpec& spec = *plan->spec;
  ::setsid();
  if (::dup2(spec.stdin_fd, 0) < 0 || ::dup2(spec.stdout_fd, 1) < 0 ||
      ::dup2(spec.stderr_fd, 2) < 0) {
    fail(plan, Stage::kStdio, errno);
  }
  if (spec.terminal && ::ioctl(0, TIOCSCTTY, 0) != 0) fail(plan, Stage::kStdio, errno);
}

void take_limits() {
  struct rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max < 1024 ? files.rlim_max : 1024;
  ::setrlimit(RLIMIT_NOFILE, &files);
  // So that under memory pressure a command dies and not the agent. Raising needs no privilege;
  // a sandbox without /proc goes without.
  const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd >= 0) {
    [[maybe_unused]] const ssize_t written = ::write(fd, "500", 3);
  }
}

void enter_cgroup(Plan* plan) {
  const int fd = ::openat(plan->spec->cgroup_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
  if (fd < 0 || ::write(fd, "0", 1) != 1) fail(plan, Stage::kCgroup, errno);
}

void become(Plan* plan) {
  // The plain calls: libc's would also change the threads of the memory's other owner.
  const User& user = plan->spec->user;
  if (::syscall(SYS_setgroups, user.groups.size(), user.groups.data()) != 0 ||
      ::syscall(SYS_setresgid, user.gid, user.gid, user.gid) != 0 ||
      ::syscall(SYS_setresuid, user.uid, user.uid, user.uid) != 0) {
    fail(plan, Stage::kUser, errno);
  }
}

int open_directory(const char* path) {
  ::open_how how{};
  how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  // A link like /proc/self/fd/7 could lead out of the root if a descriptor ever leaked.
  how.resolve = RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how));
}

void enter_cwd(Plan* plan) {
  int fd = open_directory(plan->spec->cwd.c_str());
  if (fd < 0 && plan->spec->cwd_may_be_missing) fd = open_directory("/");
  if (fd < 0 || ::fchdir(fd) != 0) fail(plan, Stage::kCwd, errno);
  // The kernel says "(unreachable)" for what lies outside the root (getcwd(2)).
  char path[PATH_MAX];
  const long n = ::syscall(SYS_getcwd, path, sizeof path);
  if (n <= 0 || path[0] != '/') fail(plan, Stage::kCwd, n < 0 ? errno : EXDEV);
}

void execute(Plan* plan) {
  int error = ENOENT;
  for (const char* const* path = plan->candidates; *path != nullptr; ++path) {
    if (plan->spec->args0_is_path) plan->args[0] = const_cast<char*>(*path);
    ::execve(*path, plan->args, plan->env);
    // As execvp(3): one that may not be run is remembered, in case none is found that may.
    if (errno == EACCES) {
      error = EACCES;
    } else if (errno != ENOENT && errno != ENOTDIR) {
      error = errno;
      break;
    }
  }
  fail(plan, Stage::kExec, error);
}

void run(void* context) {
  Plan* plan = static_cast<Plan*>(context);
  take_stdio(plan);
  if (plan->enter_cgroup) enter_cgroup(plan);
  take_limits();
  become(plan);
  enter_cwd(plan);
  ::close_range(3, ~0U, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  execute(plan);
}

// The parent again.

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> list;
  list.reserve(strings.size() + 1);
  for (const std::string& text : strings) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

Error explain(const ChildSpec& spec, Stage stage, int error) {
  const std::string& program = spec.args0_is_path ? spec.candidates.front() : spec.args.front();
  switch (stage) {
    case Stage::kCwd: {
      const std::string text = "\"cwd\" " + spec.cwd + ": " + std::strerror(error);
      return {error == EACCES ? Errc::kDenied : Errc::kInvalid, text};
    }
    case Stage::kUser:
      return {Errc::kInvalid, "\"user\" " + std::to_string(spec.user.uid) + ":" +
                                  std::to_string(spec.user.gid) +
                                  " does not exist here: " + std::strerror(error)};
    case Stage::kExec:
      if (error == ENOEXEC) {
        return {Errc::kInvalid, program + ": neither a program nor a script with a #! line"};
      }
      if (error == E2BIG) return {Errc::kInvalid, program + ": arguments and env are too long"};
      return Error::from_errno(error, program);
    case Stage::kStdio:
    case Stage::kCgroup:
    case Stage::kNone: break;
  }
  return Error::from_errno(error, "start " + program);
}

// pids.max and RLIMIT_NPROC show as EAGAIN.
Error clone_error(int error) {
  if (error == EAGAIN) return {Errc::kExhausted, "no more processes may be started here"};
  return Error::from_errno(error, "clone");
}

}  // namespace

Result<pid_t> spawn_child(const ChildSpec& spec) {
  const std::vector<char*> candidates = pointers(spec.candidates);
  std::vector<char*> args = pointers(spec.args);
  std::vector<char*> env = pointers(spec.env);
  Plan plan{&spec, candidates.data(), args.data(), env.data(), false, Stage::kNone, 0};

  // With all signals blocked the child runs no handler of ours on our memory.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  long pid = clone_like_vfork(run, &plan, spec.cgroup_fd);
  if (pid < 0 && pid != -EAGAIN && spec.cgroup_fd >= 0) {
    // Before Linux 5.7, or where a filter refuses clone3, whose flags it cannot see.
    plan.enter_cgroup = true;
    pid = clone_like_vfork(run, &plan, -1);
  }
  ::sigprocmask(SIG_SETMASK, &before, nullptr);

  if (pid < 0) return clone_error(static_cast<int>(-pid));
  if (plan.failed_stage == Stage::kNone) return static_cast<pid_t>(pid);
  // It is ours until it is waited for, so no reaper can have been first.
  ::waitpid(static_cast<pid_t>(pid), nullptr, 0);
  return explain(spec, plan.failed_stage, plan.failed_errno);
}

void prepare_for_children() {
  ::umask(022);
  const struct rlimit no_core{};
  ::setrlimit(RLIMIT_CORE, &no_core);
}

}  // namespace glovebox::agent
