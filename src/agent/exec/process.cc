#include "agent/exec/process.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <span>
#include <utility>

#include "agent/common/json_writer.h"
#include "agent/exec/child.h"
#include "agent/exec/environment.h"
#include "agent/exec/process_tree.h"
#include "agent/exec/pty.h"
#include "async/coro.h"
#include "base/time.h"

namespace glovebox::agent {
namespace {

using std::chrono::milliseconds;

// After the command's own end: how long its children may be silent before we stop waiting for
// what they might still say, and how long we listen to those that never fall silent.
constexpr milliseconds kQuiet{25};
constexpr milliseconds kGraceMax{200};
constexpr std::chrono::seconds kDrainMax{30};
constexpr std::chrono::seconds kStdinPatience{60};
constexpr int kReadsInARowMax = 8;

std::int64_t now_ms() {
  return to_unix_ms(std::chrono::time_point_cast<Millis>(std::chrono::system_clock::now()));
}

Result<std::pair<UniqueFd, UniqueFd>> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error::from_errno(errno, "pipe");
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

// Only our end: the other belongs to a program that expects it to block.
void make_non_blocking(const UniqueFd& fd) { ::fcntl(fd.get(), F_SETFL, O_NONBLOCK); }

ExitInfo describe_exit(int status) {
  ExitInfo info;
  if (WIFSIGNALED(status)) {
    info.signal = WTERMSIG(status);
    info.exit_code = 128 + WTERMSIG(status);
  } else {
    info.exit_code = WEXITSTATUS(status);
  }
  return info;
}

}  // namespace

// Our ends, and the child's until it has started.
struct Process::Pipes {
  UniqueFd child_in, child_out, child_err;
  UniqueFd in, out, err;
};

Process::Process(const Context& context, ExecRequest request)
    : context_(context),
      request_(std::move(request)),
      output_(context.executor),
      progress_(context.executor) {}

Process::~Process() = default;

Result<std::shared_ptr<Process>> Process::start(const Context& context, ExecRequest request,
                                                const User& user, const EnvList& sandbox_env) {
  auto process = std::make_shared<Process>(context, std::move(request));
  GB_TRY(process->launch(user, sandbox_env));
  return process;
}

Result<Process::Pipes> Process::make_pipes(const User& user) {
  Pipes pipes;
  if (request_.pty) {
    GB_TRY_ASSIGN(Pty pty, Pty::open(user, *request_.pty));
    pipes.in = std::move(pty.master);
    pipes.child_in = std::move(pty.slave);
    return pipes;
  }
  if (request_.stdin_mode != StdinMode::kNone) {
    GB_TRY_ASSIGN(auto in, make_pipe());
    pipes.child_in = std::move(in.first);
    pipes.in = std::move(in.second);
    make_non_blocking(pipes.in);
  }
  GB_TRY_ASSIGN(auto out, make_pipe());
  GB_TRY_ASSIGN(auto err, make_pipe());
  pipes.out = std::move(out.first);
  pipes.child_out = std::move(out.second);
  pipes.err = std::move(err.first);
  pipes.child_err = std::move(err.second);
  make_non_blocking(pipes.out);
  make_non_blocking(pipes.err);
  return pipes;
}

Result<void> Process::launch(const User& user, const EnvList& sandbox_env) {
  ChildSpec spec;
  spec.user = user;
  spec.env = make_environment(user, request_.pty.has_value(), sandbox_env, request_.env);
  if (request_.args.empty()) {
    spec.candidates = {"/bin/bash", "/bin/sh"};
    // "--": the line may begin with a dash.
    spec.args = {"", "-l", "-c", "--", request_.shell_line};
    spec.args0_is_path = true;
  } else {
    spec.candidates = program_candidates(request_.args.front(), spec.env);
    spec.args = request_.args;
  }
  cwd_ = request_.cwd.value_or(user.home);
  if (!cwd_.starts_with('/')) cwd_ = user.home + "/" + cwd_;
  spec.cwd = cwd_;
  spec.cwd_may_be_missing = !request_.cwd.has_value();

  GB_TRY_ASSIGN(Pipes pipes, make_pipes(user));
  spec.stdin_fd = pipes.child_in ? pipes.child_in.get() : context_.null_fd;
  spec.stdout_fd = request_.pty ? spec.stdin_fd : pipes.child_out.get();
  spec.stderr_fd = request_.pty ? spec.stdin_fd : pipes.child_err.get();
  spec.terminal = request_.pty.has_value();
  cgroup_ = context_.cgroups.take();
  if (cgroup_) spec.cgroup_fd = cgroup_->fd();

  started_ = Clock::now();
  started_at_ms_ = now_ms();
  Result<pid_t> pid = spawn_child(spec);
  if (!pid) {
    context_.cgroups.give_back(cgroup_);
    return std::move(pid).error();
  }
  pid_ = *pid;
  context_.oom.begin();
  watch(std::move(pipes));
  return {};
}

void Process::watch(Pipes pipes) {
  const auto spawn = [this](Task<void> task) {
    // Each task keeps the process alive while it runs.
    boost::asio::co_spawn(context_.executor, std::move(task),
                          [self = shared_from_this()](const std::exception_ptr&) {});
  };
  const auto source = [&](UniqueFd fd, Channel channel) {
    auto from = std::make_shared<AsyncFd>(context_.executor, std::move(fd));
    ++open_sources_;
    spawn(pump(from, channel));
    return from;
  };
  if (request_.pty) {
    terminal_ = source(std::move(pipes.in), Channel::kStdout);
    stdin_ = terminal_;
  } else {
    if (pipes.in) stdin_ = std::make_shared<AsyncFd>(context_.executor, std::move(pipes.in));
    source(std::move(pipes.out), Channel::kStdout);
    source(std::move(pipes.err), Channel::kStderr);
  }
  if (request_.stdin_mode == StdinMode::kFed) spawn(feed());
  if (request_.timeout) spawn(enforce_timeout());
}

Task<void> Process::pump(std::shared_ptr<AsyncFd> from, Channel channel) {
  int in_a_row = kReadsInARowMax;
  for (;;) {
    if (in_a_row >= kReadsInARowMax) {
      in_a_row = 0;
      co_await from->wait_readable();
    }
    if (!output_.exit()) co_await output_.wait_for_room();
    char unwanted[4096];
    const bool wanted = !output_.exit();
    const std::span<char> room = wanted ? output_.prepare(channel) : std::span<char>(unwanted);
    const ssize_t n = ::read(from->get(), room.data(), room.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      in_a_row = kReadsInARowMax;
      continue;
    }
    if (n <= 0) break;  // A terminal that nobody holds any more says EIO.
    const auto bytes = static_cast<std::size_t>(n);
    if (wanted) {
      output_.commit(bytes);
      last_output_ = Clock::now();
      progress_.notify();
    }
    // A short read has emptied the pipe.
    in_a_row = bytes < room.size() ? kReadsInARowMax : in_a_row + 1;
  }
  from->close();
  --open_sources_;
  progress_.notify();
}

Task<void> Process::feed() {
  Result<void> turn = co_await begin_stdin();
  if (!turn) co_return;
  const std::string bytes = std::move(request_.stdin_bytes);
  request_.stdin_bytes.clear();
  // Whatever went wrong: the program did not want the rest, or its exit tells the story.
  [[maybe_unused]] Result<void> fed = co_await write_stdin(bytes);
  end_stdin();
  [[maybe_unused]] const Result<void> closed = close_stdin();
}

Task<Result<void>> Process::begin_stdin() {
  const Deadline deadline = after(kStdinPatience);
  while (writing_) {
    if (Clock::now() >= deadline) co_return Error(Errc::kTimeout, "another writer is not done");
    co_await progress_.wait(deadline);
  }
  writing_ = true;
  co_return Result<void>();
}

void Process::end_stdin() {
  writing_ = false;
  progress_.notify();
}

Task<Result<void>> Process::write_stdin(std::string_view bytes) {
  const std::string who = "process " + std::to_string(pid_);
  if (status_) co_return Error(Errc::kConflict, who + " has ended");
  if (!stdin_) co_return Error(Errc::kConflict, who + " takes no input");
  const std::shared_ptr<AsyncFd> to = stdin_;
  Deadline deadline = after(kStdinPatience);
  while (!bytes.empty()) {
    if (to->get() < 0) co_return Error(Errc::kConflict, who + " takes no more input");
    const ssize_t n = ::write(to->get(), bytes.data(), bytes.size());
    if (n > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
      deadline = after(kStdinPatience);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) co_return Error(Errc::kConflict, who + " has closed its input");
    if (Clock::now() >= deadline) co_return Error(Errc::kTimeout, who + " does not read its input");
    co_await to->wait_writable(deadline);
  }
  co_return Result<void>();
}

Result<void> Process::close_stdin() {
  if (terminal_) {
    return Error(Errc::kInvalid, "a terminal's input cannot be closed: write ^D (byte 4) to it");
  }
  if (!stdin_ && !status_) {
    return Error(Errc::kConflict, "process " + std::to_string(pid_) + " takes no input");
  }
  if (stdin_) stdin_->close();
  return {};
}

Result<void> Process::signal(int number) {
  if (status_) {
    return Error(Errc::kConflict, "process " + std::to_string(pid_) + " has ended");
  }
  if (number == SIGKILL) killed_by_us_ = true;
  // It is not yet waited for, so the number is still its own. The whole group, as a terminal
  // does it: a shell that dies alone would leave the program it waits for.
  if (::kill(-pid_, number) != 0 && ::kill(pid_, number) != 0) {
    return Error::from_errno(errno, "signal " + std::to_string(number));
  }
  // Nobody can use the jobs of a terminal whose shell was killed.
  if (number == SIGKILL && terminal_) kill_tree();
  return {};
}

void Process::kill_tree() {
  killed_by_us_ = true;
  if (cgroup_) {
    cgroup_->kill();
  } else if (!status_) {
    kill_process_tree(pid_);
  }
}

Result<void> Process::resize(WindowSize size) {
  if (!terminal_) {
    return Error(Errc::kConflict, "process " + std::to_string(pid_) + " has no terminal");
  }
  if (terminal_->get() < 0) {
    return Error(Errc::kConflict, "process " + std::to_string(pid_) + " has ended");
  }
  return resize_pty(terminal_->get(), size);
}

Task<void> Process::enforce_timeout() {
  const Deadline deadline = started_ + *request_.timeout;
  while (!status_ && Clock::now() < deadline) co_await progress_.wait(deadline);
  if (status_) co_return;
  timed_out_ = true;
  kill_tree();
}

void Process::on_exit(int status) {
  status_ = status;
  ExitInfo info = describe_exit(status);
  info.timed_out = timed_out_;
  info.duration = std::chrono::duration_cast<milliseconds>(Clock::now() - started_);
  // A shell reports its child's death by SIGKILL as 137.
  if (info.exit_code == 128 + SIGKILL && !killed_by_us_) {
    info.oom_killed = context_.oom.kernel_killed();
  }
  pending_exit_ = info;
  ended_at_ms_ = now_ms();
  if (stdin_ && !terminal_) stdin_->close();
  progress_.notify();
  if (open_sources_ == 0) {
    publish_exit();
    return;
  }
  boost::asio::co_spawn(context_.executor, settle(),
                        [self = shared_from_this()](const std::exception_ptr&) {});
}

// Its pipes may stay open for ever in the hands of what it started; its own last bytes are in
// them by now, and only those are waited for.
Task<void> Process::settle() {
  const Deadline died = Clock::now();
  while (open_sources_ > 0) {
    const Deadline now = Clock::now();
    const Deadline quiet_at = std::max(died, last_output_) + kQuiet;
    if (!output_.held_up() && (now >= quiet_at || now >= died + kGraceMax)) break;
    if (now >= died + kDrainMax) break;
    const Deadline next = std::min(quiet_at, died + kGraceMax);
    co_await progress_.wait(std::max(next, now + milliseconds(5)));
  }
  publish_exit();
}

void Process::publish_exit() {
  output_.end(*pending_exit_);
  context_.cgroups.give_back(cgroup_);
}

std::string Process::to_json() const {
  JsonWriter json;
  json.begin('{').key("pid").number(pid_);
  if (request_.args.empty()) {
    json.key("cmd").string(request_.shell_line);
  } else {
    json.key("args").begin('[');
    for (const std::string& arg : request_.args) json.string(arg);
    json.end(']');
  }
  json.key("user").string(request_.user).key("cwd").string(cwd_).key("tag").string(request_.tag);
  json.key("pty").boolean(request_.pty.has_value());
  json.key("running").boolean(!exit());
  json.key("started_at").string(to_rfc3339(from_unix_ms(started_at_ms_)));
  json.key("oldest_cursor").number(static_cast<std::int64_t>(output_.ring().begin()));
  json.key("cursor").number(static_cast<std::int64_t>(output_.ring().end()));
  if (exit()) {
    json.key("ended_at").string(to_rfc3339(from_unix_ms(ended_at_ms_)));
    json.key("exit_code").number(exit()->exit_code);
    json.key("signal");
    exit()->signal ? json.number(*exit()->signal) : json.null();
    json.key("timed_out").boolean(exit()->timed_out);
    json.key("oom_killed").boolean(exit()->oom_killed);
    json.key("duration_ms").number(exit()->duration.count());
  }
  json.end('}');
  return std::move(json).take();
}

}  // namespace glovebox::agent
