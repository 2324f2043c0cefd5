#include "cli/supervisor.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <memory>
#include <utility>

#include "async/coro.h"
#include "base/deadline.h"
#include "cli/interrupt.h"
#include "os/sys.h"

namespace glovebox::cli {
namespace {

// Between fork and exec: only what is safe there. 126 tells the parent that exec did not come.
[[noreturn]] void become(const ProgramSpec& spec, char* const* argv, char* const* env) {
  // A group of its own: Ctrl-C in the terminal is for the supervisor, who then stops all in order.
  ::setpgid(0, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  (void)::signal(SIGPIPE, SIG_DFL);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null >= 0) ::dup2(null, STDIN_FILENO);
  // Standard output is for the supervisor's own answer; what they have to say they log.
  if (null >= 0) ::dup2(null, STDOUT_FILENO);
  if (::chdir("/") != 0) ::_exit(126);
  // While we may still go where it lies: a checkout in root's home is closed to its user.
  const int program = ::open(argv[0], O_PATH | O_CLOEXEC);
  if (spec.run_as) {
    if (::setgroups(0, nullptr) != 0 || ::setgid(spec.run_as->gid) != 0 ||
        ::setuid(spec.run_as->uid) != 0) {
      ::_exit(126);
    }
  }
  ::execve(argv[0], argv, env);
  if (errno == EACCES) ::syscall(SYS_execveat, program, "", argv, env, AT_EMPTY_PATH);
  ::_exit(126);
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

std::string describe_end(int status) {
  if (WIFSIGNALED(status)) return "was killed by signal " + std::to_string(WTERMSIG(status));
  if (WEXITSTATUS(status) == 126) return "could not be started";
  return "ended with exit code " + std::to_string(WEXITSTATUS(status));
}

struct Program {
  ProgramSpec spec;
  pid_t pid = 0;  // 0: not running.
  std::deque<Clock::time_point> crashes;
  std::chrono::milliseconds backoff{};
};

}  // namespace

struct Supervisor::Impl : std::enable_shared_from_this<Impl> {
  Impl(const Executor& e, SupervisorConfig c, std::function<void(const std::string&)> r,
       std::function<void()> g)
      : executor(e), config(c), report(std::move(r)), on_give_up(std::move(g)), changed(e) {}

  Result<void> spawn(Program& program);
  void reap();
  void ended(Program& program, int status);
  void restart_later(Program& program);

  Executor executor;
  SupervisorConfig config;
  std::function<void(const std::string&)> report;
  std::function<void()> on_give_up;
  std::vector<std::unique_ptr<Program>> programs;
  std::unique_ptr<SignalWatch> children;
  Timer changed;  // Cancelled whenever a program ends.
  bool stopping = false;
  bool gave_up = false;
};

Result<void> Supervisor::Impl::spawn(Program& program) {
  std::vector<std::string> args = program.spec.argv;
  // Nothing of the caller's environment: it is a service, and root's.
  std::vector<std::string> variables{
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"};
  const std::vector<char*> argv = pointers(args);
  const std::vector<char*> env = pointers(variables);
  const pid_t pid = ::fork();
  if (pid < 0) return Error::from_errno(errno, "start " + program.spec.name);
  if (pid == 0) become(program.spec, argv.data(), env.data());
  program.pid = pid;
  return {};
}

void Supervisor::Impl::reap() {
  for (const auto& program : programs) {
    int status = 0;
    if (program->pid == 0 || ::waitpid(program->pid, &status, WNOHANG) != program->pid) continue;
    program->pid = 0;
    ended(*program, status);
  }
  changed.cancel();
}

void Supervisor::Impl::ended(Program& program, int status) {
  if (stopping) return;
  const auto now = Clock::now();
  program.crashes.push_back(now);
  while (now - program.crashes.front() > config.crash_window) program.crashes.pop_front();
  // A program that refuses its flags, or cannot be executed, will do so again.
  const bool hopeless =
      WIFEXITED(status) && (WEXITSTATUS(status) == 2 || WEXITSTATUS(status) == 126);
  const bool too_often = static_cast<int>(program.crashes.size()) > config.crashes_max;
  if (hopeless || too_often) {
    report(program.spec.name + " " + describe_end(status) +
           (hopeless ? "" : ", too often: giving up"));
    gave_up = true;
    stopping = true;
    on_give_up();
    return;
  }
  program.backoff = program.crashes.size() == 1 ? config.backoff_first
                                                : std::min(program.backoff * 2, config.backoff_max);
  report(program.spec.name + " " + describe_end(status) + "; starting it again in " +
         std::to_string(program.backoff.count()) + " ms");
  restart_later(program);
}

void Supervisor::Impl::restart_later(Program& program) {
  auto timer = std::make_shared<Timer>(executor);
  timer->expires_after(program.backoff);
  timer->async_wait([self = shared_from_this(), timer, &program](boost::system::error_code) {
    if (self->stopping) return;
    const Result<void> spawned = self->spawn(program);
    if (spawned) return;
    self->report(spawned.error().text());
    self->restart_later(program);
  });
}

Supervisor::Supervisor(const Executor& executor, SupervisorConfig config,
                       std::function<void(const std::string&)> report,
                       std::function<void()> on_give_up)
    : impl_(std::make_shared<Impl>(executor, config, std::move(report), std::move(on_give_up))) {
  impl_->children = std::make_unique<SignalWatch>(executor, std::initializer_list<int>{SIGCHLD},
                                                  [impl = impl_.get()](int) { impl->reap(); });
}

Supervisor::~Supervisor() {
  impl_->stopping = true;
  impl_->children.reset();
  for (const auto& program : impl_->programs) {
    if (program->pid == 0) continue;
    ::kill(program->pid, SIGKILL);
    while (::waitpid(program->pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

Result<void> Supervisor::start(ProgramSpec spec) {
  auto program = std::make_unique<Program>();
  program->spec = std::move(spec);
  GB_TRY(impl_->spawn(*program));
  impl_->programs.push_back(std::move(program));
  return {};
}

void Supervisor::signal_all(int signal) {
  for (const auto& program : impl_->programs) {
    if (program->pid != 0) ::kill(program->pid, signal);
  }
}

void Supervisor::kill_all() {
  impl_->stopping = true;
  signal_all(SIGKILL);
}

Task<void> Supervisor::stop() {
  const std::shared_ptr<Impl> impl = impl_;
  impl->stopping = true;
  for (std::size_t i = impl->programs.size(); i-- > 0;) {
    Program& program = *impl->programs[i];
    if (program.pid == 0) continue;
    ::kill(program.pid, SIGTERM);
    const Deadline deadline = after(impl->config.stop_grace);
    while (program.pid != 0) {
      impl->changed.expires_at(deadline);
      co_await impl->changed.async_wait(use_result);
      if (program.pid == 0 || Clock::now() < deadline) continue;
      impl->report(program.spec.name + " did not stop in time and is killed");
      ::kill(program.pid, SIGKILL);
      // Nothing survives SIGKILL for long; the next end is waited for without a limit of ours.
      impl->changed.expires_at(Timer::time_point::max());
      co_await impl->changed.async_wait(use_result);
    }
  }
}

bool Supervisor::gave_up() const noexcept { return impl_->gave_up; }

int Supervisor::running() const noexcept {
  return static_cast<int>(std::count_if(impl_->programs.begin(), impl_->programs.end(),
                                        [](const auto& p) { return p->pid != 0; }));
}

}  // namespace glovebox::cli
