#include "runtime/native/first_process.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>

namespace glovebox::native {
namespace {

// What root inside may keep. Each acts on files and processes of the sandbox's own user namespace
// only; none reaches the mounts, the network or the kernel, whose namespaces belong to the host.
constexpr int kKeptCaps[] = {CAP_CHOWN,  CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH,
                             CAP_FOWNER, CAP_FSETID,       CAP_KILL,
                             CAP_SETGID, CAP_SETUID,       CAP_NET_BIND_SERVICE};
constexpr int kCapLast = 63;
constexpr gid_t kTtyGroup = 5;
constexpr rlim_t kOpenFilesSoft = 1024;

bool ok(long result) { return result >= 0; }

long move_mount(int from, const char* to) {
  return ::syscall(SYS_move_mount, from, "", AT_FDCWD, to, MOVE_MOUNT_F_EMPTY_PATH);
}

// CLONE_CLEAR_SIGHAND leaves what is ignored ignored, and the agent's children would inherit that.
bool reset_signals(FirstProcess&) {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  return true;
}

bool join_cgroups(FirstProcess& p) {
  for (std::size_t i = 0; i < p.cgroup_count; ++i) {
    if (::write(p.cgroup_tasks[i], "0", 1) != 1) return false;
  }
  // Only now, so that the namespace's root is the group just joined.
  return ok(::unshare(CLONE_NEWCGROUP));
}

bool set_affinity(FirstProcess& p) {
  if (p.cpu_mask == 0) return true;
  return ok(::syscall(SYS_sched_setaffinity, 0, sizeof p.cpu_mask, &p.cpu_mask));
}

bool name_host(FirstProcess&) { return ok(::sethostname("sandbox", 7)); }

bool raise_loopback(FirstProcess& p) {
  if (p.unguarded.off(Guard::kNetNamespace)) return true;
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  ::ifreq request{};
  std::memcpy(request.ifr_name, "lo", 3);
  request.ifr_flags = IFF_UP;
  const bool up = ok(::ioctl(fd, SIOCSIFFLAGS, &request));
  ::close(fd);
  return up;
}

// Mounted over the spawner's empty root, and made ours: afterwards nothing of what is beneath can
// be named. (pivot_root would do the same and walks every task on the host to do it.)
bool enter_root(FirstProcess& p) {
  // Test builds only: the host's root, to show at /mnt that a test would notice.
  const int host = p.unguarded.off(Guard::kRootView)
                       ? static_cast<int>(::syscall(SYS_open_tree, AT_FDCWD, "/host",
                                                    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC))
                       : -1;
  return ok(move_mount(p.root, "/")) && ok(::fchdir(p.root)) && ok(::chroot(".")) &&
         (host < 0 || ok(move_mount(host, "/mnt")));
}

bool mount_usr(FirstProcess& p) { return ok(move_mount(p.usr, "/usr")); }
bool mount_dev(FirstProcess& p) { return ok(move_mount(p.dev, "/dev")); }

struct Option {
  const char* key;
  const char* value;
};

// A new instance of `type` at `target`. Formats nothing and allocates nothing.
bool mount_new(const char* type, const char* target, unsigned long attributes,
               std::initializer_list<Option> options) {
  const int context = static_cast<int>(::syscall(SYS_fsopen, type, FSOPEN_CLOEXEC));
  if (context < 0) return false;
  bool good = true;
  for (const Option& o : options) {
    good = good && ok(::syscall(SYS_fsconfig, context, FSCONFIG_SET_STRING, o.key, o.value, 0));
  }
  good = good && ok(::syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0));
  const int mount =
      good ? static_cast<int>(::syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, attributes)) : -1;
  good = mount >= 0 && ok(move_mount(mount, target));
  const int err = errno;
  if (mount >= 0) ::close(mount);
  ::close(context);
  errno = err;
  return good;
}

const char* decimal(char (&buffer)[24], std::uint64_t value) {
  *std::to_chars(buffer, buffer + sizeof buffer - 1, value).ptr = 0;
  return buffer;
}

bool mount_pts(FirstProcess& p) {
  char gid[24];
  // The group is looked up in the host's user namespace, to which the mount belongs.
  const gid_t group = (p.unguarded.off(Guard::kUserNamespace) ? 0 : p.uid_base) + kTtyGroup;
  return mount_new(
      "devpts", "/dev/pts", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
      {{"mode", "0620"}, {"ptmxmode", "0666"}, {"max", "256"}, {"gid", decimal(gid, group)}});
}

bool mount_shm(FirstProcess& p) {
  char size[24];
  return mount_new("tmpfs", "/dev/shm", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
                   {{"mode", "1777"}, {"size", decimal(size, p.shm_bytes)}});
}

bool mount_proc(FirstProcess&) {
  return mount_new("proc", "/proc", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, {});
}

