#include "cli/exec_stream.h"

#include <sys/socket.h>

#include <boost/json.hpp>
#include <csignal>
#include <deque>
#include <memory>
#include <utility>

#include "async/coro.h"
#include "async/gate.h"
#include "base/text.h"
#include "cli/json.h"
#include "cli/shell.h"
#include "cli/stdio.h"
#include "net/websocket.h"

namespace glovebox::cli {
namespace {

namespace json = boost::json;

// One message of input: well below the 1 MiB that the other end takes.
constexpr std::size_t kInputBytes = 64 << 10;
constexpr std::chrono::seconds kHandshakeTimeout{60};

// Lets one coroutine write to the WebSocket at a time, in their order.
class WriteLock {
 public:
  explicit WriteLock(const Executor& executor) : executor_(executor) {}

  Task<void> acquire() {
    if (!held_) {
      held_ = true;
      co_return;
    }
    auto timer = std::make_shared<Timer>(executor_);
    timer->expires_at(Timer::time_point::max());
    waiting_.push_back(timer);
    co_await timer->async_wait(use_result);
  }
  // Hands the lock to the longest waiting, if any.
  void release() {
    if (waiting_.empty()) {
      held_ = false;
      return;
    }
    waiting_.front()->cancel();
    waiting_.pop_front();
  }

 private:
  Executor executor_;
  std::deque<std::shared_ptr<Timer>> waiting_;
  bool held_ = false;
};

class Attachment {
 public:
  Attachment(Api& api, const Executor& executor, AttachOptions options)
      : api_(api),
        executor_(executor),
        options_(std::move(options)),
        lock_(executor),
        gate_(executor) {}

  Task<Result<ExecOutcome>> run(std::string sandbox, ExecRequest request);

 private:
  Task<Result<void>> open(std::string sandbox);
  Task<Result<void>> read_to_end();
  Task<void> pump_input();
  Task<void> send_text(std::string text);
  Task<Result<void>> send(std::string bytes, bool binary);
  void start(Task<void> task);
  void on_signal(int signal);
  void follow_window();
  void hang_up() noexcept;
  Result<bool> take_event(std::string_view text);

