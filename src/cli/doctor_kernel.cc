#include <fcntl.h>
#include <linux/loop.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/unique_fd.h"
#include "cli/doctor.h"
#include "os/files.h"

namespace glovebox::cli {
namespace {

std::string read_line(const HostView& host, std::string_view path) {
  Result<std::string> text = os::read_file(AT_FDCWD, host.root + std::string(path));
  if (!text) return {};
  return text->substr(0, text->find('\n'));
}

Check check_version() {
  Check check = needed_check("kernel", "openat2, clone3 into cgroups, the mount API and pidfds");
  ::utsname name{};
  ::uname(&name);
  check.found = std::string("Linux ") + name.release;
  int major = 0;
  int minor = 0;
  const char* end = name.release + std::strlen(name.release);
  const auto [dot, error] = std::from_chars(name.release, end, major);
  if (error == std::errc() && dot != end) std::from_chars(dot + 1, end, minor);
  if (major > 5 || (major == 5 && minor >= 12)) return check;
  check.verdict = Verdict::kMissing;
  check.remedy = "a kernel from 5.12 on; Debian 12, Ubuntu 22.04 and newer have one";
  return check;
}

// Tries it in a child, which is the only answer that counts: sysctls, AppArmor and seccomp all
// have a say. Returns 0 or the errno.
int try_unshare(int flags) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::unshare(flags) == 0 ? 0 : errno);
  if (child < 0) return errno;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : EINVAL;
}

