#include "net/connection.h"

#include <sys/socket.h>

#include <array>
#include <boost/asio/cancellation_signal.hpp>
#include <exception>

#include "async/coro.h"
#include "net/connection_cancel.h"
#include "net/serialize.h"
#include "net/text.h"
#include "net/websocket_accept.h"

namespace glovebox::net {
namespace {

// An unread body is read and dropped up to here to keep the connection; beyond, closing is cheaper.
constexpr std::uint64_t kDrainBytesMax = 256 << 10;
constexpr std::uint64_t kLingerBytesMax = 1 << 20;
constexpr auto kLinger = std::chrono::seconds(2);
constexpr std::size_t kHeadBytesKept = 2 << 10;
constexpr std::size_t kOutBytesKept = 2 << 10;

}  // namespace

Connection::Connection(Server::Impl& server, Stream stream, Peer peer)
    : server_(server),
      stream_(std::move(stream)),
      peer_(std::move(peer)),
      cancel_(std::make_shared<Cancel>()),
      in_(server.loop),
      body_(stream_.impl(), in_) {}

Connection::~Connection() = default;

Deadline Connection::body_deadline() const { return after(server_.limits.body_idle); }

void Connection::close_if_idle() {
  if (idle_) stream_.close();
}

void Connection::cut() {
  if (!taken_over_) stream_.close();
  const std::shared_ptr<Cancel> cancel = cancel_;  // What it ends may destroy this.
  cancel->signal.emit(boost::asio::cancellation_type::terminal);
}

Task<void> Connection::run() {
  for (;;) {
    const HeadFault fault = co_await next_head();
    if (fault.status == 0) break;
    if (fault.status != 200) {
      co_await refuse(fault);
      break;
    }
    bool threw = false;
    try {
      Task<void> task = server_.handler(*this);
      co_await std::move(task);
    } catch (const std::exception&) {
      // A bug of the handler's, or the cancellation of a connection that is being cut.
      threw = true;
    }
    if (taken_over_) co_return;
    if (reply_ != Reply::kFinished) co_await settle(threw);
    if (reply_ != Reply::kFinished) break;
    bool again = keep_alive_ && !server_.closing;
    if (!body_.done()) again = co_await drain();
    if (!again) break;
  }
  if (needs_linger_ && reply_ != Reply::kAborted) co_await linger();
}

void Connection::begin_exchange() {
  // Small ones are kept to be used again; large ones would add up over idle connections.
  if (scanner_.head_bytes() > kHeadBytesKept) head_ = RequestHead();
  if (out_.capacity() > kOutBytesKept) out_ = std::string();
  scanner_.reset();
  reply_ = Reply::kNone;
  status_ = 0;
  keep_alive_ = true;
  awaits_continue_ = false;
  body_.start_none();
  idle_ = true;
}

// Looks at what there is of a head: what is wrong with it, 200 when it is whole and sound, or
// nothing when more is needed.
std::optional<HeadFault> Connection::examine_head() {
  const HeadScanner::Found found = scanner_.scan(in_.view());
  if (found == HeadScanner::Found::kBad) return HeadFault{400, "malformed request head"};
  const bool whole = found == HeadScanner::Found::kEnd;
  const std::size_t size = whole ? scanner_.head_bytes() : in_.size();
  if (size > server_.limits.head_bytes_max) return HeadFault{431, "request head too large"};
  if (!whole) return std::nullopt;
  const HeadFault fault = take_head(in_.view().substr(0, size));
  in_.consume(size);
  return fault;
}

// Waits for a request and reads its head. The fault's status is 200 for none, and 0 when there is
// nothing to say: the client left, or was idle for too long.
Task<HeadFault> Connection::next_head() {
  begin_exchange();
  Stream::Impl& wire = stream_.impl();
  Deadline deadline = after(server_.limits.idle);
  for (;;) {
    if (idle_) {
      // RFC 9112, 2.2: an empty line before a request is to be ignored.
      while (in_.view().substr(0, 2) == "\r\n") in_.consume(2);
      if (!in_.empty()) {
        idle_ = false;
        deadline = after(server_.limits.head_timeout);
      }
    }
    if (!idle_) {
      const std::optional<HeadFault> fault = examine_head();
      if (fault) co_return *fault;
      if (Clock::now() >= deadline) co_return HeadFault(408, "request head took too long");
    }
    if (!wire.fd || (idle_ && server_.closing)) co_return HeadFault(0, "");
    if (wire.owes_yield()) co_await Loop::yield();
    ssize_t n = kWouldBlock;
    if (wire.watch.readable) {
      // One more than allowed, so that the limit itself can be reached.
      const std::span<char> room = in_.prepare(server_.limits.head_bytes_max + 1);
      n = wire.try_read(room.data(), room.size());
    }
    if (n == 0 || n == kFailed) co_return HeadFault(0, "");
    if (n > 0) {
      in_.commit(static_cast<std::size_t>(n));
      continue;
    }
    wire.busy = 0;
    in_.release_if_empty();
    const Wake wake = co_await wire.readable(deadline);
    if (wake == Wake::kReady) continue;
    if (wake == Wake::kTimeout && !idle_) co_return HeadFault(408, "request head took too long");
    co_return HeadFault(0, "");
  }
}

HeadFault Connection::take_head(std::string_view bytes) {
  const HeadFault fault = parse_request_head(bytes, head_);
  if (fault.status != 200) {
    head_ = RequestHead();
    request_id_ = make_request_id();
    return fault;
  }
  keep_alive_ = head_.keep_alive;

  const std::string_view id = head_.headers.get("X-Request-ID");
  request_id_ = is_request_id(id) ? std::string(id) : make_request_id();

  const std::string_view expect = head_.headers.get("Expect");
  if (!expect.empty() && !head_.http_1_0) {
    if (!equal_ignoring_case(expect, "100-continue")) return {417, "unknown expectation"};
    awaits_continue_ = head_.has_body();
  }
  if (head_.chunked) {
    body_.start_chunked();
  } else {
    body_.start_length(head_.content_length.value_or(0));
  }
  return {200, ""};
}

Task<void> Connection::refuse(HeadFault fault) {
  keep_alive_ = false;
  needs_linger_ = true;
  Response reply;
  reply.status = fault.status;
  reply.headers.add("Content-Type", "application/json");
  reply.body = error_body(error_code_for(fault.status), fault.message);
  const Result<void> sent = co_await respond(std::move(reply));
  if (!sent) reply_ = Reply::kAborted;
}

// For a handler that did not finish its reply.
Task<void> Connection::settle(bool threw) {
  if (reply_ == Reply::kAborted) co_return;
  if (!started() && stream_.impl().fd) {
    const HeadFault fault{500, threw ? "request failed" : "no reply was made"};
    co_return co_await refuse(fault);
  }
  abort();
}

// Reads what the handler left of the body. True: the connection can take another request.
Task<bool> Connection::drain() {
  needs_linger_ = true;
  const bool long_rest = body_.kind() == BodyReader::Kind::kLength && body_.left() > kDrainBytesMax;
  if (!keep_alive_ || server_.closing || awaits_continue_ || long_rest) co_return false;
  std::array<char, 4096> waste;
  std::uint64_t dropped = 0;
  while (!body_.done()) {
    Result<std::size_t> n = co_await body_.read(waste, after(kLinger));
    if (!n) co_return false;
    dropped += *n;
    if (dropped > kDrainBytesMax) co_return false;
  }
  needs_linger_ = false;
  co_return true;
}

// RFC 9112, 9.6: closing with bytes unread would reset the connection, and the reset may overtake
// the reply. So our half is ended first, and what still comes is dropped for a while.
Task<void> Connection::linger() {
  Stream::Impl& wire = stream_.impl();
  if (!wire.fd) co_return;
  stream_.shutdown_write();
  const Deadline deadline = after(kLinger);
  std::array<char, 4096> waste;
  for (std::uint64_t dropped = 0; dropped < kLingerBytesMax;) {
    Result<std::size_t> n = co_await stream_.read_some(waste, deadline);
    if (!n || *n == 0 || Clock::now() >= deadline) break;
    dropped += *n;
  }
}

Task<Result<void>> Connection::allow_body() {
  if (!awaits_continue_) co_return Result<void>();
  awaits_continue_ = false;
  // A client that did not wait, or a reply under way: no use for it any more.
  if (!in_.empty() || started()) co_return Result<void>();
  co_return co_await stream_.write_all("HTTP/1.1 100 Continue\r\n\r\n", body_deadline());
}

Task<Result<std::size_t>> Connection::read_body(std::span<char> into) {
  if (taken_over_) co_return Error(Errc::kInternal, "read after take_over");
  if (awaits_continue_) GB_CO_TRY(co_await allow_body());
  co_return co_await body_.read(into, body_deadline());
}

Task<Result<std::string>> Connection::read_whole_body(std::size_t bytes_max) {
  const std::string what = "request body over " + std::to_string(bytes_max) + " bytes";
  if (head_.content_length.value_or(0) > bytes_max) co_return Error(Errc::kExhausted, what);
  std::string whole;
  if (head_.content_length) whole.reserve(static_cast<std::size_t>(*head_.content_length));
  std::array<char, 8192> piece;
  while (!body_.done()) {
    GB_CO_TRY_ASSIGN(const std::size_t n, co_await read_body(piece));
    if (n > bytes_max - whole.size()) co_return Error(Errc::kExhausted, what);
    whole.append(piece.data(), n);
  }
  co_return whole;
}

void Connection::decide_framing(int status, std::optional<std::uint64_t> content_length) {
  reply_left_ = content_length.value_or(0);
  if (head_.method == "HEAD" || bodiless(status)) {
    framing_ = Framing::kNone;
  } else if (content_length) {
    framing_ = Framing::kLength;
  } else if (head_.http_1_0) {
    framing_ = Framing::kToEnd;
    keep_alive_ = false;
  } else {
    framing_ = Framing::kChunked;
  }
  // A body that nobody will read: the client is told not to reuse the connection.
  if (!body_.done()) {
    const bool long_rest =
        body_.kind() == BodyReader::Kind::kLength && body_.left() > kDrainBytesMax;
    if (awaits_continue_ || long_rest) keep_alive_ = false;
  }
  if (server_.closing) keep_alive_ = false;
}

void Connection::begin_head(int status, std::optional<std::uint64_t> content_length) {
  decide_framing(status, content_length);
  status_ = status;
  out_.clear();
  append_status_line(out_, status);
  out_.append("Date: ").append(server_.loop.http_date()).append("\r\n");
  const bool may_have_length = status >= 200 && status != 204;
  if (content_length && may_have_length) {
    out_.append("Content-Length: ");
    append_number(out_, *content_length);
    out_.append("\r\n");
  } else if (framing_ == Framing::kChunked) {
    out_.append("Transfer-Encoding: chunked\r\n");
  }
}

void Connection::end_head() {
  if (!keep_alive_) {
    out_.append("Connection: close\r\n");
  } else if (head_.http_1_0) {
    out_.append("Connection: keep-alive\r\n");
  }
  out_.append("X-Request-ID: ").append(request_id_).append("\r\n\r\n");
  reply_ = Reply::kHead;
}

// False when a field would break the message.
bool Connection::append_headers(const Headers& headers) {
  for (const Header& header : headers) {
    if (equal_ignoring_case(header.name, "Connection")) {
      if (list_has(header.value, "close")) keep_alive_ = false;
      continue;
    }
    // Ours to say.
    if (equal_ignoring_case(header.name, "Content-Length") ||
        equal_ignoring_case(header.name, "Transfer-Encoding") ||
        equal_ignoring_case(header.name, "Date") ||
        equal_ignoring_case(header.name, "X-Request-ID")) {
      continue;
    }
    if (!append_field(out_, header.name, header.value)) return false;
  }
  return true;
}

void Connection::end_upgrade_head(std::string_view protocol) {
  out_.append("Connection: Upgrade\r\nUpgrade: ").append(protocol);
  out_.append("\r\nX-Request-ID: ").append(request_id_).append("\r\n\r\n");
  reply_ = Reply::kHead;
}

// A reply that is longer or shorter than it said must not look whole.
Result<void> Connection::check_length(std::size_t bytes, bool last) {
  if (framing_ != Framing::kLength) return {};
  if (bytes > reply_left_) {
    abort();
    return Error(Errc::kInternal, "reply longer than its Content-Length");
  }
  reply_left_ -= bytes;
  if (!last || reply_left_ == 0) return {};
  abort();
  return Error(Errc::kInternal, "reply shorter than its Content-Length");
}

std::optional<Result<void>> Connection::write_now(Outgoing& outgoing,
                                                  std::span<const std::string_view> pieces,
                                                  bool last) {
  if (reply_ == Reply::kAborted) {
    return Result<void>(Error(Errc::kUnavailable, "write: aborted"));
  }
  if (reply_ != Reply::kHead && reply_ != Reply::kStarted) {
    return Result<void>(Error(Errc::kInternal, "write outside of a reply"));
  }
  std::size_t count = 0;
  const auto add = [&](std::string_view bytes) {
    outgoing.parts[count++] = ::iovec{const_cast<char*>(bytes.data()), bytes.size()};
  };
  std::size_t size = 0;
  for (const std::string_view piece : pieces) size += piece.size();
  Result<void> fits = check_length(size, last);
  if (!fits) return fits;
  if (reply_ == Reply::kHead) add(out_);
  if (framing_ == Framing::kChunked && size > 0) add(chunk_header(size, outgoing.space));
  if (framing_ != Framing::kNone) {
    for (const std::string_view piece : pieces) add(piece);
  }
  if (framing_ == Framing::kChunked && size > 0) add("\r\n");
  if (framing_ == Framing::kChunked && last) add("0\r\n\r\n");
  outgoing.left = Parts{outgoing.parts.data(), count};
  outgoing.last = last;
  reply_ = Reply::kStarted;
  std::optional<Result<void>> done = stream_.impl().write_now(outgoing.left);
  if (done) reply_ = !*done ? Reply::kAborted : last ? Reply::kFinished : Reply::kStarted;
  return done;
}

Task<Result<void>> Connection::write_rest(Outgoing& outgoing, Clock::duration idle) {
  Result<void> done = co_await stream_.impl().write_rest_idle(outgoing.left, idle);
  reply_ = !done ? Reply::kAborted : outgoing.last ? Reply::kFinished : Reply::kStarted;
  co_return done;
}

Task<Result<void>> Connection::write_pieces(std::span<const std::string_view> pieces, bool last) {
  Outgoing outgoing;
  std::optional<Result<void>> done = write_now(outgoing, pieces, last);
  if (!done) done = co_await write_rest(outgoing, server_.limits.body_idle);
  co_return std::move(*done);
}

Task<Result<void>> Connection::respond(Response response) {
  if (started() || taken_over_) {
    co_return Error(Errc::kInternal, "respond after the reply began");
  }
  begin_head(response.status, response.body.size());
  if (!append_headers(response.headers)) {
    co_return Error(Errc::kInternal, "a reply header that would break the message");
  }
  end_head();
  const std::string_view body = response.body;
  Outgoing outgoing;
  std::optional<Result<void>> done = write_now(outgoing, std::span(&body, 1), true);
  if (!done) done = co_await write_rest(outgoing, server_.limits.body_idle);
  co_return std::move(*done);
}

Task<Result<void>> Connection::start(int status, Headers headers,
                                     std::optional<std::uint64_t> content_length) {
  if (started() || taken_over_) {
    co_return Error(Errc::kInternal, "start after the reply began");
  }
  begin_head(status, content_length);
  if (!append_headers(headers)) {
    co_return Error(Errc::kInternal, "a reply header that would break the message");
  }
  end_head();
  const std::span<const std::string_view> nothing;
  co_return co_await write_pieces(nothing, false);
}

Task<Result<void>> Connection::write(std::string_view bytes) {
  if (bytes.empty() && reply_ == Reply::kStarted) co_return Result<void>();
  co_return co_await write_pieces(std::span(&bytes, 1), false);
}

Task<Result<void>> Connection::finish() {
  if (reply_ == Reply::kFinished) co_return Result<void>();
  const std::span<const std::string_view> nothing;
  co_return co_await write_pieces(nothing, true);
}

void Connection::abort() {
  if (taken_over_) return;
  if (framing_ == Framing::kToEnd && started() && stream_.fd() >= 0) {
    // Only a reset tells this end from the proper one.
    const ::linger reset{1, 0};
    ::setsockopt(stream_.fd(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  }
  reply_ = Reply::kAborted;
  stream_.close();
}

Task<void> Connection::wait_client_gone() {
  if (taken_over_) co_return;
  co_await stream_.impl().watch.wait_hangup(Deadline::max());
}

Task<Result<std::unique_ptr<WebSocket>>> Connection::accept_websocket() {
  if (started() || taken_over_) {
    co_return Error(Errc::kInternal, "accept_websocket after the reply began");
  }
  HandshakeFault fault = check_websocket_request(head_);
  // RFC 6455, 4.1: a client sends nothing before it has our answer.
  if (fault.status == 0 && !in_.empty()) fault = {400, "bytes after the handshake"};
  if (fault.status != 0) {
    Response reply;
    reply.status = fault.status;
    reply.headers.add("Content-Type", "application/json");
    if (fault.status == 426) {
      reply.headers.add("Upgrade", "websocket");
      reply.headers.add("Sec-WebSocket-Version", "13");
    }
    reply.body = error_body(error_code_for(fault.status), fault.message);
    GB_CO_TRY(co_await respond(std::move(reply)));
    co_return Error(Errc::kInvalid, std::string(fault.message));
  }
  const Deadline deadline = body_deadline();
  Raw raw = take_over();
  co_return co_await net::accept_websocket(std::move(raw.stream), head_, request_id_, deadline);
}

Exchange::Raw Connection::take_over() {
  taken_over_ = true;
  if (status_ == 0) status_ = 101;
  Raw raw{std::move(stream_), std::string(in_.view())};
  in_.consume(in_.size());
  in_.release_if_empty();
  return raw;
}

}  // namespace glovebox::net
