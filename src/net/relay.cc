#include "net/relay.h"

#include <algorithm>
#include <array>
#include <boost/asio/experimental/awaitable_operators.hpp>

#include "async/coro.h"
#include "net/connection.h"
#include "net/head.h"
#include "net/mover.h"
#include "net/relay_head.h"
#include "net/serialize.h"
#include "net/upstream.h"

namespace glovebox::net {
namespace {

constexpr auto kDialTimeout = std::chrono::seconds(10);
constexpr std::size_t kReplyHeadBytesMax = 64 << 10;
constexpr std::uint64_t kSpliceBytesMin = 64 << 10;
constexpr int kInterimRepliesMax = 16;

bool is_idempotent(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE" ||
         method == "OPTIONS" || method == "TRACE";
}

// One request, on its way to the upstream and back.
class Relay {
 public:
  Relay(Connection& client, std::shared_ptr<UpstreamPool::Impl> pool, const Dial& dial,
        const RelayOptions& options)
      : client_(client),
        pool_(std::move(pool)),
        dial_(dial),
        options_(options),
        patience_(options.idle) {}
  ~Relay() {
    if (!client_.taken_over()) client_.wire().watch.clear_alarm();
  }

  Task<Result<void>> run();

 private:
  Task<Result<void>> connect(bool fresh);
  Task<Result<void>> exchange();
  Task<Result<void>> upload();
  Task<Result<void>> upload_chunks();
  Task<Result<void>> upload_length();
  Task<Result<void>> download();
  Task<Result<ResponseHead>> read_head();
  Task<Result<std::string_view>> fill_head();
  Task<Result<void>> answer(const ResponseHead& head);
  void frame_reply(const ResponseHead& head);
  Task<Result<void>> pass_body();
  // kWhole: the reply was passed on. kMore: there was more than fits into one write.
  enum class Pieces { kWhole, kMore, kAll };
  Task<Result<Pieces>> pass_pieces();
  Task<Result<void>> splice_body();
  Task<Result<void>> tunnel_through(const ResponseHead& head);

  void watch_client(bool only_broken);
  static void client_hung_up(void* relay);
  Error failure(Error error) const;

