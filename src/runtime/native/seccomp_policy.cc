#include "runtime/native/seccomp_policy.h"

#include <linux/sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "os/sys.h"

namespace glovebox::native {
namespace {

// Harmless in any combination of arguments: they act on the caller's own namespaces, files and
// memory, and the kernel checks them like those of any unprivileged user.
// clang-format off
constexpr const char* kAllowed[] = {
    // Files.
    "access", "chdir", "chmod", "chown", "close", "close_range", "copy_file_range", "creat", "dup",
    "dup2", "dup3", "faccessat", "faccessat2", "fadvise64", "fallocate", "fchdir", "fchmod",
    "fchmodat", "fchown", "fchownat", "fcntl", "fdatasync", "fgetxattr", "flistxattr", "flock",
    "fremovexattr", "fsetxattr", "fstat", "fstatfs", "fsync", "ftruncate", "futimesat", "getcwd",
    "getdents", "getdents64", "getxattr", "inotify_add_watch", "inotify_init", "inotify_init1",
    "inotify_rm_watch", "lchown", "lgetxattr", "link", "linkat", "listxattr", "llistxattr",
    "lremovexattr", "lseek", "lsetxattr", "lstat", "mkdir", "mkdirat", "mknod", "mknodat",
    "newfstatat", "open", "openat", "openat2", "pread64", "preadv", "preadv2", "pwrite64",
    "pwritev", "pwritev2", "read", "readahead", "readlink", "readlinkat", "readv", "removexattr",
    "rename", "renameat", "renameat2", "rmdir", "sendfile", "setxattr", "splice", "stat", "statfs",
    "statx", "symlink", "symlinkat", "sync", "sync_file_range", "syncfs", "tee", "truncate",
    "umask", "unlink", "unlinkat", "utime", "utimensat", "utimes", "vmsplice", "write", "writev",
    // Memory.
    "brk", "madvise", "membarrier", "memfd_create", "mincore", "mlock", "mlock2", "mlockall",
    "mmap", "mprotect", "mremap", "msync", "munlock", "munlockall", "munmap", "pkey_alloc",
    "pkey_free", "pkey_mprotect", "process_madvise", "process_mrelease", "remap_file_pages",
    // NUMA placement of the caller's own memory: numeric libraries and JVMs ask for it.
    "get_mempolicy", "mbind", "set_mempolicy", "set_mempolicy_home_node",
    // Processes, within the sandbox's own pid namespace.
    "capget", "capset", "clone3", "execve", "execveat", "exit", "exit_group", "fork", "getcpu",
    "getegid", "geteuid", "getgid", "getgroups", "getpgid", "getpgrp", "getpid", "getppid",
    "getpriority", "getresgid", "getresuid", "getrlimit", "getrusage", "getsid", "gettid", "getuid",
    "ioprio_get", "ioprio_set", "kill", "pidfd_getfd", "pidfd_open", "pidfd_send_signal", "prctl",
    "prlimit64", "sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity",
    "sched_getattr", "sched_getparam", "sched_getscheduler", "sched_rr_get_interval",
    "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler", "sched_yield",
    "setfsgid", "setfsuid", "setgid", "setgroups", "setpgid", "setpriority", "setregid",
    "setresgid", "setresuid", "setreuid", "setrlimit", "setsid", "setuid", "tgkill", "times",
    "tkill", "vfork", "wait4", "waitid",
    // Debuggers: pid namespace and ids keep them to the sandbox; the agent is not dumpable.
    "process_vm_readv", "process_vm_writev", "ptrace",
    // A program may confine itself further.
    "landlock_add_rule", "landlock_create_ruleset", "landlock_restrict_self", "seccomp",
    // Threads, signals, time.
    "alarm", "arch_prctl", "clock_getres", "clock_gettime", "clock_nanosleep", "futex",
    "futex_waitv", "get_robust_list", "get_thread_area", "getitimer", "gettimeofday", "nanosleep",
    "pause", "restart_syscall", "rseq", "rt_sigaction", "rt_sigpending", "rt_sigprocmask",
    "rt_sigqueueinfo", "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait", "rt_tgsigqueueinfo",
    "set_robust_list", "set_thread_area", "set_tid_address", "setitimer", "sigaltstack", "signalfd",
    "signalfd4", "time", "timer_create", "timer_delete", "timer_getoverrun", "timer_gettime",
    "timer_settime", "timerfd_create", "timerfd_gettime", "timerfd_settime",
    // Waiting, pipes, sockets (socket() itself is below).
    "accept", "accept4", "bind", "connect", "epoll_create", "epoll_create1", "epoll_ctl",
    "epoll_ctl_old", "epoll_pwait", "epoll_pwait2", "epoll_wait", "epoll_wait_old", "eventfd",
    "eventfd2", "getpeername", "getsockname", "getsockopt", "listen", "pipe", "pipe2", "poll",
    "ppoll", "pselect6", "recvfrom", "recvmmsg", "recvmsg", "select", "sendmmsg", "sendmsg",
    "sendto", "setsockopt", "shutdown",
    // System V and POSIX IPC, in the sandbox's own ipc namespace; old Linux AIO.
    "io_cancel", "io_destroy", "io_getevents", "io_pgetevents", "io_setup", "io_submit",
    "mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedsend", "mq_unlink",
    "msgctl", "msgget", "msgrcv", "msgsnd", "semctl", "semget", "semop", "semtimedop", "shmat",
    "shmctl", "shmdt", "shmget",
    // Facts.
    "getrandom", "sysinfo", "uname",
};
// clang-format on

// Newer than the libseccomp of Debian 12 knows by name; x86-64 and arm64 share these numbers.
constexpr int kAllowedByNumber[] = {
    451,            // cachestat
    452,            // fchmodat2
    454, 455, 456,  // futex_wake, futex_wait, futex_requeue
    462,            // mseal
};

// Real power or a large kernel surface, and a program may be written to do without.
// clang-format off
constexpr const char* kRefused[] = {
    "acct", "add_key", "adjtimex", "bpf", "chroot", "clock_adjtime", "clock_settime",
    "fanotify_init", "fanotify_mark", "fsconfig", "fsmount", "fsopen", "fspick", "get_kernel_syms",
    "ioperm", "iopl", "kcmp", "keyctl", "lookup_dcookie", "migrate_pages", "mount", "mount_setattr",
    "move_mount", "move_pages", "name_to_handle_at", "nfsservctl", "open_by_handle_at", "open_tree",
    "perf_event_open", "pivot_root", "quotactl", "quotactl_fd", "request_key", "setdomainname",
    "sethostname", "setns", "settimeofday", "swapoff", "swapon", "syslog", "umount2", "userfaultfd",
    "vhangup",
};
// clang-format on

// Nobody tries these by accident.
// clang-format off
constexpr const char* kKilled[] = {
    "delete_module", "finit_module", "init_module", "kexec_file_load", "kexec_load", "reboot",
};
// clang-format on

constexpr std::uint64_t kNewNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                         CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
// Shares its bit with CSIGNAL in clone(2), so only unshare(2) can ask for it.
constexpr std::uint64_t kNewTime = CLONE_NEWTIME;

scmp_arg_cmp when(unsigned arg, scmp_compare op, scmp_datum_t a, scmp_datum_t b = 0) {
  return {arg, op, a, b};
}
// The bits of `mask` in argument `arg` are those of `value`.
scmp_arg_cmp masked(unsigned arg, scmp_datum_t mask, scmp_datum_t value) {
  return when(arg, SCMP_CMP_MASKED_EQ, mask, value);
}

class Policy {
 public:
  Policy() : context_(seccomp_init(SCMP_ACT_ERRNO(ENOSYS)), seccomp_release) {}
  explicit operator bool() const { return context_ != nullptr; }
  int error() const { return error_; }
  void* context() const { return context_.get(); }

