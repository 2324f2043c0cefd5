// ProcessTable holds the commands that run and the last that ended, and reaps: as process 1, or
// as a child subreaper in tests, it is the parent of every orphan too.

#pragma once

#include <sys/types.h>

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "agent/common/async_fd.h"
#include "agent/common/users.h"
#include "agent/exec/cgroups.h"
#include "agent/exec/exec_request.h"
#include "agent/exec/oom_watch.h"
#include "agent/exec/process.h"
#include "async/task.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace glovebox::agent {

class ProcessTable {
 public:
  // SIGCHLD must be blocked already. `cgroup` may be empty.
  static Result<std::unique_ptr<ProcessTable>> open(const Executor& executor, Users& users,
                                                    UniqueFd cgroup);

  Result<std::shared_ptr<Process>> start(ExecRequest request, const EnvList& sandbox_env);
  // The one that runs under that number, else the last that did. kNotFound.
  Result<std::shared_ptr<Process>> find(pid_t pid) const;
  std::vector<std::shared_ptr<Process>> all() const;  // In the order of their start.
  void kill_all();

 private:
  ProcessTable(const Executor& executor, Users& users, UniqueFd cgroup);
  Task<void> reap_forever();
  void reap();
  void keep_ended(std::shared_ptr<Process> process);

  Executor executor_;
  Users& users_;
  int cgroup_fd_;
  CgroupPool cgroups_;
  OomWatch oom_;
  UniqueFd null_;
  std::unique_ptr<AsyncFd> signals_;
  std::map<pid_t, std::shared_ptr<Process>> running_;
  std::deque<std::shared_ptr<Process>> ended_;
};

}  // namespace glovebox::agent
