#include "agent/exec/event_stream.h"

#include <algorithm>

#include "agent/exec/event_encoder.h"
#include "async/coro.h"
#include "net/sse.h"

namespace glovebox::agent {
namespace {

constexpr std::chrono::seconds kHeartbeat{10};
constexpr std::chrono::milliseconds kGonePoll{250};
constexpr std::size_t kBatchBytes = 64 << 10;

class EventStream {
 public:
  EventStream(Process& process, StreamOptions options)
      : process_(process), options_(options), reader_(process.output(), options.from) {}

  // What there is to send now; sets ended() with the last of it.
  std::string take() {
    std::string out;
    if (std::exchange(options_.announce_start, false)) encoder_.start(out, process_.pid());
    if (const std::uint64_t lost = reader_.take_lost(); lost > 0) encoder_.lost(out, lost);
    while (out.size() < kBatchBytes) {
      const std::optional<OutputRing::Piece> piece = reader_.next();
      if (!piece) break;
      encoder_.output(out, *piece);
    }
    if (reader_.cursor() < process_.output().ring().end()) return out;
    if (process_.exit()) {
      encoder_.exit(out, *process_.exit());
      ended_ = true;
    } else if (options_.follow == Follow::kNo) {
      encoder_.flush(out);
      ended_ = true;
    } else if (const auto flush_at = encoder_.flush_at(); flush_at && Clock::now() >= *flush_at) {
      encoder_.flush(out);
    }
    return out;
  }

  Task<void> wait(Deadline heartbeat_at) {
    Deadline until = heartbeat_at;
    if (const auto flush_at = encoder_.flush_at()) until = std::min(until, *flush_at);
    if (options_.kill_on_disconnect) until = std::min(until, after(kGonePoll));
    co_await reader_.wait(until);
  }

  bool ended() const noexcept { return ended_; }

 private:
  Process& process_;
  StreamOptions options_;
  Output::Reader reader_;
  EventEncoder encoder_;
  bool ended_ = false;
};

net::Headers stream_headers() {
  return {{"Content-Type", "text/event-stream"},
          {"Cache-Control", "no-cache"},
          {"X-Accel-Buffering", "no"}};
}

Task<Result<void>> send_until_end(net::Exchange& exchange, EventStream& stream) {
  net::Headers headers = stream_headers();
  Result<void> sent = co_await exchange.start(200, std::move(headers), std::nullopt);
  Deadline heartbeat_at = after(kHeartbeat);
  while (sent) {
    std::string out = stream.take();
    if (out.empty() && Clock::now() >= heartbeat_at) out = net::sse_heartbeat();
    if (!out.empty()) {
      sent = co_await exchange.write(out);
      if (!sent) break;
      heartbeat_at = after(kHeartbeat);
    }
    if (stream.ended()) {
      sent = co_await exchange.finish();
      break;
    }
    if (exchange.client_gone()) co_return Error(Errc::kUnavailable, "the client has gone");
    co_await stream.wait(heartbeat_at);
  }
  co_return sent;
}

}  // namespace

Task<Result<void>> stream_events(net::Exchange& exchange, std::shared_ptr<Process> process,
                                 StreamOptions options) {
  EventStream stream(*process, options);
  Result<void> sent = co_await send_until_end(exchange, stream);
  if (!sent && options.kill_on_disconnect && !process->exit()) process->kill_tree();
  co_return sent;
}

}  // namespace glovebox::agent
