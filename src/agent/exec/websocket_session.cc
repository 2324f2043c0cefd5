#include "agent/exec/websocket_session.h"

#include <utility>

#include "agent/common/event.h"
#include "agent/common/json_fields.h"
#include "agent/common/json_writer.h"
#include "agent/exec/event_encoder.h"
#include "agent/exec/signals.h"
#include "async/coro.h"
#include "async/gate.h"

namespace glovebox::agent {
namespace {

constexpr std::chrono::seconds kFirstMessage{30};
constexpr std::chrono::seconds kWrite{60};
constexpr std::chrono::seconds kPing{10};
constexpr std::chrono::seconds kClose{2};
constexpr std::chrono::hours kSilence{24 * 30};  // A person may only watch.

std::string event_text(std::string_view name, const JsonWriter& members) {
  return "{\"event\":\"" + std::string(name) + "\"" + members.text() + "}";
}

std::string error_text(const Error& error) {
  JsonWriter json;
  json.begin('{').key("event").string("error").key("code").string(to_string(error.code()));
  json.key("message").string(error.text()).end('}');
  return std::move(json).take();
}

// Shared by the two coroutines of a session; both end before it does.
class Session {
 public:
  Session(const Executor& executor, std::unique_ptr<net::WebSocket> socket,
          std::shared_ptr<Process> process)
      : socket_(std::move(socket)), process_(std::move(process)), turn_(executor) {}

  // From the command to the client. Ends with the command, or when the client is not there.
  Task<void> send_output();
  // From the client to the command. Ends when the client does.
  Task<void> take_input();

  net::WebSocket& socket() noexcept { return *socket_; }
  Process& process() noexcept { return *process_; }

 private:
  // Two writers, one at a time.
  Task<Result<void>> send_text(std::string text);
  Task<Result<void>> send_binary(std::string bytes);
  Task<Result<void>> send_piece(const OutputRing::Piece& piece);
  Task<Result<void>> obey(std::string text);
  Task<Result<void>> write_stdin(std::string bytes);
  Task<void> begin_turn();
  void end_turn();

