#include "agent/exec/cgroups.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <utility>

#include "agent/common/small_file.h"
#include "os/sys.h"

namespace glovebox::agent {
namespace {

constexpr std::size_t kSpareMax = 4;
constexpr int kKillRoundsMax = 200;

// Kills who is listed; returns how many there were. A list that is too long to read is cut: the
// next round sees the rest.
int kill_listed(int dir_fd) {
  auto listed = read_small_file(dir_fd, "cgroup.procs", 1 << 20);
  if (!listed) return 0;
  int count = 0;
  const char* at = listed->data();
  const char* const end = at + listed->size();
  while (at < end) {
    pid_t pid = 0;
    const auto [next, ec] = std::from_chars(at, end, pid);
    // 0 stands for a process of another pid namespace, and to kill() for our own group.
    if (ec == std::errc() && pid > 1) {
      ::kill(pid, SIGKILL);
      ++count;
    }
    at = next + 1;
  }
  return count;
}

}  // namespace

bool Cgroup::populated() const {
  if (!dir_) return false;
  auto events = read_small_file(dir_.get(), "cgroup.events", 4096);
  return !events || events->find("populated 0") == std::string::npos;
}

void Cgroup::kill() const {
  if (!dir_) return;
  killed_ = true;
  if (write_kernel_file(dir_.get(), "cgroup.kill", "1")) return;
  // Linux before 5.14 has no cgroup.kill.
  for (int round = 0; round < kKillRoundsMax && kill_listed(dir_.get()) > 0; ++round) {
  }
}

std::shared_ptr<Cgroup> CgroupPool::take() {
  if (!dir_) return nullptr;
  if (!spare_.empty()) {
    std::shared_ptr<Cgroup> group = std::move(spare_.back());
    spare_.pop_back();
    return group;
  }
  for (int attempt = 0; attempt < 64; ++attempt) {
    std::string name = "x" + std::to_string(next_++);
    if (::mkdirat(dir_.get(), name.c_str(), 0755) != 0) {
      if (errno == EEXIST) continue;
      break;
    }
    auto opened = os::openat(dir_.get(), name, O_RDONLY | O_DIRECTORY);
    if (!opened) break;
    return std::make_shared<Cgroup>(std::move(name), std::move(*opened));
  }
  return nullptr;
}

void CgroupPool::give_back(std::shared_ptr<Cgroup> group) {
  if (!group) return;
  left_.push_back(std::move(group));
  sweep();
}

void CgroupPool::sweep() {
  std::erase_if(left_, [this](const std::shared_ptr<Cgroup>& group) {
    if (group->populated()) return false;
    retire(*group);
    return true;
  });
}

void CgroupPool::retire(Cgroup& group) {
  // The old object stays with its command and must not kill the next one's processes.
  auto fresh = std::make_shared<Cgroup>(std::move(group.name_), std::move(group.dir_));
  // A group that cgroup.kill was ever written to is used up: Linux 6.18 kills whatever
  // CLONE_INTO_CGROUP puts there, since it compares the group's kill_seq with the parent's
  // (cgroup_post_fork in kernel/cgroup/cgroup.c).
  if (spare_.size() < kSpareMax && !group.killed_) {
    spare_.push_back(std::move(fresh));
  } else {
    ::unlinkat(dir_.get(), fresh->name_.c_str(), AT_REMOVEDIR);
  }
}

}  // namespace glovebox::agent