  Connection& client_;
  std::shared_ptr<UpstreamPool::Impl> pool_;
  const Dial& dial_;
  const RelayOptions& options_;
  Patience patience_;
  std::unique_ptr<Upstream> upstream_;
  std::string head_bytes_;
  bool uploading_ = false;
  bool upload_whole_ = true;
  bool got_reply_ = false;  // At least a byte of it.
  bool client_left_ = false;
};

Error Relay::failure(Error error) const {
  if (client_left_) return Error(Errc::kUnavailable, "the client hung up");
  return std::move(error).context("relay");
}

Task<Result<void>> Relay::connect(bool fresh) {
  const bool surely_open = !is_idempotent(client_.head().method) || client_.head().has_body();
  if (!fresh) upstream_ = pool_->take(surely_open);
  if (upstream_) co_return Result<void>();
  Task<Result<Stream>> dialling = dial_(after(kDialTimeout));
  Result<Stream> stream = co_await std::move(dialling);
  if (!stream) co_return std::move(stream).error();
  upstream_ = std::make_unique<Upstream>(*std::move(stream));
  // Nothing was asked yet, so that there is nothing to read.
  upstream_->stream.impl().watch.readable = false;
  co_return Result<void>();
}

Task<Result<void>> Relay::run() {
  const RequestHead& head = client_.head();
  GB_CO_TRY_ASSIGN(head_bytes_, upstream_head(head, options_));
  for (bool fresh = false;; fresh = true) {
    GB_CO_TRY(co_await connect(fresh));
    Result<void> done = co_await exchange();
    if (done) co_return done;
    const bool stale = upstream_ && upstream_->reused && !got_reply_ && !client_left_ &&
                       done.error().code() == Errc::kUnavailable;
    upstream_.reset();
    if (stale && !fresh && is_idempotent(head.method) && !head.has_body()) continue;
    // A reply cut short must not be taken for a whole one.
    if (client_.started() || client_left_) client_.abort();
    co_return failure(std::move(done).error());
  }
}

Task<Result<void>> Relay::exchange() {
  using namespace boost::asio::experimental::
      awaitable_operators;  // NOLINT(google-build-using-namespace)
  patience_.renew();
  GB_CO_TRY(co_await upstream_->stream.write_all(head_bytes_, patience_.until()));
  if (!client_.head().has_body()) {
    watch_client(false);
    co_return co_await download();
  }
  uploading_ = true;
  upload_whole_ = false;
  watch_client(true);
  auto both = upload() && download();
  auto [up, down] = co_await std::move(both);
  // The reply counts: an upstream may give it without having read all.
  if (down) co_return down;
  if (!up) co_return up;
  co_return down;
}

void Relay::watch_client(bool only_broken) {
  Watch& watch = client_.wire().watch;
  watch.set_alarm(
      Watch::Alarm{.call = &Relay::client_hung_up, .with = this, .only_broken = only_broken});
  if (only_broken ? watch.broken : watch.hung_up) client_hung_up(this);
}

// Ends the waits for the upstream, wherever the coroutine is.
void Relay::client_hung_up(void* relay) {
  auto& self = *static_cast<Relay*>(relay);
  self.client_left_ = true;
  if (self.upstream_) self.upstream_->stream.close();
}

// --- The request's body.

Task<Result<void>> Relay::upload() {
  Result<void> done = co_await client_.allow_body();
  if (done) {
    if (client_.head().chunked) {
      done = co_await upload_chunks();
    } else {
      done = co_await upload_length();
    }
  }
  uploading_ = false;
  upload_whole_ = done.has_value();
  if (done && upstream_->stream.fd() >= 0) watch_client(false);
  co_return done;
}

Task<Result<void>> Relay::upload_chunks() {
  std::unique_ptr<char[]> block = client_.wire().loop.take_block();
  const std::span<char> room(block.get(), Loop::kBlockBytes);
  Result<void> done;
  for (bool more = true; more && done;) {
    patience_.renew();
    Result<std::size_t> n = co_await client_.body().read(room, patience_.until());
    if (!n) {
      // Without its last chunk the upstream must not take it for whole.
      upstream_->stream.close();
      done = std::move(n).error();
      break;
    }
    more = *n > 0;
    char space[24];
    const std::string_view header = chunk_header(*n, space);
    std::array<::iovec, 3> parts;
    parts[0] = ::iovec{const_cast<char*>(header.data()), header.size()};
    parts[1] = ::iovec{block.get(), *n};
    parts[2] = ::iovec{const_cast<char*>("\r\n"), 2};
    done = co_await upstream_->stream.impl().write_parts(parts.data(), parts.size(),
                                                         patience_.until());
  }
  client_.wire().loop.give_block(std::move(block));
  co_return done;
}

Task<Result<void>> Relay::upload_length() {
  BodyReader& body = client_.body();
  InBuffer& in = client_.input();
  if (!in.empty()) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(in.size(), body.left()));
    const std::string_view first = in.view().substr(0, n);
    Result<void> sent = co_await upstream_->stream.write_all(first, patience_.until());
    in.consume(n);
    body.took(n);
    if (!sent) co_return sent;
  }
  if (body.done()) co_return Result<void>();
  in.release_if_empty();
  const bool bulk = body.left() > kSpliceBytesMin;
  Moved moved =
      co_await move_bytes(client_.wire(), upstream_->stream.impl(), body.left(), bulk, patience_);
  body.took(moved.bytes);
  switch (moved.end) {
    case Moved::End::kAll: co_return Result<void>();
    case Moved::End::kToFailed: co_return std::move(moved.error);
    case Moved::End::kFromEnded:
      client_left_ = true;
      moved.error = Error(Errc::kUnavailable, "request body cut short");
      break;
    case Moved::End::kFromFailed: break;
  }
  upstream_->stream.close();
  co_return std::move(moved.error);
}

// --- The reply.