  std::unique_ptr<net::WebSocket> socket_;
  std::shared_ptr<Process> process_;
  Event turn_;
  bool writing_ = false;
  bool gone_ = false;
};

Task<void> Session::begin_turn() {
  while (writing_) co_await turn_.wait(after(kWrite));
  writing_ = true;
}

void Session::end_turn() {
  writing_ = false;
  turn_.notify();
}

Task<Result<void>> Session::send_text(std::string text) {
  co_await begin_turn();
  Result<void> sent = co_await socket_->write_text(text, after(kWrite));
  end_turn();
  co_return sent;
}

Task<Result<void>> Session::send_binary(std::string bytes) {
  co_await begin_turn();
  Result<void> sent = co_await socket_->write_binary(bytes, after(kWrite));
  end_turn();
  co_return sent;
}

Task<Result<void>> Session::send_piece(const OutputRing::Piece& piece) {
  std::string frame(1, static_cast<char>(piece.channel));
  frame.append(piece.bytes);
  Result<void> sent = co_await send_binary(std::move(frame));
  co_return sent;
}

Task<void> Session::send_output() {
  JsonWriter start;
  start.raw("").key("pid").number(process_->pid());
  Result<void> sent = co_await send_text(event_text("start", start));
  Output::Reader reader(process_->output(), 0);
  Deadline ping_at = after(kPing);
  while (sent && !gone_) {
    if (const std::uint64_t lost = reader.take_lost(); lost > 0) {
      JsonWriter json;
      json.raw("").key("bytes").number(static_cast<std::int64_t>(lost));
      sent = co_await send_text(event_text("lost", json));
      continue;
    }
    const std::optional<OutputRing::Piece> piece = reader.next();
    if (piece) {
      sent = co_await send_piece(*piece);
      continue;
    }
    if (process_->exit()) {
      JsonWriter json;
      json.raw("");
      write_exit(json, *process_->exit());
      sent = co_await send_text(event_text("exit", json));
      break;
    }
    co_await reader.wait(ping_at);
    if (Clock::now() < ping_at) continue;
    co_await begin_turn();
    sent = co_await socket_->ping(after(kWrite));
    end_turn();
    ping_at = after(kPing);
  }
}

Task<Result<void>> Session::write_stdin(std::string bytes) {
  Result<void> done = co_await process_->begin_stdin();
  if (!done) co_return done;
  done = co_await process_->write_stdin(bytes);
  process_->end_stdin();
  co_return done;
}

// {"stdin": "…"}, {"close_stdin": true}, {"signal": …} or {"resize": {…}}
Task<Result<void>> Session::obey(std::string text) {
  GB_CO_TRY_ASSIGN(JsonFields json, JsonFields::parse(text));
  std::optional<std::string> input = json.any_text("stdin");
  const bool close = json.boolean("close_stdin").value_or(false);
  std::optional<JsonFields> resize = json.object("resize");
  const bool has_signal = json.has("signal");
  int signal = 0;
  if (has_signal) {
    GB_CO_TRY_ASSIGN(signal, parse_signal(json));
  }
  GB_CO_TRY(json.finish());
  if (input) {
    Result<void> written = co_await write_stdin(std::move(*input));
    if (!written) co_return written;
  }
  if (close) GB_CO_TRY(process_->close_stdin());
  if (resize) {
    GB_CO_TRY_ASSIGN(const WindowSize size, parse_window_size(*resize));
    GB_CO_TRY(process_->resize(size));
  }
  if (has_signal) GB_CO_TRY(process_->signal(signal));
  co_return Result<void>();
}

Task<void> Session::take_input() {
  for (;;) {
    Result<net::WebSocket::Message> message = co_await socket_->read(after(kSilence));
    if (!message || message->closed) break;
    std::string data = std::move(message->data);
    Result<void> done;
    if (message->binary) {
      done = co_await write_stdin(std::move(data));
    } else {
      done = co_await obey(std::move(data));
    }
    if (done || process_->exit()) continue;
    Result<void> sent = co_await send_text(error_text(done.error()));
    if (!sent) break;
  }
  gone_ = true;
  if (process_->request().kill_on_disconnect && !process_->exit()) process_->kill_tree();
}

Task<Result<std::shared_ptr<Process>>> start_from(ProcessTable& table, net::WebSocket& socket,
                                                  EnvList sandbox_env) {
  Result<net::WebSocket::Message> first = co_await socket.read(after(kFirstMessage));
  if (!first) co_return std::move(first).error();
  if (first->closed) co_return Error(Errc::kUnavailable, "the client has gone");
  if (first->binary) co_return Error(Errc::kInvalid, "the first message must be a JSON text");
  GB_CO_TRY_ASSIGN(ExecRequest request, parse_exec_request(first->data));
  co_return table.start(std::move(request), sandbox_env);
}

}  // namespace

Task<void> run_websocket_session(ProcessTable& table, std::unique_ptr<net::WebSocket> socket,
                                 EnvList sandbox_env) {
  Result<std::shared_ptr<Process>> process =
      co_await start_from(table, *socket, std::move(sandbox_env));
  if (!process) {
    const std::string text = error_text(process.error());
    [[maybe_unused]] Result<void> told = co_await socket->write_text(text, after(kWrite));
    co_await socket->close("", after(kClose));
    co_return;
  }
  const Executor executor = co_await boost::asio::this_coro::executor;
  Session session(executor, std::move(socket), std::move(*process));
  async::Gate gate(executor);
  auto pass = std::make_shared<async::Gate::Pass>(*gate.enter());
  boost::asio::co_spawn(executor, session.take_input(), [pass](const std::exception_ptr&) {});
  pass.reset();
  co_await session.send_output();
  co_await session.socket().close("", after(kClose));
  co_await gate.close();
}

}  // namespace glovebox::agent
