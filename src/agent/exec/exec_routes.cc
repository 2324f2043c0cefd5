#include "agent/exec/exec_routes.h"

#include <charconv>
#include <csignal>
#include <utility>

#include "agent/common/json_fields.h"
#include "agent/common/json_writer.h"
#include "agent/common/reply.h"
#include "agent/exec/event_encoder.h"
#include "agent/exec/event_stream.h"
#include "agent/exec/output_tail.h"
#include "agent/exec/signals.h"
#include "agent/exec/websocket_session.h"
#include "async/coro.h"

namespace glovebox::agent {
namespace {

constexpr std::size_t kSmallBodyMax = 64 << 10;
constexpr std::size_t kWholeReplyMax = 256 << 10;  // Beyond, an answer is sent in parts.
constexpr std::chrono::seconds kGonePoll{5};
constexpr std::chrono::milliseconds kKillPoll{250};

bool wants_events(const net::RequestHead& head) {
  return head.headers.get("Accept").find("text/event-stream") != std::string_view::npos;
}

Result<EnvList> sandbox_env(const net::Exchange& exchange) {
  return parse_default_env(exchange.head().headers.get("Glovebox-Default-Env"));
}

Result<bool> parse_flag(const net::Target& target, std::string_view name, bool otherwise) {
  const auto value = target.param(name);
  if (!value) return otherwise;
  if (*value == "1" || *value == "true") return true;
  if (*value == "0" || *value == "false") return false;
  return Error(Errc::kInvalid, "\"" + std::string(name) + "\" must be 0 or 1");
}

Result<std::uint64_t> parse_cursor(const net::Target& target, const OutputRing& ring) {
  const auto text = target.param("from");
  if (!text) return ring.begin();
  std::uint64_t cursor = 0;
  const auto [end, ec] = std::from_chars(text->data(), text->data() + text->size(), cursor);
  if (ec != std::errc() || end != text->data() + text->size() || cursor > ring.end()) {
    return Error(Errc::kInvalid, "\"from\" must be a cursor up to " + std::to_string(ring.end()));
  }
  return cursor;
}

// Both channels of one command, gathered to its end.
struct Gathered {
  explicit Gathered(std::size_t& budget) : out(budget), err(budget) {}
  OutputTail out;
  OutputTail err;
};

// False when the client has gone.
Task<bool> gather(net::Exchange& exchange, Process& process, Gathered& into) {
  Output::Reader reader(process.output(), 0);
  const auto poll = process.request().kill_on_disconnect ? Clock::duration(kKillPoll)
                                                         : Clock::duration(kGonePoll);
  Deadline look_at = after(poll);
  for (;;) {
    while (const std::optional<OutputRing::Piece> piece = reader.next()) {
      (piece->channel == Channel::kStdout ? into.out : into.err).append(piece->bytes);
    }
    if (process.exit()) co_return true;
    co_await reader.wait(look_at);
    if (Clock::now() < look_at) continue;
    if (exchange.client_gone()) co_return false;
    look_at = after(poll);
  }
}

std::string result_head(const Process& process, const Gathered& gathered) {
  JsonWriter json;
  json.begin('{').key("pid").number(process.pid());
  write_exit(json, *process.exit());
  json.key("stdout_truncated").boolean(gathered.out.truncated());
  json.key("stderr_truncated").boolean(gathered.err.truncated());
  return std::move(json).take();
}

// The members that may be long, each through `write`.
template <class Write>
Task<Result<void>> write_result(const std::string& head, const Gathered& gathered, Write write) {
  Result<void> sent = co_await write(head);
  for (const bool out : {true, false}) {
    if (!sent) co_return sent;
    const OutputTail& tail = out ? gathered.out : gathered.err;
    std::string key = out ? ",\"stdout" : ",\"stderr";
    key += tail.is_text() ? "\":" : "_b64\":";
    sent = co_await write(std::move(key));
    if (!sent) co_return sent;
    sent = co_await tail.write_json(write);
  }
  if (!sent) co_return sent;
  sent = co_await write(std::string("}"));
  co_return sent;
}

Task<Result<void>> append_to(std::string& whole, std::string part) {
  whole += part;
  co_return Result<void>();
}

Task<Result<void>> send_part(net::Exchange& exchange, std::string part) {
  Result<void> sent = co_await exchange.write(part);
  co_return sent;
}

}  // namespace

Task<Result<void>> ExecRoutes::exec(net::Exchange& exchange) {
  Result<std::string> body = co_await read_json_body(exchange, kExecBodyBytesMax);
  if (!body) co_return std::move(body).error();
  GB_CO_TRY_ASSIGN(ExecRequest request, parse_exec_request(*body));
  body = std::string();
  GB_CO_TRY_ASSIGN(const EnvList env, sandbox_env(exchange));
  GB_CO_TRY_ASSIGN(const std::shared_ptr<Process> process, table_.start(std::move(request), env));
  if (process->request().background) {
    net::Response reply = json_reply(200, "{\"pid\":" + std::to_string(process->pid()) + "}");
    Result<void> sent = co_await exchange.respond(std::move(reply));
    co_return sent;
  }
  if (!wants_events(exchange.head())) {
    Result<void> sent = co_await answer_whole(exchange, process);
    co_return sent;
  }
  StreamOptions options;
  options.announce_start = true;
  options.kill_on_disconnect = process->request().kill_on_disconnect;
  Result<void> sent = co_await stream_events(exchange, process, options);
  co_return sent;
}

Task<Result<void>> ExecRoutes::answer_whole(net::Exchange& exchange,
                                            std::shared_ptr<Process> process) {
  Gathered gathered(tail_bytes_);
  const bool there = co_await gather(exchange, *process, gathered);
  if (!there) {
    if (process->request().kill_on_disconnect) process->kill_tree();
    co_return Error(Errc::kUnavailable, "the client has gone");
  }
  gathered.out.settle();
  gathered.err.settle();
  const std::string head = result_head(*process, gathered);
  if (gathered.out.size() + gathered.err.size() <= kWholeReplyMax) {
    std::string whole;
    const auto append = [&whole](std::string part) { return append_to(whole, std::move(part)); };
    [[maybe_unused]] Result<void> done = co_await write_result(head, gathered, append);
    net::Response reply = json_reply(200, std::move(whole));
    Result<void> sent = co_await exchange.respond(std::move(reply));
    co_return sent;
  }
  net::Headers headers;
  headers.add("Content-Type", "application/json");
  Result<void> sent = co_await exchange.start(200, std::move(headers), std::nullopt);
  if (!sent) co_return sent;
  const auto send = [&exchange](std::string part) { return send_part(exchange, std::move(part)); };
  sent = co_await write_result(head, gathered, send);
  if (!sent) co_return sent;
  sent = co_await exchange.finish();
  co_return sent;
}

Task<Result<void>> ExecRoutes::exec_websocket(net::Exchange& exchange) {
  GB_CO_TRY_ASSIGN(EnvList env, sandbox_env(exchange));
  Result<std::unique_ptr<net::WebSocket>> socket = co_await exchange.accept_websocket();
  if (!socket) co_return std::move(socket).error();
  co_await run_websocket_session(table_, std::move(*socket), std::move(env));
  co_return Result<void>();
}

Task<Result<void>> ExecRoutes::list(net::Exchange& exchange) {
  std::string json = "{\"processes\":[";
  for (const auto& process : table_.all()) {
    if (json.back() != '[') json += ',';
    json += process->to_json();
  }
  json += "]}";
  net::Response reply = json_reply(200, std::move(json));
  Result<void> sent = co_await exchange.respond(std::move(reply));
  co_return sent;
}

Task<Result<void>> ExecRoutes::get(net::Exchange& exchange, pid_t pid) {
  GB_CO_TRY_ASSIGN(const std::shared_ptr<Process> process, table_.find(pid));
  net::Response reply = json_reply(200, process->to_json());
  Result<void> sent = co_await exchange.respond(std::move(reply));
  co_return sent;
}

Task<Result<void>> ExecRoutes::output(net::Exchange& exchange, pid_t pid, net::Target target) {
  GB_CO_TRY_ASSIGN(const std::shared_ptr<Process> process, table_.find(pid));
  StreamOptions options;
  GB_CO_TRY_ASSIGN(options.from, parse_cursor(target, process->output().ring()));
  GB_CO_TRY_ASSIGN(const bool follow, parse_flag(target, "follow", true));
  options.follow = follow ? Follow::kYes : Follow::kNo;
  Result<void> sent = co_await stream_events(exchange, process, options);
  co_return sent;
}

namespace {

Task<Result<void>> copy_to_stdin(net::Exchange& exchange, Process& process) {
  std::string buffer(16 << 10, '\0');
  for (;;) {
    Result<std::size_t> n = co_await exchange.read_body(buffer);
    if (!n) co_return std::move(n).error();
    if (*n == 0) co_return Result<void>();
    const std::string_view bytes(buffer.data(), *n);
    Result<void> written = co_await process.write_stdin(bytes);
    if (!written) co_return written;
  }
}

}  // namespace

Task<Result<void>> ExecRoutes::write_stdin(net::Exchange& exchange, pid_t pid, net::Target target) {
  GB_CO_TRY_ASSIGN(const std::shared_ptr<Process> process, table_.find(pid));
  GB_CO_TRY_ASSIGN(const bool close, parse_flag(target, "close", false));
  // An empty write is a question too: may I write?
  Result<void> done = co_await process->write_stdin("");
  if (!done && !(close && process->exit())) co_return done;
  done = co_await process->begin_stdin();
  if (!done) co_return done;
  done = co_await copy_to_stdin(exchange, *process);
  if (done && close) done = process->close_stdin();
  process->end_stdin();
  if (!done) co_return done;
  net::Response reply = no_content();
  Result<void> sent = co_await exchange.respond(std::move(reply));
  co_return sent;
}

Task<Result<void>> ExecRoutes::signal(net::Exchange& exchange, pid_t pid) {
  GB_CO_TRY_ASSIGN(const std::shared_ptr<Process> process, table_.find(pid));
  Result<std::string> body = co_await read_json_body(exchange, kSmallBodyMax);
  if (!body) co_return std::move(body).error();
  GB_CO_TRY_ASSIGN(JsonFields json, JsonFields::parse(*body));
  GB_CO_TRY_ASSIGN(const int number, parse_signal(json));
  const bool tree = json.boolean("tree").value_or(false);
  if (tree && number != SIGKILL) json.fail("tree", "goes with SIGKILL only");
  GB_CO_TRY(json.finish());
  if (tree) {
    process->kill_tree();
  } else {
    GB_CO_TRY(process->signal(number));
  }
  net::Response reply = no_content();
  Result<void> sent = co_await exchange.respond(std::move(reply));
  co_return sent;
}

Task<Result<void>> ExecRoutes::resize(net::Exchange& exchange, pid_t pid) {
  GB_CO_TRY_ASSIGN(const std::shared_ptr<Process> process, table_.find(pid));
  Result<std::string> body = co_await read_json_body(exchange, kSmallBodyMax);
  if (!body) co_return std::move(body).error();
  GB_CO_TRY_ASSIGN(JsonFields json, JsonFields::parse(*body));
  if (!json.has("cols") || !json.has("rows")) {
    co_return Error(Errc::kInvalid, "\"cols\" and \"rows\" are both needed");
  }
  GB_CO_TRY_ASSIGN(const WindowSize size, parse_window_size(json));
  GB_CO_TRY(process->resize(size));
  net::Response reply = no_content();
  Result<void> sent = co_await exchange.respond(std::move(reply));
  co_return sent;
}

}  // namespace glovebox::agent
