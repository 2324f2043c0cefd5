#include "net/websocket.h"

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <cstring>

#include "async/coro.h"
#include "net/serialize.h"
#include "net/stream_impl.h"
#include "net/text.h"
#include "net/websocket_accept.h"

namespace glovebox::net {
namespace asio = boost::asio;
namespace beast = boost::beast;
namespace ws = boost::beast::websocket;
namespace {

constexpr std::size_t kMessageBytesMax = 1 << 20;
constexpr std::size_t kReasonBytesMax = 123;  // RFC 6455, 5.5: a control frame has 125.

using Socket = asio::basic_stream_socket<asio::generic::stream_protocol, Executor>;
using Protocol = ws::stream<Socket, false>;  // Without deflate.

Error error_for(const beast::error_code& ec, std::string_view what) {
  const std::string text = std::string(what) + ": " + ec.message();
  if (ec == ws::error::message_too_big || ec == ws::error::buffer_overflow) {
    return Error(Errc::kExhausted, text);
  }
  return Error(Errc::kUnavailable, text);
}

// Beast's operations know no deadline: when one passes, the socket is closed under them, since a
// frame that was half written could not be taken up again anyway.
class Guard : private Timeout {
 public:
  Guard(Loop& loop, Protocol& protocol, Deadline deadline)
      : Timeout(&Guard::expire), protocol_(protocol) {
    arm(loop, deadline);
  }
  bool expired() const noexcept { return expired_; }

 private:
  static void expire(Timeout& timeout) {
    auto& self = static_cast<Guard&>(timeout);
    self.expired_ = true;
    beast::error_code ignored;
    self.protocol_.next_layer().close(ignored);
  }
  Protocol& protocol_;
  bool expired_ = false;
};

class BeastWebSocket final : public WebSocket {
 public:
  BeastWebSocket(Loop& loop, Socket socket)
      : state_(std::make_shared<State>(loop, std::move(socket))) {
    Protocol& protocol = state_->protocol;
    protocol.read_message_max(kMessageBytesMax);
    protocol.set_option(
        ws::stream_base::timeout{ws::stream_base::none(), ws::stream_base::none(), false});
    protocol.auto_fragment(false);
  }
  ~BeastWebSocket() override {
    beast::error_code ignored;
    state_->protocol.next_layer().close(ignored);
  }

  Protocol& protocol() noexcept { return state_->protocol; }
  Loop& loop() noexcept { return state_->loop; }

  Task<Result<Message>> read(Deadline deadline) override;
  Task<Result<void>> write_text(std::string_view text, Deadline deadline) override {
    state_->protocol.text(true);
    return write(text, deadline);
  }
  Task<Result<void>> write_binary(std::string_view bytes, Deadline deadline) override {
    state_->protocol.binary(true);
    return write(bytes, deadline);
  }
  Task<Result<void>> ping(Deadline deadline) override;
  Task<void> close(std::string_view reason, Deadline deadline) override;

 private:
  // A read goes on when the caller's deadline passes; the next call takes it up. So the state
  // outlives the object until the read has noticed the close.
  struct State {
    State(Loop& l, Socket socket) : loop(l), protocol(std::move(socket)), done(l) {}
    Loop& loop;
    Protocol protocol;
    beast::flat_buffer buffer;
    bool reading = false;
    beast::error_code read_error;
    Event done;
  };
  void start_read();
  Task<Result<void>> write(std::string_view bytes, Deadline deadline);

  std::shared_ptr<State> state_;
};

void BeastWebSocket::start_read() {
  state_->reading = true;
  state_->done.reset();
  state_->buffer.clear();
  state_->protocol.async_read(state_->buffer,
                              [state = state_](const beast::error_code& ec, std::size_t) {
                                state->read_error = ec;
                                state->done.set();
                              });
}

Task<Result<WebSocket::Message>> BeastWebSocket::read(Deadline deadline) {
  State& state = *state_;
  if (!state.reading) start_read();
  const Wake wake = co_await state.done.wait(deadline);
  if (wake != Wake::kReady) co_return wake_error(wake, "read message");
  state.reading = false;
  Message message;
  if (state.read_error == ws::error::closed) {
    message.closed = true;
    co_return message;
  }
  if (state.read_error) co_return error_for(state.read_error, "read message");
  message.binary = state.protocol.got_binary();
  message.data.assign(static_cast<const char*>(state.buffer.data().data()), state.buffer.size());
  if (state.buffer.capacity() > (64 << 10)) state.buffer = beast::flat_buffer();
  co_return message;
}

Task<Result<void>> BeastWebSocket::write(std::string_view bytes, Deadline deadline) {
  const Guard guard(loop(), protocol(), deadline);
  auto [ec, n] =
      co_await protocol().async_write(asio::const_buffer(bytes.data(), bytes.size()), use_result);
  if (guard.expired()) co_return Error(Errc::kTimeout, "write message: timed out");
  if (ec) co_return error_for(ec, "write message");
  co_return Result<void>();
}

Task<Result<void>> BeastWebSocket::ping(Deadline deadline) {
  const Guard guard(loop(), protocol(), deadline);
  const ws::ping_data nothing;
  auto [ec] = co_await protocol().async_ping(nothing, use_result);
  if (guard.expired()) co_return Error(Errc::kTimeout, "ping: timed out");
  if (ec) co_return error_for(ec, "ping");
  co_return Result<void>();
}

Task<void> BeastWebSocket::close(std::string_view reason, Deadline deadline) {
  const Guard guard(loop(), protocol(), deadline);
  const std::string_view cut = reason.substr(0, kReasonBytesMax);
  const ws::close_reason why(ws::close_code::normal, beast::string_view(cut.data(), cut.size()));
  co_await protocol().async_close(why, use_result);
}

Result<Socket> to_socket(Stream stream, const Executor& executor) {
  Stream::Impl& impl = stream.impl();
  impl.watch.remove();
  UniqueFd fd = std::move(impl.fd);
  int family = 0;
  ::socklen_t size = sizeof family;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_DOMAIN, &family, &size) != 0) {
    return Error::from_errno(errno, "SO_DOMAIN");
  }
  Socket socket(executor);
  beast::error_code ec;
  socket.assign(asio::generic::stream_protocol(family, 0), fd.get(), ec);
  if (ec) return Error(Errc::kInternal, "assign socket: " + ec.message());
  (void)fd.release();
  return socket;
}

}  // namespace

