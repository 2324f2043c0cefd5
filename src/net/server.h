// Server: HTTP/1.1 for many listeners. A handler is a coroutine over an Exchange: one request and
// its reply on one connection, streamed both ways with backpressure.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "async/task.h"
#include "base/deadline.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "net/http.h"
#include "net/stream.h"

namespace glovebox::net {

class WebSocket;

struct ServerLimits {
  std::size_t head_bytes_max = 64 << 10;  // Request line and headers; more is 431.
  std::size_t connections_max = 4096;     // One more is answered 503 and closed.
  std::chrono::seconds head_timeout{30};  // From the first byte to the end of the head; 408.
  std::chrono::seconds idle{90};          // Keep-alive without a request. Longer than clients keep.
  std::chrono::seconds body_idle{60};     // Between two reads or writes of a body.
};

struct Peer {
  bool local = false;     // Came over a Unix socket.
  std::uint32_t uid = 0;  // SO_PEERCRED, when local.
  std::string address;    // "127.0.0.1:5123", or "unix".
};

// Lives as long as the handler's coroutine. Not for use after the handler returned.
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const RequestHead& head() const = 0;
  virtual const Peer& peer() const = 0;
  virtual const std::string& request_id() const = 0;  // X-Request-ID: the client's, or ours.

  // 0 at the end of the body. Sends 100 Continue before the first read when it was asked for.
  virtual Task<Result<std::size_t>> read_body(std::span<char> into) = 0;
  // The rest of the body; kExhausted when it is longer than `bytes_max` (answer 413).
  virtual Task<Result<std::string>> read_whole_body(std::size_t bytes_max) = 0;

  // A whole reply. Once only, and not after start().
  virtual Task<Result<void>> respond(Response response) = 0;
  // A streamed reply: with a length it must be kept exactly, without one it is chunked (or ends
  // the connection, for HTTP/1.0). HEAD, 204 and 304 send no body whatever is written.
  virtual Task<Result<void>> start(int status, Headers headers,
                                   std::optional<std::uint64_t> content_length) = 0;
  virtual Task<Result<void>> write(std::string_view bytes) = 0;
  virtual Task<Result<void>> finish() = 0;
  virtual bool started() const = 0;
  // The status that was sent; 0 before.
  virtual int status() const = 0;
  // Ends the connection without finishing the reply, so that the client sees it was cut short.
  virtual void abort() = 0;

  // True when the client has hung up; a streaming handler asks now and then. One that has only
  // ended its own half counts as gone: from here the two look the same.
  virtual bool client_gone() const = 0;
  // Completes when the client hangs up; for `||` with what one waits for. Requests that it sends
  // meanwhile stay in the kernel.
  virtual Task<void> wait_client_gone() = 0;

  // Answers 101 by RFC 6455, or refuses with 400/426 and returns an error.
  virtual Task<Result<std::unique_ptr<WebSocket>>> accept_websocket() = 0;

  // The raw connection, for a tunnel: nothing of HTTP is done on it afterwards. `unread` are bytes
  // that came with the head and belong to what follows.
  struct Raw {
    Stream stream;
    std::string unread;
  };
  virtual Raw take_over() = 0;
};

// Must not throw. What was neither responded nor started when it returns becomes a bare 500.
using Handler = std::function<Task<void>(Exchange&)>;

class Server {
 public:
  Server(boost::asio::io_context& io, ServerLimits limits, Handler handler);
  ~Server();

  // Numeric address; port 0 takes a free one. Returns the port.
  Result<std::uint16_t> listen_tcp(const std::string& address, std::uint16_t port);
  // Replaces a stale socket file of that name; fails when another process listens on it.
  Result<void> listen_unix(const std::string& path, unsigned mode);
  // Takes a listening stream socket (inherited, or passed by systemd).
  Result<void> listen_on(UniqueFd listener);

  // Stops accepting, ends idle connections, waits for requests in flight until the deadline, then
  // cuts them. Call it once, before the destructor.
  Task<void> close(Deadline deadline);

  std::size_t connections() const noexcept;

  struct Impl;  // For this folder.

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace glovebox::net
