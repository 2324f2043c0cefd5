// For this folder's tests: a raw client over blocking sockets, and an event loop in a thread.

#pragma once

#include <sys/socket.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "async/task.h"
#include "base/unique_fd.h"
#include "net/server.h"

namespace glovebox::net::test {

// A server in its own thread, on a free port of 127.0.0.1. Closed by the destructor.
class TestServer {
 public:
  explicit TestServer(Handler handler, ServerLimits limits = ServerLimits());
  ~TestServer();
  std::uint16_t port() const noexcept { return port_; }
  std::size_t connections();
  // Runs `f` in the server's thread and waits for it.
  void run(const std::function<void(Server&)>& f);
  // Runs a coroutine there and waits for it.
  void run_task(const std::function<Task<void>(Server&)>& f);
  boost::asio::io_context& io();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::uint16_t port_ = 0;
};

// Runs one coroutine on a fresh event loop; fails the test if that takes over 20 s.
void run_alone(const std::function<Task<void>()>& f);

// Blocking, with a timeout of 10 s on every call, so that a test cannot hang.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port);
  explicit RawClient(UniqueFd fd);
  bool send(std::string_view bytes);
  // Until the peer ends or resets the connection. "<timeout>" is appended when it does not.
  std::string read_all();
  // Until `end` was seen, or the connection ended.
  std::string read_until(std::string_view end);
  std::string read_exactly(std::size_t bytes);
  bool reset() const noexcept { return reset_; }  // The peer reset the connection.
  void shutdown_write();
  void close() { fd_.reset(); }
  void reset_connection();
  int fd() const noexcept { return fd_.get(); }

 private:
  UniqueFd fd_;
  std::string left_;
  bool reset_ = false;
  bool timed_out_ = false;
  bool fill();
};

// A listener on 127.0.0.1 for upstreams made by hand.
class RawListener {
 public:
  RawListener();
  std::uint16_t port() const noexcept { return port_; }
  RawClient accept();

 private:
  UniqueFd fd_;
  std::uint16_t port_ = 0;
};

// Sends one request, with Connection: close, and returns the whole reply.
std::string exchange(std::uint16_t port, std::string_view request);

}  // namespace glovebox::net::test