HandshakeFault check_websocket_request(const RequestHead& head) {
  if (head.method != "GET" || head.http_1_0) return {400, "a WebSocket begins with GET"};
  if (head.has_body()) return {400, "a WebSocket handshake has no body"};
  if (!head.upgrade || !list_has(head.headers.get("Upgrade"), "websocket")) {
    return {426, "this is for WebSocket only"};
  }
  if (head.headers.get("Sec-WebSocket-Version") != "13") {
    return {426, "WebSocket version other than 13"};
  }
  // 16 bytes in base64.
  const std::string_view key = head.headers.get("Sec-WebSocket-Key");
  if (key.size() != 24 || key.substr(22) != "==") return {400, "malformed Sec-WebSocket-Key"};
  return {};
}

Task<Result<std::unique_ptr<WebSocket>>> accept_websocket(Stream stream, const RequestHead& head,
                                                          std::string request_id,
                                                          Deadline deadline) {
  const Executor executor = co_await asio::this_coro::executor;
  Loop& loop = stream.impl().loop;
  GB_CO_TRY_ASSIGN(Socket socket, to_socket(std::move(stream), executor));
  auto out = std::make_unique<BeastWebSocket>(loop, std::move(socket));

  beast::http::request<beast::http::empty_body> request;
  request.method(beast::http::verb::get);
  request.target(head.target);
  request.version(11);
  for (const Header& header : head.headers) request.insert(header.name, header.value);
  out->protocol().set_option(ws::stream_base::decorator(
      [&](ws::response_type& reply) { reply.set("X-Request-ID", request_id); }));
  const Guard guard(loop, out->protocol(), deadline);
  auto [ec] = co_await out->protocol().async_accept(request, use_result);
  if (ec) co_return error_for(ec, "accept WebSocket");
  out->protocol().set_option(ws::stream_base::decorator([](ws::response_type&) {}));
  co_return std::unique_ptr<WebSocket>(std::move(out));
}

Task<Result<std::unique_ptr<WebSocket>>> WebSocket::connect(Stream stream, std::string host,
                                                            std::string target, Headers headers,
                                                            Deadline deadline) {
  const Executor executor = co_await asio::this_coro::executor;
  for (const Header& header : headers) {
    if (!is_field_name(header.name) || !is_field_value(header.value)) {
      co_return Error(Errc::kInvalid, "handshake header with characters not allowed");
    }
  }
  if (!is_field_value(host) || !is_field_value(target) || target.find(' ') != std::string::npos) {
    co_return Error(Errc::kInvalid, "handshake target with characters not allowed");
  }
  Loop& loop = stream.impl().loop;
  GB_CO_TRY_ASSIGN(Socket socket, to_socket(std::move(stream), executor));
  auto out = std::make_unique<BeastWebSocket>(loop, std::move(socket));
  out->protocol().set_option(ws::stream_base::decorator([&](ws::request_type& request) {
    for (const Header& header : headers) request.insert(header.name, header.value);
  }));
  const Guard guard(loop, out->protocol(), deadline);
  ws::response_type reply;
  auto [ec] = co_await out->protocol().async_handshake(reply, host, target, use_result);
  if (guard.expired()) co_return Error(Errc::kTimeout, "WebSocket handshake: timed out");
  if (ec == ws::error::upgrade_declined) {
    const std::string status = std::to_string(reply.result_int());
    const bool refused = reply.result_int() == 401 || reply.result_int() == 403;
    co_return Error(refused ? Errc::kDenied : Errc::kUnavailable,
                    "WebSocket handshake: answered " + status);
  }
  if (ec) co_return error_for(ec, "WebSocket handshake");
  out->protocol().set_option(ws::stream_base::decorator([](ws::request_type&) {}));
  co_return std::unique_ptr<WebSocket>(std::move(out));
}

}  // namespace glovebox::net
