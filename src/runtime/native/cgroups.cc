#include "runtime/native/cgroups.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "base/deadline.h"
#include "os/cgroup.h"
#include "os/files.h"
#include "os/mount.h"

namespace glovebox::native {
namespace {

constexpr std::uint64_t kCpuPeriodUs = 100'000;
constexpr int kChildGroupsMax = 4096;

Result<UniqueFd> open_dir(int dir_fd, const std::string& path) {
  GB_TRY_ASSIGN(const int fd, os::retry("open", path, [&] {
                  return ::openat(dir_fd, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                }));
  return UniqueFd(fd);
}

Result<UniqueFd> make_root(const std::string& parent, const std::string& name) {
  const std::string path = parent + "/" + name;
  GB_TRY(os::mkdir_if_absent(AT_FDCWD, path, 0755));
  return open_dir(AT_FDCWD, path);
}

bool has_controllers(const std::string& words) {
  const std::string padded = " " + words.substr(0, words.find('\n')) + " ";
  for (const char* name : {" memory ", " cpu ", " pids "}) {
    if (padded.find(name) == std::string::npos) return false;
  }
  return true;
}

// The nearest group at or above the caller's whose children may have the controllers. A group
// with processes in it may not hand controllers down (cgroups-v2: "no internal processes"), so a
// login session's scope is passed over; the limits of those above still hold.
Result<std::string> delegating_group(const os::CgroupHierarchy& unified) {
  std::string self = unified.self;
  while (true) {
    const std::string dir = unified.mount + self;
    const auto enabled = os::read_file(AT_FDCWD, dir + "/cgroup.subtree_control");
    if (enabled && has_controllers(*enabled)) return dir;
    if (os::write_file(AT_FDCWD, dir + "/cgroup.subtree_control", "+memory +cpu +pids")) return dir;
    if (self.empty()) break;
    self.resize(self.rfind('/'));
  }
  return Error(Errc::kDenied,
               "cgroup v2: no group at or above ours may hand on the memory, cpu and pids "
               "controllers; run as a systemd service with Delegate=yes, or as root on the host");
}

std::string line_value(const std::string& text, std::string_view key) {
  std::size_t at = text.starts_with(key) ? 0 : text.find("\n" + std::string(key));
  if (at == std::string::npos) return {};
  at = text.find(key, at) + key.size();
  return text.substr(at, text.find('\n', at) - at);
}

std::uint64_t number_in(int root, const std::string& path, std::string_view key) {
  const auto text = os::read_file(root, path);
  if (!text) return 0;
  const std::string value = key.empty() ? *text : line_value(*text, key);
  return std::strtoull(value.c_str(), nullptr, 10);
}

}  // namespace

Result<CgroupRoots> CgroupRoots::open(const std::string& name, const std::string& scratch) {
  GB_TRY_ASSIGN(os::CgroupHierarchies found, os::find_cgroups());
  CgroupRoots roots;
  if (found.has_v1()) {
    if (found.unified.mount.empty()) {
      GB_TRY_ASSIGN(const UniqueFd mount, os::make_mount("cgroup2", {}, 0));
      GB_TRY(os::attach_mount(mount.get(), scratch));
      found.unified = {scratch, ""};
    }
    GB_TRY_ASSIGN(roots.memory, make_root(found.memory.dir(), name));
    GB_TRY_ASSIGN(roots.cpu, make_root(found.cpu.dir(), name));
    GB_TRY_ASSIGN(roots.pids, make_root(found.pids.dir(), name));
    GB_TRY_ASSIGN(roots.tracking, make_root(found.unified.dir(), name));
    roots.description = "v1 with v2 for tracking";
    return roots;
  }
  if (found.unified.mount.empty()) {
    return Error(Errc::kUnavailable, "no cgroup hierarchy with memory, cpu and pids is mounted");
  }
  GB_TRY_ASSIGN(const std::string parent, delegating_group(found.unified));
  GB_TRY_ASSIGN(roots.tracking, make_root(parent, name));
  GB_TRY(os::write_file(roots.tracking.get(), "cgroup.subtree_control", "+memory +cpu +pids"));
  roots.description = "v2";
  return roots;
}

Result<void> BoxCgroups::make() {
  for (const UniqueFd* root : {&roots_->tracking, &roots_->memory, &roots_->cpu, &roots_->pids}) {
    if (*root) GB_TRY(os::mkdir_if_absent(root->get(), instance_, 0755));
  }
  return write(roots_->tracking.get(), "cgroup.max.descendants", std::to_string(kChildGroupsMax));
}

Result<void> BoxCgroups::write(int root, const char* file, std::string_view text) {
  return os::write_file(root, instance_ + "/" + file, text);
}

Result<void> BoxCgroups::set_memory(std::uint64_t bytes) {
  const std::string value = std::to_string(bytes);
  if (roots_->unified()) {
    GB_TRY(write(roots_->tracking.get(), "memory.max", value));
    // Absent where the kernel has no swap: then there is nothing to limit.
    (void)write(roots_->tracking.get(), "memory.swap.max", "0");
    return {};
  }
  const int root = roots_->memory.get();
  // memsw must never be below the limit, so the order depends on the direction.
  if (!write(root, "memory.limit_in_bytes", value)) {
    (void)write(root, "memory.memsw.limit_in_bytes", value);
    GB_TRY(write(root, "memory.limit_in_bytes", value));
  }
  if (auto r = write(root, "memory.memsw.limit_in_bytes", value); !r) {
    if (r.error().code() != Errc::kNotFound) return std::move(r).error();
    // Without swap accounting the kernel can still be told not to swap this group.
    GB_TRY(write(root, "memory.swappiness", "0"));
  }
  return {};
}

Result<void> BoxCgroups::set_cpu(std::uint32_t millis) {
  const std::string quota = std::to_string(kCpuPeriodUs * millis / 1000);
  const std::string period = std::to_string(kCpuPeriodUs);
  if (roots_->unified()) {
    return write(roots_->tracking.get(), "cpu.max", quota + " " + period);
  }
  GB_TRY(write(roots_->cpu.get(), "cpu.cfs_period_us", period));
  return write(roots_->cpu.get(), "cpu.cfs_quota_us", quota);
}

Result<void> BoxCgroups::set_pids(std::uint32_t max) {
  return write(roots_->unified() ? roots_->tracking.get() : roots_->pids.get(), "pids.max",
               std::to_string(max));
}

Result<void> BoxCgroups::delegate(uid_t uid, gid_t gid) {
  for (const char* file : {"", "/cgroup.procs", "/cgroup.threads", "/cgroup.subtree_control"}) {
    const std::string path = instance_ + file;
    GB_TRY(os::retry("chown", path, [&] {
      return ::fchownat(roots_->tracking.get(), path.c_str(), uid, gid, 0);
    }));
  }
  return {};
}

Result<std::vector<UniqueFd>> BoxCgroups::open_tasks() {
  std::vector<UniqueFd> fds;
  for (const UniqueFd* root : {&roots_->memory, &roots_->cpu, &roots_->pids}) {
    if (!*root) continue;
    const std::string path = instance_ + "/tasks";
    GB_TRY_ASSIGN(const int fd, os::retry("open", path, [&] {
                    return ::openat(root->get(), path.c_str(), O_WRONLY | O_CLOEXEC);
                  }));
    fds.emplace_back(fd);
  }
  return fds;
}

Result<UniqueFd> BoxCgroups::open_tracking() { return open_dir(roots_->tracking.get(), instance_); }

Result<void> BoxCgroups::kill_all() {
  auto killed = write(roots_->tracking.get(), "cgroup.kill", "1");
  if (killed || killed.error().code() != Errc::kNotFound) return killed;
  // Before Linux 5.14 there is no cgroup.kill. The first process takes its whole pid namespace
  // with it, so a pass over the list is enough once that one is hit.
  GB_TRY_ASSIGN(const std::vector<pid_t> pids, processes());
  for (const pid_t pid : pids) {
    if (auto fd = os::pidfd_open(pid)) (void)os::pidfd_send_signal(fd->get(), SIGKILL);
  }
  return {};
}

Result<void> BoxCgroups::set_frozen(bool frozen, std::chrono::milliseconds patience) {
  GB_TRY(write(roots_->tracking.get(), "cgroup.freeze", frozen ? "1" : "0"));
  const Deadline deadline = after(patience);
  useconds_t pause_us = 200;
  while (number_in(roots_->tracking.get(), instance_ + "/cgroup.events", "frozen ") !=
         (frozen ? 1U : 0U)) {
    if (Clock::now() > deadline) {
      return Error(Errc::kTimeout, "freeze: not all processes stopped in time");
    }
    ::usleep(pause_us);
    pause_us = std::min<useconds_t>(pause_us + pause_us / 4, 10'000);
  }
  return {};
}

bool BoxCgroups::wait_empty(std::chrono::milliseconds patience) {
  // The kernel holds notifications of cgroup.events back for 10 ms; a look every half millisecond
  // at first is answered sooner.
  const Deadline deadline = after(patience);
  useconds_t pause_us = 500;
  while (number_in(roots_->tracking.get(), instance_ + "/cgroup.events", "populated ") != 0) {
    if (Clock::now() > deadline) return false;
    ::usleep(pause_us);
    pause_us = std::min<useconds_t>(pause_us + pause_us / 4, 10'000);
  }
  return true;
}

Result<void> BoxCgroups::remove() {
  const int tracking = roots_->tracking.get();
  if (auto children = os::list_dir(tracking, instance_)) {
    for (const std::string& child : *children) {
      // Files of the group refuse with ENOTDIR; groups of commands go.
      ::unlinkat(tracking, (instance_ + "/" + child).c_str(), AT_REMOVEDIR);
    }
  }
  for (const UniqueFd* root : {&roots_->tracking, &roots_->memory, &roots_->cpu, &roots_->pids}) {
    if (!*root) continue;
    const Deadline deadline = after(std::chrono::seconds(2));
    while (::unlinkat(root->get(), instance_.c_str(), AT_REMOVEDIR) != 0) {
      if (errno == ENOENT) break;
      const int err = errno;
      // A task that has just died may be counted for a moment yet.
      if (err != EBUSY || Clock::now() > deadline) {
        return Error::from_errno(err, "rmdir cgroup " + instance_);
      }
      ::usleep(500);
    }
  }
  return {};
}

Result<std::vector<pid_t>> BoxCgroups::processes() const {
  std::vector<pid_t> pids;
  std::vector<std::string> groups{instance_};
  if (auto children = os::list_dir(roots_->tracking.get(), instance_)) {
    for (const std::string& child : *children) groups.push_back(instance_ + "/" + child);
  }
  for (const std::string& group : groups) {
    const auto text = os::read_file(roots_->tracking.get(), group + "/cgroup.procs");
    if (!text) continue;
    for (const char* at = text->c_str(); *at != 0;) {
      char* end = nullptr;
      const long pid = std::strtol(at, &end, 10);
      if (end == at) break;
      if (pid > 0) pids.push_back(static_cast<pid_t>(pid));
      at = *end == 0 ? end : end + 1;
    }
  }
  return pids;
}

Usage BoxCgroups::usage() const {
  Usage usage;
  const int tracking = roots_->tracking.get();
  usage.cpu_us = number_in(tracking, instance_ + "/cpu.stat", "usage_usec ");
  if (roots_->unified()) {
    usage.memory_bytes = number_in(tracking, instance_ + "/memory.current", "");
    usage.memory_peak_bytes = number_in(tracking, instance_ + "/memory.peak", "");
    usage.oom_kills = number_in(tracking, instance_ + "/memory.events", "oom_kill ");
    usage.pids = static_cast<std::uint32_t>(number_in(tracking, instance_ + "/pids.current", ""));
    return usage;
  }
  const int memory = roots_->memory.get();
  usage.memory_bytes = number_in(memory, instance_ + "/memory.usage_in_bytes", "");
  usage.memory_peak_bytes = number_in(memory, instance_ + "/memory.max_usage_in_bytes", "");
  usage.oom_kills = number_in(memory, instance_ + "/memory.oom_control", "oom_kill ");
  usage.pids =
      static_cast<std::uint32_t>(number_in(roots_->pids.get(), instance_ + "/pids.current", ""));
  return usage;
}

}  // namespace glovebox::native
