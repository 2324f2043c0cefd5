// A cgroup for each command, below the directory that was delegated to the agent, so that all a
// command ever started can be found and killed, whatever it forked or called itself.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace glovebox::agent {

class Cgroup {
 public:
  Cgroup(std::string name, UniqueFd dir) : name_(std::move(name)), dir_(std::move(dir)) {}

  int fd() const noexcept { return dir_.get(); }  // Of its directory; -1 after it was retired.
  // True while a process is in it (cgroup.events; zombies do not count).
  bool populated() const;
  // SIGKILL to every process in it, those that are just being forked too.
  void kill() const;

 private:
  friend class CgroupPool;
  std::string name_;
  UniqueFd dir_;
  mutable bool killed_ = false;
};

class CgroupPool {
 public:
  // With an empty `dir` there are no groups, and take() returns none.
  explicit CgroupPool(UniqueFd dir) : dir_(std::move(dir)) {}

  // An empty group. Null when there is none to be had.
  std::shared_ptr<Cgroup> take();
  // The command has ended, but what it left behind may live on and can still be killed by this
  // group, until nothing is left: then the directory serves another command, or is removed.
  void give_back(std::shared_ptr<Cgroup> group);
  // Finds out which of those are empty by now.
  void sweep();

 private:
  void retire(Cgroup& group);

  UniqueFd dir_;
  std::uint64_t next_ = 1;
  std::vector<std::shared_ptr<Cgroup>> left_;
  std::vector<std::shared_ptr<Cgroup>> spare_;  // Making and removing costs more than keeping.
};

}  // namespace glovebox::agent