// Any port may be bound: the network namespace belongs to the host, where no one inside has a
// capability, and there is nobody else in it to protect.
bool free_low_ports(FirstProcess& p) {
  if (p.unguarded.off(Guard::kNetNamespace)) return true;
  const int fd = ::open("/proc/sys/net/ipv4/ip_unprivileged_port_start", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT;
  const bool good = ::write(fd, "0", 1) == 1;
  ::close(fd);
  return good;
}

// Facts about the host and levers of the kernel. Most are the host root's alone already; the mount
// is a second guard. A name this kernel lacks is skipped.
constexpr const char* kMaskedFiles[] = {
    "/proc/kcore",       "/proc/keys",       "/proc/key-users",     "/proc/kmsg",
    "/proc/kallsyms",    "/proc/slabinfo",   "/proc/vmallocinfo",   "/proc/timer_list",
    "/proc/sched_debug", "/proc/iomem",      "/proc/ioports",       "/proc/sysrq-trigger",
    "/proc/kpagecount",  "/proc/kpageflags", "/proc/latency_stats", "/proc/mdstat",
    "/proc/partitions",  "/proc/diskstats",  "/proc/swaps",         "/proc/cmdline",
};
constexpr const char* kMaskedDirs[] = {"/proc/acpi", "/proc/asound", "/proc/scsi", "/proc/driver",
                                       "/proc/bus",  "/proc/irq",    "/proc/fs"};

bool cover(int with, const char* target) {
  const int copy = static_cast<int>(
      ::syscall(SYS_open_tree, with, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH));
  if (copy < 0) return false;
  const bool good = ok(move_mount(copy, target)) || errno == ENOENT;
  const int err = errno;
  ::close(copy);
  errno = err;
  return good;
}

bool make_read_only(const char* path) {
  const int copy = static_cast<int>(
      ::syscall(SYS_open_tree, AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
  if (copy < 0) return errno == ENOENT;
  ::mount_attr attr{};
  attr.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
  const bool good = ok(::syscall(SYS_mount_setattr, copy, "", AT_EMPTY_PATH, &attr, sizeof attr)) &&
                    ok(move_mount(copy, path));
  const int err = errno;
  ::close(copy);
  errno = err;
  return good;
}

// The spawner's own empty file and directory, opened before its root is covered.
struct Covers {
  int file = -1;
  int dir = -1;
};

bool mask_proc(FirstProcess& p, const Covers& covers) {
  if (p.unguarded.off(Guard::kMaskedProc)) return true;
  for (const char* path : kMaskedFiles) {
    if (!cover(covers.file, path)) return false;
  }
  for (const char* path : kMaskedDirs) {
    if (!cover(covers.dir, path)) return false;
  }
  return make_read_only("/proc/sys");
}

bool set_rlimits(FirstProcess&) {
  ::rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = std::min(files.rlim_max, kOpenFilesSoft);
  const ::rlimit no_core{0, 0};
  const ::rlimit locked{8 << 20, 8 << 20};
  return ok(::setrlimit(RLIMIT_NOFILE, &files)) && ok(::setrlimit(RLIMIT_CORE, &no_core)) &&
         ok(::setrlimit(RLIMIT_MEMLOCK, &locked));
}

bool enter_user_namespace(FirstProcess& p) {
  if (p.unguarded.off(Guard::kUserNamespace)) return true;
  return ok(::setns(p.user_ns, CLONE_NEWUSER)) && ok(::syscall(SYS_setgroups, 0, nullptr)) &&
         ok(::syscall(SYS_setresgid, 0, 0, 0)) && ok(::syscall(SYS_setresuid, 0, 0, 0));
}

bool drop_capabilities(FirstProcess& p) {
  if (p.unguarded.off(Guard::kCaps)) return true;
  std::uint64_t kept = 0;
  for (const int cap : kKeptCaps) kept |= std::uint64_t{1} << cap;
  for (int cap = 0; cap <= kCapLast; ++cap) {
    if ((kept >> cap & 1) != 0) continue;
    if (::prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0) continue;
    if (errno == EINVAL) break;  // Past the last one this kernel knows.
    return false;
  }
  ::__user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  ::__user_cap_data_struct data[2] = {};
  for (int half = 0; half < 2; ++half) {
    data[half].effective = data[half].permitted = static_cast<std::uint32_t>(kept >> (32 * half));
  }
  return ok(::syscall(SYS_capset, &header, data)) &&
         ok(::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0));
}

bool forbid_new_privileges(FirstProcess& p) {
  if (p.unguarded.off(Guard::kNoNewPrivs)) return true;
  return ok(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}

// Newer than the headers of Debian 12: include/uapi/linux/landlock.h.
constexpr std::uint64_t kLandlockMakeChar = 1ULL << 6;
constexpr std::uint64_t kLandlockMakeBlock = 1ULL << 11;
constexpr std::uint64_t kLandlockRefer = 1ULL << 13;
constexpr std::uint64_t kLandlockScopeAbstractUnix = 1ULL << 0;
constexpr std::uint64_t kLandlockScopeSignal = 1ULL << 1;
struct LandlockRuleset {
  std::uint64_t handled_access_fs;
  std::uint64_t handled_access_net;
  std::uint64_t scoped;
};

// No device nodes anywhere; no mount changes (implied for any landlocked process); no signal or
// abstract socket beyond the sandbox. Needs ABI 2, without which no file could be renamed into
// another directory.
bool restrict_by_landlock(FirstProcess& p) {
  if (p.unguarded.off(Guard::kLandlock)) return true;
  const long abi =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (abi < 2) return true;  // `glovebox doctor` says so.
  LandlockRuleset rules{kLandlockMakeChar | kLandlockMakeBlock | kLandlockRefer, 0, 0};
  std::size_t size = sizeof rules.handled_access_fs;
  if (abi >= 6) {
    rules.scoped = kLandlockScopeAbstractUnix | kLandlockScopeSignal;
    size = sizeof rules;
  }
  const int set = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &rules, size, 0));
  if (set < 0) return false;
  const int root = ::open("/", O_PATH | O_CLOEXEC);
  ::landlock_path_beneath_attr everywhere{kLandlockRefer, root};
  const bool good =
      root >= 0 &&
      ok(::syscall(SYS_landlock_add_rule, set, LANDLOCK_RULE_PATH_BENEATH, &everywhere, 0)) &&
      ok(::syscall(SYS_landlock_restrict_self, set, 0));
  const int err = errno;
  if (root >= 0) ::close(root);
  ::close(set);
  errno = err;
  return good;
}

// Moves the agent's descriptors to 3 and 4 and keeps nothing else but the program.
bool arrange_descriptors(FirstProcess& p) {
  // Out of the way first: the numbers below may be in use by each other.
  const int listener = ::fcntl(p.listener, F_DUPFD_CLOEXEC, 64);
  const int tracking = ::fcntl(p.tracking, F_DUPFD_CLOEXEC, 64);
  const int agent = ::fcntl(p.agent, F_DUPFD_CLOEXEC, 64);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (listener < 0 || tracking < 0 || agent < 0 || null < 0) return false;
  for (const int fd : {0, 1, 2}) {
    if (!ok(::dup2(null, fd))) return false;
  }
  if (!ok(::dup2(listener, 3)) || !ok(::dup2(tracking, 4))) return false;
  if (!ok(::dup3(agent, 5, O_CLOEXEC))) return false;
  p.agent = 5;
  return ok(::syscall(SYS_close_range, 6, ~0U, 0));
}

bool load_seccomp(FirstProcess& p) {
  if (p.unguarded.off(Guard::kSeccomp)) return true;
  const ::sock_fprog program{p.seccomp_length, const_cast<sock_filter*>(p.seccomp)};
  return ok(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}

bool run_agent(FirstProcess& p) {
  char name[] = "glovebox-agent";
  char* argv[] = {name, nullptr};
  char* envp[] = {nullptr};
  ::syscall(SYS_execveat, p.agent, "", argv, envp, AT_EMPTY_PATH);
  return false;
}

struct Step {
  const char* name;
  bool (*run)(FirstProcess&);
};

constexpr Step kBeforeRoot[] = {
    {"reset its signals", reset_signals}, {"join its cgroups", join_cgroups},
    {"set its CPUs", set_affinity},       {"set its host name", name_host},
    {"raise loopback", raise_loopback},
};
constexpr Step kMounts[] = {
    {"enter its root", enter_root},     {"mount /usr", mount_usr},     {"mount /dev", mount_dev},
    {"mount /dev/pts", mount_pts},      {"mount /dev/shm", mount_shm}, {"mount /proc", mount_proc},
    {"free low ports", free_low_ports},
};
// Order matters: each gives up what the ones before it needed.
constexpr Step kConfine[] = {
    {"set resource limits", set_rlimits},
    {"arrange descriptors", arrange_descriptors},
    {"drop capabilities", drop_capabilities},
    {"forbid new privileges", forbid_new_privileges},
    {"restrict by Landlock", restrict_by_landlock},
    {"load the seccomp filter", load_seccomp},
    {"run the agent", run_agent},
};

template <std::size_t N>
bool run_steps(FirstProcess& p, const Step (&steps)[N]) {
  for (const Step& step : steps) {
    errno = 0;
    if (step.run(p)) continue;
    p.failed_step = step.name;
    p.failed_errno = errno != 0 ? errno : EIO;
    return false;
  }
  return true;
}

}  // namespace

void become_first_process(FirstProcess& p) {
  if (!run_steps(p, kBeforeRoot)) return;
  const Covers covers{::open("/file", O_PATH | O_CLOEXEC), ::open("/dir", O_PATH | O_CLOEXEC)};
  if (!run_steps(p, kMounts)) return;
  errno = 0;
  if (!mask_proc(p, covers) || !enter_user_namespace(p)) {
    p.failed_step = "mask /proc and enter the user namespace";
    p.failed_errno = errno;
    return;
  }
  run_steps(p, kConfine);
}

}  // namespace glovebox::native