Task<Result<std::string_view>> Relay::fill_head() {
  Stream::Impl& stream = upstream_->stream.impl();
  InBuffer& in = upstream_->in;
  HeadScanner scanner;
  Deadline deadline = after(options_.head_timeout);
  for (;;) {
    const HeadScanner::Found found = scanner.scan(in.view());
    if (found == HeadScanner::Found::kBad) co_return Error(Errc::kUnavailable, "malformed reply");
    if (found == HeadScanner::Found::kEnd) co_return in.view().substr(0, scanner.head_bytes());
    if (!stream.fd) co_return Error(Errc::kUnavailable, "upstream: closed");
    ssize_t n = kWouldBlock;
    if (stream.watch.readable) {
      const std::span<char> room = in.prepare(kReplyHeadBytesMax);
      if (room.empty()) co_return Error(Errc::kUnavailable, "reply's head over 64 KiB");
      n = stream.try_read(room.data(), room.size());
    }
    if (n == 0) co_return Error(Errc::kUnavailable, "upstream closed before its reply");
    if (n == kFailed) co_return Error::from_errno(stream.error, "read reply");
    if (n > 0) {
      got_reply_ = true;
      in.commit(static_cast<std::size_t>(n));
      continue;
    }
    stream.busy = 0;
    in.release_if_empty();
    const Wake wake = co_await stream.readable(deadline);
    if (wake == Wake::kTimeout && uploading_) {
      deadline = after(options_.head_timeout);  // Counts from the end of the request.
    } else if (wake != Wake::kReady) {
      co_return wake_error(wake, "wait for reply");
    }
  }
}

Task<Result<ResponseHead>> Relay::read_head() {
  for (int interim = 0; interim <= kInterimRepliesMax; ++interim) {
    Result<std::string_view> bytes = co_await fill_head();
    if (!bytes) co_return std::move(bytes).error();
    std::variant<ResponseHead, HeadFault> parsed = parse_response_head(*bytes);
    upstream_->in.consume(bytes->size());
    if (const HeadFault* fault = std::get_if<HeadFault>(&parsed)) {
      co_return Error(Errc::kUnavailable, std::string(fault->message));
    }
    ResponseHead head = std::move(std::get<ResponseHead>(parsed));
    if (head.status >= 200 || head.status == 101) co_return head;
  }
  co_return Error(Errc::kUnavailable, "too many interim replies");
}

Task<Result<void>> Relay::download() {
  Result<ResponseHead> head = co_await read_head();
  Result<void> done;
  if (!head) {
    done = std::move(head).error();
  } else if (head->status == 101) {
    done = co_await tunnel_through(*head);
  } else {
    done = co_await answer(*head);
  }
  if (uploading_) {
    // The upstream has said all it will: no use for the rest of the request.
    upstream_->stream.close();
    client_.wire().watch.interrupt_reader();
  }
  co_return done;
}

void Relay::frame_reply(const ResponseHead& head) {
  BodyReader& body = upstream_->body;
  if (client_.head().method == "HEAD" || bodiless(head.status)) {
    body.start_none();
  } else if (head.chunked) {
    body.start_chunked();
  } else if (head.content_length) {
    body.start_length(*head.content_length);
  } else {
    body.start_to_end();
  }
}

Task<Result<void>> Relay::answer(const ResponseHead& head) {
  frame_reply(head);
  const bool to_end = upstream_->body.kind() == BodyReader::Kind::kToEnd;
  client_.begin_head(head.status, head.content_length);
  append_reply_fields(client_.out(), head);
  client_.end_head();
  GB_CO_TRY(co_await pass_body());
  client_.wire().watch.clear_alarm();
  const bool reusable = head.keep_alive && !to_end && upload_whole_ && upstream_->in.empty() &&
                        upstream_->stream.fd() >= 0;
  if (reusable) pool_->give(std::move(upstream_));
  co_return Result<void>();
}

