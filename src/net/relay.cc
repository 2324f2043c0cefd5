#include "net/relay.h"

#include <algorithm>
#include <array>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <optional>

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

// One request, on its way to the upstream and back. What mostly needs no waiting is no coroutine.
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

  // Both are called before exchange().
  bool take_pooled();
  Task<Result<void>> dial();
  Task<Result<void>> exchange();
  // After a failure of exchange(): whether another connection may do better.
  bool may_retry(const Error& error) const;
  Error failure(Error error);

 private:
  Task<Result<void>> exchange_with_body();
  Task<Result<void>> upload();
  Task<Result<void>> upload_chunks();
  Task<Result<void>> upload_length();

  Task<Result<void>> download();
  Task<Result<void>> receive();
  std::optional<Result<void>> examine_head();
  std::optional<Result<void>> fill_head();
  void frame_reply();
  void begin_reply();
  void end_reply();
  // kWhole: the reply was passed on. kMore: there was more than fits into one write. kBlocked: the
  // client takes no more for now.
  enum class Pieces { kWhole, kMore, kAll, kBlocked, kFailed };
  Pieces pass_pieces(Connection::Outgoing& outgoing);
  Task<Result<void>> pass_rest(Connection::Outgoing& outgoing, Pieces pieces);
  Task<Result<void>> splice_body();
  Task<Result<void>> tunnel_through();

  void watch_client(bool only_broken);
  static void client_hung_up(void* relay);

  Connection& client_;
  std::shared_ptr<UpstreamPool::Impl> pool_;
  const Dial& dial_;
  const RelayOptions& options_;
  Patience patience_;
  std::unique_ptr<Upstream> upstream_;
  HeadScanner scanner_;
  int interim_replies_ = 0;
  bool uploading_ = false;
  bool upload_whole_ = true;
  bool got_reply_ = false;  // At least a byte of it.
  bool client_left_ = false;
  Result<void> fault_;  // Of pass_pieces().
};

Error Relay::failure(Error error) {
  upstream_.reset();
  // A reply cut short must not be taken for a whole one.
  if (client_.started() || client_left_) client_.abort();
  if (client_left_) return Error(Errc::kUnavailable, "the client hung up");
  return std::move(error).context("relay");
}

bool Relay::take_pooled() {
  const RequestHead& head = client_.head();
  upstream_ = pool_->take(!is_idempotent(head.method) || head.has_body());
  return upstream_ != nullptr;
}

Task<Result<void>> Relay::dial() {
  Task<Result<Stream>> dialling = dial_(after(kDialTimeout));
  Result<Stream> stream = co_await std::move(dialling);
  if (!stream) co_return std::move(stream).error();
  upstream_ = std::make_unique<Upstream>(*std::move(stream));
  // Nothing was asked yet, so that there is nothing to read.
  upstream_->stream.impl().watch.readable = false;
  co_return Result<void>();
}

bool Relay::may_retry(const Error& error) const {
  const RequestHead& head = client_.head();
  return upstream_ && upstream_->reused && !got_reply_ && !client_left_ &&
         error.code() == Errc::kUnavailable && is_idempotent(head.method) && !head.has_body();
}

Task<Result<void>> Relay::exchange() {
  GB_CO_TRY(upstream_head(upstream_->out, client_.head(), options_));
  Stream::Impl& stream = upstream_->stream.impl();
  ::iovec part{upstream_->out.data(), upstream_->out.size()};
  Parts parts{&part, 1};
  std::optional<Result<void>> sent = stream.write_now(parts);
  if (!sent) sent = co_await stream.write_rest(parts, patience_.until());
  if (!*sent) co_return std::move(*sent);
  if (client_.head().has_body()) co_return co_await exchange_with_body();
  watch_client(false);
  co_return co_await receive();
}