Check check_userns(const HostView& host) {
  Check check = needed_check("user-namespaces", "root inside a sandbox is nobody outside");
  const std::string max = read_line(host, "/proc/sys/user/max_user_namespaces");
  const int error = try_unshare(CLONE_NEWUSER);
  if (error == 0) {
    check.found = "allowed, at most " + (max.empty() ? "?" : max);
    if (!max.empty() && max.size() < 4) {
      check.verdict = Verdict::kWarn;
      check.remedy = "each sandbox takes one: sysctl user.max_user_namespaces=100000";
    }
    return check;
  }
  check.verdict = Verdict::kMissing;
  check.found = std::string("refused: ") + std::strerror(error);
  check.remedy = "sysctl user.max_user_namespaces=100000";
  const std::string clone = read_line(host, "/proc/sys/kernel/unprivileged_userns_clone");
  const std::string apparmor =
      read_line(host, "/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
  if (clone == "0") check.remedy += " kernel.unprivileged_userns_clone=1";
  if (apparmor == "1") check.remedy += " kernel.apparmor_restrict_unprivileged_userns=0";
  check.remedy += "; inside a container, run it privileged";
  return check;
}

Check check_namespaces() {
  Check check = needed_check("namespaces", "own processes, mounts, network, IPC and host name");
  constexpr int kAll =
      CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
  const int error = try_unshare(::geteuid() == 0 ? kAll : kAll | CLONE_NEWUSER);
  if (error == 0) {
    check.found = "pid, mount, net, ipc, uts, cgroup";
  } else {
    check.verdict = Verdict::kMissing;
    check.found = std::string("refused: ") + std::strerror(error);
    check.remedy =
        "run as root; in a container, run it privileged; the kernel needs CONFIG_PID_NS, "
        "CONFIG_NET_NS, CONFIG_IPC_NS, CONFIG_UTS_NS and CONFIG_CGROUPS";
  }
  return check;
}

Check check_seccomp() {
  Check check = needed_check("seccomp", "the list of system calls a sandbox may make");
  const std::uint32_t action = SECCOMP_RET_KILL_PROCESS;
  if (::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0) {
    check.found = "filters";
  } else {
    check.verdict = Verdict::kMissing;
    check.found = "none";
    check.remedy = "a kernel with CONFIG_SECCOMP_FILTER";
  }
  return check;
}

Check check_landlock() {
  Check check = optional_check("landlock", "a second wall around the files, inside the first");
  constexpr unsigned kVersionFlag = 1;  // LANDLOCK_CREATE_RULESET_VERSION of landlock(7).
  constexpr long kCreateRuleset = 444;
  const long abi = ::syscall(kCreateRuleset, nullptr, 0, kVersionFlag);
  if (abi > 0) {
    check.found = "ABI " + std::to_string(abi);
    if (abi >= 2) return check;  // 2 has renaming between directories.
    check.verdict = Verdict::kWarn;
    check.remedy = "a kernel from 5.19 on";
    return check;
  }
  check.verdict = Verdict::kWarn;
  check.found = errno == EOPNOTSUPP ? "built in, but switched off" : "none";
  check.remedy = errno == EOPNOTSUPP ? "add landlock to lsm= on the kernel's command line"
                                     : "a kernel from 5.13 on with CONFIG_SECURITY_LANDLOCK";
  return check;
}

bool lists_file_system(const HostView& host, std::string_view name) {
  const Result<std::string> text = os::read_file(AT_FDCWD, host.root + "/proc/filesystems");
  if (!text) return false;
  return text->find("\t" + std::string(name) + "\n") != std::string::npos;
}

// The kernel loads a missing module when asked by root: fsopen(2) is asking.
bool has_file_system(const HostView& host, const char* name) {
  if (lists_file_system(host, name)) return true;
  const UniqueFd fd(static_cast<int>(::syscall(SYS_fsopen, name, 1U)));
  return static_cast<bool>(fd);
}

Check check_overlay(const HostView& host) {
  Check check = needed_check("overlayfs", "a writable layer over the read-only template");
  if (has_file_system(host, "overlay")) {
    check.found = "there";
  } else {
    check.verdict = Verdict::kMissing;
    check.found = "none";
    check.remedy = "modprobe overlay, or a kernel with CONFIG_OVERLAY_FS";
  }
  return check;
}

Check check_loop(const HostView& host) {
  Check check = needed_check("loop-devices", "a disk image for each sandbox: its disk limit");
  const UniqueFd control(::open((host.root + "/dev/loop-control").c_str(), O_RDWR | O_CLOEXEC));
  if (control && ::ioctl(control.get(), LOOP_CTL_GET_FREE) >= 0) {
    check.found = "there";
  } else if (control || errno == EACCES) {
    check.verdict = Verdict::kWarn;
    check.found = "there, but not for this user";
    check.remedy = "run as root";
  } else {
    check.verdict = Verdict::kMissing;
    check.found = "none";
    check.remedy = "modprobe loop; in a container, give it /dev/loop-control and the loop devices";
  }
  return check;
}

Check check_idmap() {
  Check check = optional_check("idmapped-mounts",
                               "the template's files belong to root inside without being copied");
  // EBADF means that the call is known; ENOSYS that it is not: mount_setattr(2).
  struct {
    std::uint64_t set, clear, propagation, userns_fd;
  } attr{};
  constexpr long kMountSetattr = 442;
  ::syscall(kMountSetattr, -1, "", AT_EMPTY_PATH, &attr, sizeof attr);
  if (errno == ENOSYS) {
    check.verdict = Verdict::kMissing;
    check.needed = true;
    check.found = "none";
    check.remedy = "a kernel from 5.12 on";
  } else {
    check.found = "there";
  }
  return check;
}

Check check_kvm(const HostView& host) {
  Check check =
      optional_check("kvm", "for the runtime `vm`: each sandbox with a kernel of its own");
  const UniqueFd fd(::open((host.root + "/dev/kvm").c_str(), O_RDWR | O_CLOEXEC));
  if (fd) {
    check.found = "/dev/kvm";
    return check;
  }
  check.verdict = Verdict::kWarn;
  const bool denied = errno == EACCES;
  check.found = errno == ENOENT ? "no /dev/kvm" : std::string("/dev/kvm: ") + std::strerror(errno);
  check.remedy = denied ? "run as root, or join the group kvm"
                        : "bare metal or nested virtualization, and CPU virtualization on in the "
                          "firmware; `native` does without";
  return check;
}

}  // namespace

std::vector<Check> check_kernel(const HostView& host) {
  return {check_version(),  check_userns(host), check_namespaces(),
          check_seccomp(),  check_landlock(),   check_overlay(host),
          check_loop(host), check_idmap(),      check_kvm(host)};
}

}  // namespace glovebox::cli
