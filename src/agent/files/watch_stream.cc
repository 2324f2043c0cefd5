#include "agent/files/watch_stream.h"

#include "agent/common/event.h"
#include "agent/common/json_writer.h"
#include "agent/files/watcher.h"
#include "async/coro.h"
#include "base/text.h"
#include "net/sse.h"

namespace glovebox::agent {
namespace {

constexpr std::chrono::seconds kHeartbeat{10};

std::string format(const std::deque<Change>& changes) {
  std::string out;
  for (const Change& change : changes) {
    JsonWriter json;
    json.begin('{').key("type").string(change.type).key("path").string(change.path);
    if (!is_utf8(change.path)) json.key("path_b64").base64(change.path);
    if (!change.message.empty()) json.key("message").string(change.message);
    json.end('}');
    out.append("event: ").append(change.type).append("\ndata: ").append(json.text());
    out.append("\n\n");
  }
  return out;
}

// Passes on that the descriptor is readable to a wait that also ends at a deadline.
struct Signal {
  explicit Signal(const Executor& executor) : event(executor) {}
  Event event;
  bool readable = false;
  bool stopped = false;
};

Task<void> await_changes(std::shared_ptr<Watcher> watcher, std::shared_ptr<Signal> signal) {
  while (!signal->stopped) {
    co_await watcher->wait_readable();
    signal->readable = true;
    signal->event.notify();
    // Taken before the next wait: the descriptor stays readable until then.
    while (signal->readable && !signal->stopped) co_await signal->event.wait(after(kHeartbeat));
  }
}

Task<Result<void>> send_changes(net::Exchange& exchange, Watcher& watcher, Signal& signal) {
  Result<void> sent = co_await exchange.write(":\n\n");
  Deadline heartbeat_at = after(kHeartbeat);
  while (sent) {
    signal.readable = false;
    std::string out = format(watcher.take());
    signal.event.notify();
    if (out.empty() && Clock::now() >= heartbeat_at) out = net::sse_heartbeat();
    if (!out.empty()) {
      sent = co_await exchange.write(out);
      heartbeat_at = after(kHeartbeat);
      continue;  // More may have come meanwhile.
    }
    if (watcher.ended()) {
      sent = co_await exchange.finish();
      break;
    }
    if (exchange.client_gone()) co_return Error(Errc::kUnavailable, "the client has gone");
    if (!signal.readable) co_await signal.event.wait(heartbeat_at);
  }
  co_return sent;
}

}  // namespace

Task<Result<void>> stream_changes(net::Exchange& exchange, FileCall call, std::string path,
                                  bool recursive) {
  const Executor executor = co_await boost::asio::this_coro::executor;
  GB_CO_TRY_ASSIGN(std::shared_ptr<Watcher> watcher,
                   Watcher::open(executor, std::move(call), path, recursive));
  net::Headers headers{{"Content-Type", "text/event-stream"},
                       {"Cache-Control", "no-cache"},
                       {"X-Accel-Buffering", "no"}};
  Result<void> sent = co_await exchange.start(200, std::move(headers), std::nullopt);
  if (!sent) co_return sent;
  auto signal = std::make_shared<Signal>(executor);
  boost::asio::co_spawn(executor, await_changes(watcher, signal), boost::asio::detached);
  sent = co_await send_changes(exchange, *watcher, *signal);
  signal->stopped = true;
  watcher->close();
  signal->event.notify();
  co_return sent;
}

}  // namespace glovebox::agent
