#include "runtime/native/spawner.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>

#include "os/mount.h"
#include "os/sys.h"
#include "runtime/native/first_process.h"

namespace glovebox::native {
namespace {

constexpr std::size_t kFixedFds = 6;  // root usr dev user_ns listener tracking
constexpr std::size_t kFdsMax = kFixedFds + kCgroupsMax;

// Between two ends of one program, so plain structs.
struct Request {
  std::uint64_t shm_bytes;
  std::uint64_t cpu_mask;
  uid_t uid_base;
  std::uint32_t cgroup_count;
};
struct Reply {
  pid_t pid;  // 0: failed, for the reason below.
  int error;
  char step[64];
};

struct Received {
  Request request{};
  int fds[kFdsMax];
  std::size_t fd_count = 0;
};

// False at the end of the conversation.
bool receive(int socket, Received& in) {
  ::iovec part{&in.request, sizeof in.request};
  alignas(::cmsghdr) char control[CMSG_SPACE(sizeof in.fds)];
  ::msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t n = 0;
  while ((n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {
  }
  in.fd_count = 0;
  if (n != sizeof in.request) return false;
  for (::cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    in.fd_count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    std::memcpy(in.fds, CMSG_DATA(c), in.fd_count * sizeof(int));
  }
  return true;
}

struct Loop {
  int socket;
  int agent;
  const std::vector<sock_filter>* seccomp;
  Unguarded unguarded;
};

std::uint64_t clone_flags(const Unguarded& unguarded) {
  std::uint64_t flags =
      CLONE_VM | CLONE_VFORK | CLONE_NEWNS | CLONE_NEWUTS | CLONE_INTO_CGROUP | CLONE_CLEAR_SIGHAND;
  if (!unguarded.off(Guard::kIpcNamespace)) flags |= CLONE_NEWIPC;
  if (!unguarded.off(Guard::kPidNamespace)) flags |= CLONE_NEWPID;
  if (!unguarded.off(Guard::kNetNamespace)) flags |= CLONE_NEWNET;
  return flags;
}

// Like vfork(2), which has no flags: the child runs on our stack, below this frame, until it runs
// the agent or ends; we go on after that. The system call must be in line, since the child would
// return from a function around it and overwrite what we are to return to.
// Returns the child's pid, or -errno.
[[gnu::noinline]] long clone_first_process(::clone_args& args, FirstProcess& first) {
  long result = SYS_clone3;
  asm volatile("syscall" : "+a"(result) : "D"(&args), "S"(sizeof args) : "rcx", "r11", "memory");
  if (result == 0) {
    become_first_process(first);
    ::syscall(SYS_exit, 1);
    __builtin_unreachable();
  }
  return result;
}

Reply spawn(const Loop& loop, const Received& in) {
  Reply reply{};
  const auto fail = [&reply](int error, const char* step) {
    reply.pid = 0;
    reply.error = error;
    std::snprintf(reply.step, sizeof reply.step, "%s", step);
    return reply;
  };
  if (in.request.cgroup_count > kCgroupsMax || in.fd_count != kFixedFds + in.request.cgroup_count) {
    return fail(EINVAL, "read the plan");
  }
  FirstProcess first{};
  first.root = in.fds[0];
  first.usr = in.fds[1];
  first.dev = in.fds[2];
  first.user_ns = in.fds[3];
  first.listener = in.fds[4];
  first.tracking = in.fds[5];
  first.cgroup_count = in.request.cgroup_count;
  for (std::size_t i = 0; i < first.cgroup_count; ++i) {
    first.cgroup_tasks[i] = in.fds[kFixedFds + i];
  }
  first.agent = loop.agent;
  first.shm_bytes = in.request.shm_bytes;
  first.cpu_mask = in.request.cpu_mask;
  first.uid_base = in.request.uid_base;
  first.seccomp = loop.seccomp->data();
  first.seccomp_length = static_cast<unsigned short>(loop.seccomp->size());
  first.unguarded = loop.unguarded;
  // Born in its version 2 group: moving there later would wait for an RCU grace period.
  ::clone_args args{};
  args.flags = clone_flags(loop.unguarded);
  args.exit_signal = SIGCHLD;
  args.cgroup = static_cast<std::uint64_t>(first.tracking);
  const long pid = clone_first_process(args, first);
  if (pid < 0) return fail(static_cast<int>(-pid), "clone3");
  reply.pid = static_cast<pid_t>(pid);
  if (first.failed_step != nullptr) return fail(first.failed_errno, first.failed_step);
  return reply;
}

// An empty read-only directory becomes all there is; the old root is let go.
bool hide_everything(const std::string& scratch, const Unguarded& unguarded) {
  if (::unshare(CLONE_NEWNS) != 0) return false;
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  if (::mount("tmpfs", scratch.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
              "mode=0555,size=64k") != 0) {
    return false;
  }
  if (::chdir(scratch.c_str()) != 0) return false;
  // What the masks of /proc are made of, see first_process.cc.
  if (::mkdir("dir", 0555) != 0 || ::mkdir("old", 0700) != 0) return false;
  const int file = ::open("file", O_CREAT | O_RDONLY | O_CLOEXEC, 0444);
  if (file < 0) return false;
  ::close(file);
  if (::syscall(SYS_pivot_root, ".", "old") != 0 || ::chdir("/") != 0) return false;
  if (unguarded.off(Guard::kRootView)) {
    if (::mkdir("/host", 0755) != 0) return false;
    if (::mount("/old", "/host", nullptr, MS_BIND, nullptr) != 0) return false;
  }
  if (::umount2("/old", MNT_DETACH) != 0 || ::rmdir("/old") != 0) return false;
  return ::mount(nullptr, "/", nullptr, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
                 "mode=0555,size=64k") == 0;
}

[[noreturn]] void run(const Spawner::Options& options, int socket) {
  // Children are reaped by the kernel; whoever cares holds a pidfd.
  ::signal(SIGCHLD, SIG_IGN);
  ::signal(SIGTERM, SIG_DFL);
  ::signal(SIGINT, SIG_IGN);  // A terminal's Ctrl-C is for the warden; we end with its socket.
  ::prctl(PR_SET_NAME, "gbx-spawner");
  ::sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // Keep 0-2, the socket and the agent: clone copies whatever there is, every time.
  ::dup3(socket, 3, O_CLOEXEC);
  const int agent = ::fcntl(options.agent_fd, F_DUPFD_CLOEXEC, 4);
  const int kept = ::dup3(agent, 63, O_CLOEXEC);
  ::syscall(SYS_close_range, 4, 62, 0);
  ::syscall(SYS_close_range, 64, ~0U, 0);
  ::setsid();
  Reply ready{0, 0, {}};
  if (!hide_everything(options.scratch, options.unguarded)) ready.error = errno != 0 ? errno : EIO;
  ::send(3, &ready, sizeof ready, MSG_NOSIGNAL);
  const Loop loop{3, kept, &options.seccomp, options.unguarded};
  Received in;
  while (receive(loop.socket, in)) {
    const Reply reply = spawn(loop, in);
    for (std::size_t i = 0; i < in.fd_count; ++i) ::close(in.fds[i]);
    if (::send(loop.socket, &reply, sizeof reply, MSG_NOSIGNAL) != sizeof reply) break;
  }
  ::_exit(0);
}

Result<Reply> read_reply(int socket) {
  Reply reply{};
  GB_TRY_ASSIGN(const ssize_t n, os::retry("recv", "spawner", [&] {
                  return ::recv(socket, &reply, sizeof reply, 0);
                }));
  if (n != sizeof reply) return Error(Errc::kUnavailable, "the spawner has ended");
  return reply;
}

}  // namespace

Result<Spawner> Spawner::start(const Options& options) {
  int ends[2];
  GB_TRY(os::retry("socketpair", "spawner",
                   [&] { return ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends); }));
  Spawner spawner;
  spawner.socket_.reset(ends[0]);
  UniqueFd theirs(ends[1]);
  GB_TRY_ASSIGN(spawner.pid_, os::retry("fork", "spawner", [] { return ::fork(); }));
  if (spawner.pid_ == 0) run(options, theirs.get());
  theirs.reset();
  GB_TRY_ASSIGN(const Reply ready, read_reply(spawner.socket_.get()));
  if (ready.error != 0) return Error::from_errno(ready.error, "spawner: make its empty root");
  return spawner;
}

Spawner::~Spawner() {
  if (!socket_) return;  // Moved from.
  socket_.reset();       // Its end of file ends the spawner.
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<pid_t> Spawner::launch(const LaunchPlan& plan) {
  Request request{plan.shm_bytes, plan.cpu_mask, plan.uid_base,
                  static_cast<std::uint32_t>(plan.cgroup_tasks.size())};
  std::vector<int> fds{plan.root, plan.usr, plan.dev, plan.user_ns, plan.listener, plan.tracking};
  fds.insert(fds.end(), plan.cgroup_tasks.begin(), plan.cgroup_tasks.end());
  if (fds.size() > kFdsMax) return Error(Errc::kInternal, "launch: too many cgroups");
  alignas(::cmsghdr) char control[CMSG_SPACE(kFdsMax * sizeof(int))]{};
  ::iovec part{&request, sizeof request};
  ::msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
  ::cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
  std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
  const auto sent = os::retry("sendmsg", "spawner",
                              [&] { return ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL); });
  if (!sent) return Error(Errc::kUnavailable, "the spawner has ended");
  GB_TRY_ASSIGN(const Reply reply, read_reply(socket_.get()));
  if (reply.pid == 0) return Error::from_errno(reply.error, reply.step);
  return reply.pid;
}

}  // namespace glovebox::native
