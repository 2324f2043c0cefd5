// Process is one command: from its start to its end and, for a while, as a memory of it. Its
// pipes are always read: what nobody wants is dropped, and after the end of the command what its
// orphans write is thrown away, so that they are neither blocked nor killed by a closed pipe.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/common/async_fd.h"
#include "agent/common/event.h"
#include "agent/common/users.h"
#include "agent/exec/cgroups.h"
#include "agent/exec/exec_request.h"
#include "agent/exec/oom_watch.h"
#include "agent/exec/output.h"
#include "async/task.h"
#include "base/deadline.h"
#include "base/result.h"

namespace glovebox::agent {

class Process : public std::enable_shared_from_this<Process> {
 public:
  struct Context {
    Executor executor;
    CgroupPool& cgroups;
    OomWatch& oom;
    int null_fd;  // /dev/null, borrowed.
  };

  // Starts it and begins to read what it writes.
  static Result<std::shared_ptr<Process>> start(const Context& context, ExecRequest request,
                                                const User& user, const EnvList& sandbox_env);
  Process(const Context& context, ExecRequest request);
  ~Process();

  pid_t pid() const noexcept { return pid_; }
  Output& output() noexcept { return output_; }
  const ExecRequest& request() const noexcept { return request_; }
  const std::optional<ExitInfo>& exit() const noexcept { return output_.exit(); }
  std::int64_t started_at_ms() const noexcept { return started_at_ms_; }
  std::string to_json() const;

  // The reaper's report; `status` as wait(2) gives it. The end is made known when its output has
  // been read.
  void on_exit(int status);

  // kConflict when it takes no input or has ended; kTimeout when it reads nothing for a minute.
  Task<Result<void>> write_stdin(std::string_view bytes);
  // Again is fine. kInvalid on a terminal.
  Result<void> close_stdin();
  // Turns of those who write more than one piece, so that two do not mix.
  Task<Result<void>> begin_stdin();
  void end_stdin();

  // kConflict when it has ended.
  Result<void> signal(int number);
  // Everything it ever started, also after its own end.
  void kill_tree();
  Result<void> resize(WindowSize size);

 private:
  struct Pipes;
  Result<void> launch(const User& user, const EnvList& sandbox_env);
  Result<Pipes> make_pipes(const User& user);
  void watch(Pipes pipes);
  Task<void> pump(std::shared_ptr<AsyncFd> from, Channel channel);
  Task<void> feed();
  Task<void> enforce_timeout();
  Task<void> settle();
  void publish_exit();

  Context context_;
  ExecRequest request_;
  pid_t pid_ = 0;
  std::string cwd_;
  std::int64_t started_at_ms_ = 0;
  std::int64_t ended_at_ms_ = 0;
  Deadline started_;
  std::shared_ptr<Cgroup> cgroup_;
  Output output_;
  std::shared_ptr<AsyncFd> stdin_;  // The terminal, when there is one.
  std::shared_ptr<AsyncFd> terminal_;
  std::vector<std::shared_ptr<AsyncFd>> sources_;
  int open_sources_ = 0;
  Event progress_;  // A source ended or gave something, the command died, a turn is over.
  Deadline last_output_;
  std::optional<int> status_;
  std::optional<ExitInfo> pending_exit_;
  bool writing_ = false;
  bool timed_out_ = false;
  bool killed_by_us_ = false;
};

}  // namespace glovebox::agent