  Api& api_;
  Executor executor_;
  AttachOptions options_;
  std::unique_ptr<net::WebSocket> socket_;
  int socket_fd_ = -1;  // Of socket_, borrowed: it has no way to be cut short otherwise.
  std::unique_ptr<StandardStream> input_;
  WriteLock lock_;
  async::Gate gate_;
  ExecOutcome outcome_;
  bool pty_ = false;
  bool forwarded_interrupt_ = false;
};

void Attachment::hang_up() noexcept {
  if (socket_fd_ >= 0) ::shutdown(socket_fd_, SHUT_RDWR);
  if (input_) input_->cancel();
}

void Attachment::start(Task<void> task) {
  boost::asio::co_spawn(
      executor_,
      [t = std::move(task), pass = gate_.enter()]() mutable -> Task<void> {
        co_await std::move(t);
      },
      boost::asio::detached);
}

Task<Result<void>> Attachment::send(std::string bytes, bool binary) {
  co_await lock_.acquire();
  Result<void> sent;
  if (binary) {
    sent = co_await socket_->write_binary(bytes, after(kStreamIdle));
  } else {
    sent = co_await socket_->write_text(bytes, after(kStreamIdle));
  }
  lock_.release();
  co_return sent;
}

// A lost connection is noticed by the reader; nothing to do here.
Task<void> Attachment::send_text(std::string text) {
  const Result<void> ignored = co_await send(std::move(text), false);
  static_cast<void>(ignored);
}

Task<void> Attachment::pump_input() {
  std::vector<char> buffer(kInputBytes);
  while (true) {
    const Result<std::size_t> got = co_await input_->read_some(buffer);
    if (!got) co_return;
    if (*got == 0) break;
    std::string bytes(buffer.data(), *got);
    const Result<void> sent = co_await send(std::move(bytes), true);
    if (!sent) co_return;
  }
  // A PTY's input has no end of its own; the terminal's hang-up ends the attachment instead.
  if (pty_) {
    hang_up();
    co_return;
  }
  std::string close = R"({"close_stdin":true})";
  co_await send_text(std::move(close));
}

void Attachment::follow_window() {
  const std::optional<WindowSize> size = window_size(options_.terminal_fd);
  if (!size) return;
  json::object resize;
  resize["cols"] = size->cols;
  resize["rows"] = size->rows;
  json::object message;
  message["resize"] = std::move(resize);
  start(send_text(to_text(message)));
}

void Attachment::on_signal(int signal) {
  if (signal == SIGWINCH) {
    follow_window();
  } else if (signal == SIGINT && !forwarded_interrupt_) {
    forwarded_interrupt_ = true;
    start(send_text(R"({"signal":"SIGINT"})"));
  } else {
    api_.interrupt().raise(signal);
  }
}

Task<Result<void>> Attachment::open(std::string sandbox) {
  Result<net::Stream> stream = co_await api_.dial();
  if (!stream) co_return std::move(stream).error();
  socket_fd_ = stream->fd();
  std::string target = api_.full_target(sandbox_target(sandbox, "exec"));
  net::Headers headers = api_.headers();
  headers.remove("Host");
  Result<std::unique_ptr<net::WebSocket>> socket =
      co_await net::WebSocket::connect(std::move(*stream), api_.host(), std::move(target),
                                       std::move(headers), after(kHandshakeTimeout));
  if (!socket) {
    socket_fd_ = -1;
    co_return std::move(socket).error();
  }
  socket_ = std::move(*socket);
  co_return Result<void>();
}

// True for the last one.
Result<bool> Attachment::take_event(std::string_view text) {
  GB_TRY_ASSIGN(const json::object event, parse_object(text));
  const std::string kind = text_at(event, "event");
  if (kind == "start") {
    outcome_.pid = static_cast<std::int64_t>(number_at(event, "pid"));
  } else if (kind == "lost") {
    outcome_.lost_bytes += static_cast<std::uint64_t>(number_at(event, "bytes"));
  } else if (kind == "exit") {
    outcome_.exit_code = static_cast<int>(number_at(event, "exit_code"));
    outcome_.signal = static_cast<int>(number_at(event, "signal"));
    outcome_.timed_out = flag_at(event, "timed_out");
    outcome_.oom_killed = flag_at(event, "oom_killed");
    outcome_.duration_ms = number_at(event, "duration_ms");
    return true;
  } else if (kind == "error") {
    const json::object& inner = object_at(event, "error");
    const json::object& fault = inner.empty() ? event : inner;
    Errc code = Errc::kInternal;
    for (const Errc c : {Errc::kInvalid, Errc::kNotFound, Errc::kConflict, Errc::kDenied,
                         Errc::kTooLarge, Errc::kExhausted, Errc::kUnavailable, Errc::kTimeout}) {
      if (text_at(fault, "code") == to_string(c)) code = c;
    }
    outcome_.refused = Error(code, text_at(fault, "message"));
    return true;
  }
  return false;
}

Task<Result<void>> Attachment::read_to_end() {
  while (true) {
    Result<net::WebSocket::Message> message = co_await socket_->read(after(kStreamIdle));
    if (!message) {
      co_return std::move(message).context("the connection to the sandbox was lost").error();
    }
    if (message->closed) {
      co_return Error(Errc::kUnavailable, "the sandbox hung up before the command ended");
    }
    if (!message->binary) {
      GB_CO_TRY_ASSIGN(const bool last, take_event(message->data));
      if (last) co_return Result<void>();
      continue;
    }
    if (message->data.empty()) continue;
    const int stream = message->data.front();
    const std::string_view bytes = std::string_view(message->data).substr(1);
    Result<void> taken = co_await options_.output(stream, bytes);
    if (!taken) co_return std::move(taken).error();
  }
}

Task<Result<ExecOutcome>> Attachment::run(std::string sandbox, ExecRequest request) {
  pty_ = request.pty.has_value();
  GB_CO_TRY_ASSIGN(std::string first, exec_request_json(request));
  Result<void> opened = co_await open(std::move(sandbox));
  if (!opened) co_return std::move(opened).error();

  Result<void> ended;
  {
    const Interrupt::Hook hook(api_.interrupt(), [this] { hang_up(); });
    std::unique_ptr<SignalWatch> signals;
    const auto forward = [this](int signal) { on_signal(signal); };
    if (pty_) {
      signals =
          std::make_unique<SignalWatch>(executor_, std::initializer_list<int>{SIGWINCH}, forward);
    } else if (options_.forward_signals) {
      signals =
          std::make_unique<SignalWatch>(executor_, std::initializer_list<int>{SIGINT}, forward);
    }
    ended = co_await send(std::move(first), false);
    if (ended) {
      if (options_.stdin_fd >= 0) {
        input_ = std::make_unique<StandardStream>(executor_, options_.stdin_fd, Direction::kRead);
        start(pump_input());
      }
      ended = co_await read_to_end();
    }
  }
  // Whatever still writes is cut: the command has ended, or must end.
  hang_up();
  co_await gate_.close();
  socket_.reset();
  if (!ended) co_return std::move(ended).error();
  co_return std::move(outcome_);
}

Result<void> check_utf8(std::string_view what, std::string_view text) {
  if (is_utf8(text)) return {};
  return Error(Errc::kInvalid, std::string(what) +
                                   " is not UTF-8, which a request cannot carry; write it to a "
                                   "script and run that");
}

}  // namespace

Result<std::string> exec_request_json(const ExecRequest& request) {
  json::object out;
  if (!request.args.empty()) {
    json::array args;
    for (const std::string& arg : request.args) {
      GB_TRY(check_utf8("an argument", arg));
      args.emplace_back(arg);
    }
    out["args"] = std::move(args);
  } else {
    GB_TRY(check_utf8("the command", request.shell_line));
    out["cmd"] = request.shell_line;
  }
  GB_TRY(check_utf8("--cwd", request.cwd));
  GB_TRY(check_utf8("--user", request.user));
  if (!request.cwd.empty()) out["cwd"] = request.cwd;
  if (!request.user.empty()) out["user"] = request.user;
  if (!request.env.empty()) {
    json::object env;
    for (const auto& [key, value] : request.env) {
      GB_TRY(check_utf8("--env", key));
      GB_TRY(check_utf8("--env", value));
      env[key] = value;
    }
    out["env"] = std::move(env);
  }
  if (request.timeout_s) out["timeout_s"] = *request.timeout_s;
  if (request.pty) {
    json::object pty;
    pty["cols"] = request.pty->cols;
    pty["rows"] = request.pty->rows;
    out["pty"] = std::move(pty);
  }
  if (request.stdin_open) out["stdin"] = true;
  if (request.kill_on_disconnect) out["kill_on_disconnect"] = true;
  if (request.background) out["background"] = true;
  return to_text(out);
}

Task<Result<ExecOutcome>> exec_attached(Api& api, std::string sandbox, ExecRequest request,
                                        AttachOptions options) {
  const Executor executor = co_await boost::asio::this_coro::executor;
  Attachment attachment(api, executor, std::move(options));
  co_return co_await attachment.run(std::move(sandbox), std::move(request));
}

int exit_code_of(const ExecOutcome& outcome) noexcept {
  if (outcome.refused) {
    switch (outcome.refused->code()) {
      case Errc::kNotFound: return kExitNotFound;
      case Errc::kDenied: return kExitCannotRun;
      default: return kExitGlovebox;
    }
  }
  if (outcome.timed_out) return kExitTimeout;
  return outcome.exit_code & 0xff;
}

}  // namespace glovebox::cli
