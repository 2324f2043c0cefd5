#include "runtime/native/seccomp_policy.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <pty.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace glovebox::native {
namespace {

constexpr int kKilled = -1;

// errno of `call` under the filter, 0 for success, kKilled when the process was ended for it.
int under_filter(const std::function<long()>& call) {
  auto program = compile_seccomp_policy();
  EXPECT_TRUE(program) << program.error().text();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::sock_fprog prog{static_cast<unsigned short>(program->size()), program->data()};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) ::_exit(200);
    if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) != 0) ::_exit(201);
    ::_exit(call() < 0 ? errno : 0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : kKilled;
}

struct Case {
  const char* name;
  int expected;
  std::function<long()> call;
};

class SeccompTest : public testing::TestWithParam<Case> {};

TEST_P(SeccompTest, Answers) { EXPECT_EQ(under_filter(GetParam().call), GetParam().expected); }

long ioctl_on_pty(unsigned long request) {
  int master = 0;
  int slave = 0;
  if (::openpty(&master, &slave, nullptr, nullptr, nullptr) != 0) return -1;
  char c = 'x';
  return ::syscall(SYS_ioctl, slave, request, &c);
}

const Case kCases[] = {
    {"PlainWorkGoesOn", 0, [] { return ::syscall(SYS_getcwd, nullptr, 0) < 0 ? 0L : 0L; }},
    {"UnixSockets", 0, [] { return ::syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0); }},
    {"InetSockets", 0, [] { return ::syscall(SYS_socket, AF_INET6, SOCK_STREAM, 0); }},
    {"RouteNetlink", 0, [] { return ::syscall(SYS_socket, AF_NETLINK, SOCK_RAW, 0); }},
    {"OtherNetlink", EPROTONOSUPPORT,
     [] { return ::syscall(SYS_socket, AF_NETLINK, SOCK_RAW, 12); }},
    {"Vsock", EAFNOSUPPORT, [] { return ::syscall(SYS_socket, 40, SOCK_STREAM, 0); }},
    {"PacketSockets", EAFNOSUPPORT, [] { return ::syscall(SYS_socket, 17, SOCK_RAW, 0); }},
    {"KernelCrypto", EAFNOSUPPORT, [] { return ::syscall(SYS_socket, 38, SOCK_SEQPACKET, 0); }},
    {"Ax25", EAFNOSUPPORT, [] { return ::syscall(SYS_socket, 3, SOCK_DGRAM, 0); }},
    {"Threads", 0, [] { return ::syscall(SYS_unshare, CLONE_FS); }},
    {"UserNamespace", EPERM, [] { return ::syscall(SYS_unshare, CLONE_NEWUSER); }},
    {"NetNamespace", EPERM, [] { return ::syscall(SYS_unshare, CLONE_NEWNET | CLONE_NEWNS); }},
    {"TimeNamespace", EPERM, [] { return ::syscall(SYS_unshare, CLONE_NEWTIME); }},
    {"CloneUserNamespace", EPERM,
     [] { return ::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0); }},
    {"ClonePidNamespace", EPERM,
     [] { return ::syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0); }},
    {"IoUring", ENOSYS, [] { return ::syscall(SYS_io_uring_setup, 1, nullptr); }},
    {"Bpf", EPERM, [] { return ::syscall(SYS_bpf, 0, nullptr, 0); }},
    {"Perf", EPERM, [] { return ::syscall(SYS_perf_event_open, nullptr, 0, 0, 0, 0); }},
    {"Userfaultfd", EPERM, [] { return ::syscall(SYS_userfaultfd, 1); }},
    {"Keyrings", EPERM, [] { return ::syscall(SYS_keyctl, 0, -3, 0); }},
    {"Mount", EPERM, [] { return ::syscall(SYS_mount, "x", "/tmp", "tmpfs", 0, nullptr); }},
    {"OpenTree", EPERM, [] { return ::syscall(SYS_open_tree, AT_FDCWD, "/", 0); }},
    {"FileHandles", EPERM, [] { return ::syscall(SYS_open_by_handle_at, -1, nullptr, 0); }},
    {"Modules", kKilled, [] { return ::syscall(SYS_init_module, nullptr, 0, ""); }},
    {"Kexec", kKilled, [] { return ::syscall(SYS_kexec_load, 0, 0, nullptr, 0); }},
    {"OtherArchitecture", kKilled, [] { return ::syscall(0x40000000 + SYS_getpid); }},
    {"TypingIntoATerminal", EPERM, [] { return ioctl_on_pty(TIOCSTI); }},
    {"TypingWithHighBitsSet", EPERM, [] { return ioctl_on_pty(TIOCSTI | (1UL << 40)); }},
    {"OrdinaryIoctl", 0, [] { return ioctl_on_pty(TIOCGPGRP) < 0 ? 0L : 0L; }},
    {"Personality", ENOSYS, [] { return ::syscall(SYS_personality, 8); }},
    {"AskingForThePersonality", 0, [] { return ::syscall(SYS_personality, 0xffffffff); }},
    {"ACallFromTheFuture", ENOSYS, [] { return ::syscall(9999); }},
};

INSTANTIATE_TEST_SUITE_P(Calls, SeccompTest, testing::ValuesIn(kCases),
                         [](const auto& c) { return std::string(c.param.name); });

}  // namespace
}  // namespace glovebox::native