Task<Result<void>> Relay::pass_body() {
  for (;;) {
    GB_CO_TRY_ASSIGN(const Pieces pieces, co_await pass_pieces());
    if (pieces == Pieces::kWhole) co_return Result<void>();
    BodyReader& body = upstream_->body;
    if (body.kind() == BodyReader::Kind::kLength && body.left() > kSpliceBytesMin) {
      co_return co_await splice_body();
    }
    if (pieces == Pieces::kMore) continue;
    Stream::Impl& stream = upstream_->stream.impl();
    if (stream.owes_yield()) co_await Loop::yield();
    if (stream.watch.readable) continue;
    stream.busy = 0;
    upstream_->in.release_if_empty();
    const Wake wake = co_await stream.readable(patience_.until());
    if (wake == Wake::kTimeout && !patience_.over()) continue;
    if (wake != Wake::kReady) co_return wake_error(wake, "reply's body");
  }
}

// Writes what can be had without waiting.
Task<Result<Relay::Pieces>> Relay::pass_pieces() {
  std::array<std::string_view, Connection::kPiecesMax> pieces;
  std::size_t count = 0;
  bool last = false;
  BodyReader& body = upstream_->body;
  // All of one read go in one write: only the first piece may fill the buffer again.
  while (count < pieces.size() && !last) {
    const BodyReader::Piece piece = count == 0 ? body.try_piece() : body.buffered_piece();
    if (piece.size == kFailed) co_return body.take_fault();
    if (piece.size == kWouldBlock) break;
    if (piece.size > 0) {
      pieces[count++] = std::string_view(piece.data, static_cast<std::size_t>(piece.size));
    }
    last = body.done();
  }
  // The head goes out even when nothing of the body is there yet.
  const bool head_waits = client_.head_waits();
  if (count > 0 || last || head_waits) {
    patience_.renew();
    GB_CO_TRY(
        co_await client_.write_pieces(std::span(pieces.data(), count), last, patience_.until()));
  }
  if (last) co_return Pieces::kWhole;
  co_return count == pieces.size() ? Pieces::kMore : Pieces::kAll;
}

Task<Result<void>> Relay::splice_body() {
  BodyReader& body = upstream_->body;
  upstream_->in.release_if_empty();
  patience_.renew();
  Moved moved =
      co_await move_bytes(upstream_->stream.impl(), client_.wire(), body.left(), true, patience_);
  body.took(moved.bytes);
  client_.wrote(moved.bytes);
  if (moved.end == Moved::End::kFromEnded) co_return Error(Errc::kUnavailable, "reply cut short");
  if (moved.end != Moved::End::kAll) co_return std::move(moved.error);
  co_return co_await client_.finish();
}

// --- After 101.

Task<Result<void>> Relay::tunnel_through(const ResponseHead& head) {
  const std::string protocol(wanted_upgrade(client_.head()));
  if (protocol.empty()) co_return Error(Errc::kUnavailable, "101 that nobody asked for");
  client_.wire().watch.clear_alarm();
  client_.begin_head(101, std::nullopt);
  append_reply_fields(client_.out(), head);
  client_.end_upgrade_head(protocol);
  patience_.renew();
  const std::span<const std::string_view> nothing;
  GB_CO_TRY(co_await client_.write_pieces(nothing, false, patience_.until()));
  Exchange::Raw raw = client_.take_over();
  const std::string early(upstream_->in.view());
  upstream_->in.consume(early.size());
  upstream_->in.release_if_empty();
  GB_CO_TRY(co_await raw.stream.write_all(early, patience_.until()));
  GB_CO_TRY(co_await upstream_->stream.write_all(raw.unread, patience_.until()));
  // How a tunnel ends is between its two ends.
  const Result<void> ended = co_await tunnel(raw.stream, upstream_->stream, options_.idle);
  (void)ended;
  co_return Result<void>();
}

}  // namespace

Task<Result<void>> relay(Exchange& exchange, UpstreamPool& pool, Dial dial, RelayOptions options) {
  auto* const client = dynamic_cast<Connection*>(&exchange);
  if (client == nullptr) co_return Error(Errc::kInternal, "relay needs the server's exchange");
  Relay relay(*client, pool.share(), dial, options);
  co_return co_await relay.run();
}

}  // namespace glovebox::net
