#include "agent/exec/process_table.h"

#include <fcntl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "async/coro.h"
#include "os/sys.h"

namespace glovebox::agent {
namespace {

constexpr std::size_t kEndedMax = 64;
constexpr std::size_t kEndedBytesMax = 8 << 20;

}  // namespace

ProcessTable::ProcessTable(const Executor& executor, Users& users, UniqueFd cgroup)
    : executor_(executor),
      users_(users),
      cgroup_fd_(cgroup.get()),
      cgroups_(std::move(cgroup)),
      oom_(cgroup_fd_) {}

Result<std::unique_ptr<ProcessTable>> ProcessTable::open(const Executor& executor, Users& users,
                                                         UniqueFd cgroup) {
  std::unique_ptr<ProcessTable> table(new ProcessTable(executor, users, std::move(cgroup)));
  sigset_t child;
  ::sigemptyset(&child);
  ::sigaddset(&child, SIGCHLD);
  UniqueFd fd(::signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!fd) return Error::from_errno(errno, "signalfd");
  table->signals_ = std::make_unique<AsyncFd>(executor, std::move(fd));
  boost::asio::co_spawn(executor, table->reap_forever(), boost::asio::detached);
  return table;
}

Result<std::shared_ptr<Process>> ProcessTable::start(ExecRequest request,
                                                     const EnvList& sandbox_env) {
  GB_TRY_ASSIGN(const User user, users_.find(request.user).context("\"user\""));
  if (!null_) {
    // Not the one we were started with, which may belong to the world outside.
    GB_TRY_ASSIGN(null_, os::openat(AT_FDCWD, "/dev/null", O_RDWR, 0, os::Resolve::kAnywhere));
  }
  const Process::Context context{executor_, cgroups_, oom_, null_.get()};
  GB_TRY_ASSIGN(auto process, Process::start(context, std::move(request), user, sandbox_env));
  running_[process->pid()] = process;
  return process;
}

Result<std::shared_ptr<Process>> ProcessTable::find(pid_t pid) const {
  const auto running = running_.find(pid);
  if (running != running_.end()) return running->second;
  const auto ended = std::find_if(ended_.rbegin(), ended_.rend(),
                                  [pid](const auto& process) { return process->pid() == pid; });
  if (ended != ended_.rend()) return *ended;
  return Error(Errc::kNotFound, "there is no process " + std::to_string(pid));
}

std::vector<std::shared_ptr<Process>> ProcessTable::all() const {
  std::vector<std::shared_ptr<Process>> list(ended_.begin(), ended_.end());
  for (const auto& [pid, process] : running_) list.push_back(process);
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    return std::pair(a->started_at_ms(), a->pid()) < std::pair(b->started_at_ms(), b->pid());
  });
  return list;
}

void ProcessTable::kill_all() {
  for (const auto& process : all()) process->kill_tree();
}

Task<void> ProcessTable::reap_forever() {
  for (;;) {
    co_await signals_->wait_readable();
    signalfd_siginfo info;
    while (::read(signals_->get(), &info, sizeof info) > 0) {
    }
    reap();
  }
}

// Signals merge, so one stands for any number of deaths.
void ProcessTable::reap() {
  for (;;) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG | __WALL);
    if (pid < 0 && errno == EINTR) continue;
    if (pid <= 0) break;
    const auto found = running_.find(pid);
    if (found == running_.end()) continue;  // An orphan that was handed to us.
    const std::shared_ptr<Process> process = std::move(found->second);
    running_.erase(found);
    keep_ended(process);
    process->on_exit(status);
  }
  cgroups_.sweep();
}

void ProcessTable::keep_ended(std::shared_ptr<Process> process) {
  ended_.push_back(std::move(process));
  if (ended_.size() > kEndedMax) {
    ended_.front()->output().drop_kept();
    ended_.pop_front();
  }
  std::size_t bytes = 0;
  for (const auto& each : ended_) bytes += each->output().ring().memory();
  for (const auto& each : ended_) {
    if (bytes <= kEndedBytesMax) break;
    // Who still reads it holds it up to the ring's own bound.
    if (each->output().has_readers()) continue;
    bytes -= each->output().ring().memory();
    each->output().drop_kept();
  }
}

}  // namespace glovebox::agent