Task<Result<void>> Relay::exchange_with_body() {
  using namespace boost::asio::experimental::
      awaitable_operators;  // NOLINT(google-build-using-namespace)
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
    Parts left{parts.data(), parts.size()};
    done = co_await upstream_->stream.impl().write_rest(left, patience_.until());
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

// Beside an upload, which it ends when the reply is over.
Task<Result<void>> Relay::download() {
  Result<void> done = co_await receive();
  if (uploading_) {
    // The upstream has said all it will: no use for the rest of the request.
    upstream_->stream.close();
    client_.wire().watch.interrupt_reader();
  }
  co_return done;
}

// Looks at what there is of the reply's head. Nothing: more is needed.
std::optional<Result<void>> Relay::examine_head() {
  const auto fault = [](std::string_view why) {
    return Result<void>(Error(Errc::kUnavailable, std::string(why)));
  };
  InBuffer& in = upstream_->in;
  for (;;) {
    const HeadScanner::Found found = scanner_.scan(in.view());
    if (found == HeadScanner::Found::kMore) return std::nullopt;
    if (found == HeadScanner::Found::kBad) return fault("malformed reply");
    ResponseView& head = upstream_->head;
    const std::size_t size = scanner_.head_bytes();
    const HeadFault bad = parse_response_head(in.view().substr(0, size), head);
    if (bad.status != 200) return fault(bad.message);
    in.consume(size);
    scanner_.reset();
    if (head.status >= 200 || head.status == 101) return Result<void>();
    if (++interim_replies_ > kInterimRepliesMax) return fault("too many interim replies");
  }
}

// Reads as long as there is something to read. Nothing: the caller has to wait.
std::optional<Result<void>> Relay::fill_head() {
  Stream::Impl& stream = upstream_->stream.impl();
  InBuffer& in = upstream_->in;
  const auto fault = [](std::string_view why) {
    return Result<void>(Error(Errc::kUnavailable, std::string(why)));
  };
  for (;;) {
    if (!in.empty()) {
      std::optional<Result<void>> done = examine_head();
      if (done) return done;
    }
    if (!stream.fd) return fault("upstream: closed");
    if (!stream.watch.readable) return std::nullopt;
    const std::span<char> room = in.prepare(kReplyHeadBytesMax);
    if (room.empty()) return fault("reply's head over 64 KiB");
    const ssize_t n = stream.try_read(room.data(), room.size());
    if (n == kWouldBlock) return std::nullopt;
    if (n == 0) return fault("upstream closed before its reply");
    if (n == kFailed) return Result<void>(Error::from_errno(stream.error, "read reply"));
    got_reply_ = true;
    in.commit(static_cast<std::size_t>(n));
  }
}

Task<Result<void>> Relay::receive() {
  Stream::Impl& stream = upstream_->stream.impl();
  Deadline deadline = after(options_.head_timeout);
  for (;;) {
    std::optional<Result<void>> got = fill_head();
    if (got && !*got) co_return std::move(*got);
    if (got) break;
    stream.busy = 0;
    upstream_->in.release_if_empty();
    const Wake wake = co_await stream.readable(deadline);
    if (wake == Wake::kTimeout && uploading_) {
      deadline = after(options_.head_timeout);  // Counts from the end of the request.
    } else if (wake != Wake::kReady) {
      co_return wake_error(wake, "wait for reply");
    }
  }
  if (upstream_->head.status == 101) co_return co_await tunnel_through();
  begin_reply();
  Connection::Outgoing outgoing;
  const Pieces pieces = pass_pieces(outgoing);
  if (pieces != Pieces::kWhole) GB_CO_TRY(co_await pass_rest(outgoing, pieces));
  end_reply();
  co_return Result<void>();
}

void Relay::frame_reply() {
  BodyReader& body = upstream_->body;
  const ResponseView& head = upstream_->head;
  if (client_.head().method == "HEAD" || bodiless(head.status)) {
    body.start_none();
  } else if (head.chunked) {
    body.start_chunked();
  } else if (head.content_length) {
    body.start_length(*head.content_length);
  } else {
    body.start_to_end();
    upstream_->head.keep_alive = false;
  }
}

void Relay::begin_reply() {
  frame_reply();
  const ResponseView& head = upstream_->head;
  client_.begin_head(head.status, head.content_length);
  append_reply_fields(client_.out(), head);
  client_.end_head();
  patience_.renew();
}

void Relay::end_reply() {
  client_.wire().watch.clear_alarm();
  const bool reusable = upstream_->head.keep_alive && upload_whole_ && upstream_->in.empty() &&
                        upstream_->stream.fd() >= 0;
  if (reusable) pool_->give(std::move(upstream_));
}

// Writes what can be had without waiting.
Relay::Pieces Relay::pass_pieces(Connection::Outgoing& outgoing) {
  std::array<std::string_view, Connection::kPiecesMax> pieces;
  std::size_t count = 0;
  bool last = false;
  BodyReader& body = upstream_->body;
  // All of one read go in one write: only the first piece may fill the buffer again.
  while (count < pieces.size() && !last) {
    const BodyReader::Piece piece = count == 0 ? body.try_piece() : body.buffered_piece();
    if (piece.size == kFailed) fault_ = body.take_fault();
    if (piece.size == kFailed) return Pieces::kFailed;
    if (piece.size == kWouldBlock) break;
    if (piece.size > 0) {
      pieces[count++] = std::string_view(piece.data, static_cast<std::size_t>(piece.size));
    }
    last = body.done();
  }
  // The head goes out even when nothing of the body is there yet.
  if (count > 0 || last || client_.head_waits()) {
    std::optional<Result<void>> done =
        client_.write_now(outgoing, std::span(pieces.data(), count), last);
    if (!done) return Pieces::kBlocked;
    if (!*done) fault_ = std::move(*done);
    if (!fault_) return Pieces::kFailed;
  }
  if (last) return Pieces::kWhole;
  return count == pieces.size() ? Pieces::kMore : Pieces::kAll;
}

// Goes on after a first pass_pieces() that did not do it all.
Task<Result<void>> Relay::pass_rest(Connection::Outgoing& outgoing, Pieces pieces) {
  BodyReader& body = upstream_->body;
  Stream::Impl& stream = upstream_->stream.impl();
  for (;; pieces = pass_pieces(outgoing)) {
    if (pieces == Pieces::kFailed) co_return std::move(fault_);
    if (pieces == Pieces::kBlocked) {
      GB_CO_TRY(co_await client_.write_rest(outgoing, options_.idle));
      if (outgoing.last) co_return Result<void>();
    }
    if (pieces == Pieces::kWhole) co_return Result<void>();
    patience_.renew();
    if (pieces == Pieces::kMore || pieces == Pieces::kBlocked) continue;
    if (body.kind() == BodyReader::Kind::kLength && body.left() > kSpliceBytesMin) {
      co_return co_await splice_body();
    }
    if (stream.owes_yield()) co_await Loop::yield();
    while (!stream.watch.readable) {
      stream.busy = 0;
      upstream_->in.release_if_empty();
      const Wake wake = co_await stream.readable(patience_.until());
      if (wake == Wake::kTimeout && !patience_.over()) continue;
      if (wake != Wake::kReady) co_return wake_error(wake, "reply's body");
    }
  }
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

Task<Result<void>> Relay::tunnel_through() {
  const std::string protocol(wanted_upgrade(client_.head()));
  if (protocol.empty()) co_return Error(Errc::kUnavailable, "101 that nobody asked for");
  client_.wire().watch.clear_alarm();
  client_.begin_head(101, std::nullopt);
  append_reply_fields(client_.out(), upstream_->head);
  client_.end_upgrade_head(protocol);
  patience_.renew();
  Connection::Outgoing outgoing;
  std::optional<Result<void>> sent = client_.write_now(outgoing, {}, false);
  if (!sent) sent = co_await client_.write_rest(outgoing, options_.idle);
  if (!*sent) co_return std::move(*sent);
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
  for (bool fresh = false;; fresh = true) {
    if (fresh || !relay.take_pooled()) {
      Result<void> dialled = co_await relay.dial();
      if (!dialled) co_return std::move(dialled).error();
    }
    Result<void> done = co_await relay.exchange();
    if (done) co_return done;
    if (fresh || !relay.may_retry(done.error())) {
      co_return relay.failure(std::move(done).error());
    }
  }
}

}  // namespace glovebox::net