  void attribute(scmp_filter_attr attr, std::uint32_t value) {
    note(seccomp_attr_set(context_.get(), attr, value), "attribute");
  }
  // Unknown to this architecture or library: the default (ENOSYS) already refuses it.
  template <class... Cmp>
  void rule(std::uint32_t action, const char* name, Cmp... cmp) {
    const int number = seccomp_syscall_resolve_name(name);
    if (number != __NR_SCMP_ERROR) rule(action, number, cmp...);
  }
  template <class... Cmp>
  void rule(std::uint32_t action, int number, Cmp... cmp) {
    note(seccomp_rule_add(context_.get(), action, number, sizeof...(cmp), cmp...),
         std::to_string(number));
  }
  const std::string& failed() const { return failed_; }

 private:
  void note(int result, const std::string& what) {
    if (result == 0 || error_ != 0) return;
    error_ = -result;
    failed_ = what;
  }

  std::unique_ptr<void, void (*)(scmp_filter_ctx)> context_;
  int error_ = 0;
  std::string failed_;
};

void namespaces(Policy& p) {
  p.rule(SCMP_ACT_ALLOW, "clone", masked(0, kNewNamespaces, 0));
  p.rule(SCMP_ACT_ALLOW, "unshare", masked(0, kNewNamespaces | kNewTime, 0));
  p.rule(SCMP_ACT_ERRNO(EPERM), "unshare", masked(0, kNewTime, kNewTime));
  for (std::uint64_t bit = 1; bit <= kNewNamespaces; bit <<= 1) {
    if ((kNewNamespaces & bit) == 0) continue;
    p.rule(SCMP_ACT_ERRNO(EPERM), "clone", masked(0, bit, bit));
    p.rule(SCMP_ACT_ERRNO(EPERM), "unshare", masked(0, bit, bit));
  }
}

// Families that stay inside a network namespace and have seen use. Not AF_VSOCK, which no
// namespace contains, nor AF_ALG, AF_PACKET, AF_XDP, AF_TIPC and the other large surfaces.
void sockets(Policy& p) {
  constexpr scmp_datum_t kNetlinkRoute = 0;
  for (const char* call : {"socket", "socketpair"}) {
    for (scmp_datum_t family = 0; family < AF_NETLINK; ++family) {
      const bool known = family == AF_UNIX || family == AF_INET || family == AF_INET6;
      p.rule(known ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(EAFNOSUPPORT), call,
             when(0, SCMP_CMP_EQ, family));
    }
    p.rule(SCMP_ACT_ERRNO(EAFNOSUPPORT), call, when(0, SCMP_CMP_GT, AF_NETLINK));
    const scmp_arg_cmp netlink = when(0, SCMP_CMP_EQ, AF_NETLINK);
    p.rule(SCMP_ACT_ALLOW, call, netlink, when(2, SCMP_CMP_EQ, kNetlinkRoute));
    p.rule(SCMP_ACT_ERRNO(EPROTONOSUPPORT), call, netlink, when(2, SCMP_CMP_NE, kNetlinkRoute));
  }
}

// Refuses typing into a terminal's input queue (TIOCSTI, CVE-2017-5226) and the console's own such
// call (TIOCLINUX), and allows every other request. The kernel reads the low 32 bits only, so the
// comparisons must; and libseccomp has no "masked not equal", so the rest is put together from
// what differs in a bit that both numbers share, and from the six values between them.
void terminals(Policy& p) {
  constexpr scmp_datum_t kSti = TIOCSTI;
  constexpr scmp_datum_t kLinux = 0x541C;
  constexpr scmp_datum_t kLow = 0xffffffff;
  constexpr scmp_datum_t kShared = kLow & ~(kSti ^ kLinux);
  for (scmp_datum_t bit = 1; bit <= kLow; bit <<= 1) {
    if ((kShared & bit) != 0) p.rule(SCMP_ACT_ALLOW, "ioctl", masked(1, bit, ~kSti & bit));
  }
  constexpr scmp_datum_t kOwn = kSti ^ kLinux;
  for (scmp_datum_t own = 0; own <= kOwn; own += 2) {
    const scmp_datum_t request = (kSti & kShared) | own;
    const bool refused = request == kSti || request == kLinux;
    p.rule(refused ? SCMP_ACT_ERRNO(EPERM) : SCMP_ACT_ALLOW, "ioctl", masked(1, kLow, request));
  }
}
static_assert((TIOCSTI ^ 0x541C) == 0b1110, "terminals() counts through these bits by twos");

// 32-bit personalities and READ_IMPLIES_EXEC stay out; debuggers turn address randomisation off.
void personalities(Policy& p) {
  constexpr scmp_datum_t kNoRandomize = 0x0040000;
  constexpr scmp_datum_t kQuery = 0xffffffff;
  for (const scmp_datum_t value : {scmp_datum_t{0}, kNoRandomize, kQuery}) {
    p.rule(SCMP_ACT_ALLOW, "personality", when(0, SCMP_CMP_EQ, value));
  }
}

Result<std::vector<sock_filter>> exported(const Policy& p) {
  const UniqueFd file(::memfd_create("seccomp", MFD_CLOEXEC));
  if (!file) return Error::from_errno(errno, "memfd_create");
  if (const int r = seccomp_export_bpf(p.context(), file.get()); r != 0) {
    return Error::from_errno(-r, "seccomp_export_bpf");
  }
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  std::vector<sock_filter> program(static_cast<std::size_t>(size) / sizeof(sock_filter));
  if (::pread(file.get(), program.data(), static_cast<std::size_t>(size), 0) != size) {
    return Error(Errc::kInternal, "seccomp program: short read");
  }
  return program;
}

}  // namespace

Result<std::vector<sock_filter>> compile_seccomp_policy() {
  Policy p;
  if (!p) return Error(Errc::kInternal, "seccomp_init failed");
  // Calls of another architecture (32-bit, x32) reach code that the list below does not describe.
  p.attribute(SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  p.attribute(SCMP_FLTATR_CTL_OPTIMIZE, 2);  // A binary tree: a tenth of the steps of a list.
  for (const char* name : kAllowed) p.rule(SCMP_ACT_ALLOW, name);
  for (const int number : kAllowedByNumber) p.rule(SCMP_ACT_ALLOW, number);
  for (const char* name : kRefused) p.rule(SCMP_ACT_ERRNO(EPERM), name);
  for (const char* name : kKilled) p.rule(SCMP_ACT_KILL_PROCESS, name);
  namespaces(p);
  sockets(p);
  terminals(p);
  personalities(p);
  if (p.error() != 0) return Error::from_errno(p.error(), "seccomp rule for " + p.failed());
  return exported(p);
}

}  // namespace glovebox::native
