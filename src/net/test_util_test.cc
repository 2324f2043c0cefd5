#include "net/test_util.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/time.h>

#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <future>

#include "async/coro.h"

namespace glovebox::net::test {
namespace asio = boost::asio;
namespace {

constexpr auto kPatience = std::chrono::seconds(20);

// Shared, since set_value() may still be at work in one thread when the other goes on.
using Promise = std::shared_ptr<std::promise<void>>;

// The coroutine's arguments must outlive it, which those of a lambda would not.
Task<void> run_and_tell(const std::function<Task<void>()>& f, Promise done) {
  try {
    co_await f();
  } catch (const std::exception& e) {
    ADD_FAILURE() << "the coroutine threw: " << e.what();
  }
  done->set_value();
}

}  // namespace

struct TestServer::Impl {
  asio::io_context io{1};
  asio::executor_work_guard<Executor> work = asio::make_work_guard(io);
  std::unique_ptr<Server> server;
  std::thread thread;
};

TestServer::TestServer(Handler handler, ServerLimits limits) : impl_(new Impl) {
  impl_->server = std::make_unique<Server>(impl_->io, limits, std::move(handler));
  Result<std::uint16_t> port = impl_->server->listen_tcp("127.0.0.1", 0);
  EXPECT_TRUE(port) << port.error().text();
  if (port) port_ = *port;
  impl_->thread = std::thread([this] { impl_->io.run(); });
}

TestServer::~TestServer() {
  if (impl_->server) {
    run_task([](Server& server) { return server.close(after(std::chrono::milliseconds(100))); });
    run([this](Server&) { impl_->server.reset(); });
  }
  impl_->work.reset();
  impl_->thread.join();
}

asio::io_context& TestServer::io() { return impl_->io; }

std::size_t TestServer::connections() {
  std::size_t out = 0;
  run([&out](Server& server) { out = server.connections(); });
  return out;
}

void TestServer::run(const std::function<void(Server&)>& f) {
  const Promise done = std::make_shared<std::promise<void>>();
  asio::post(impl_->io, [this, &f, done] {
    f(*impl_->server);
    done->set_value();
  });
  ASSERT_EQ(done->get_future().wait_for(kPatience), std::future_status::ready);
}

void TestServer::run_task(const std::function<Task<void>(Server&)>& f) {
  const Promise done = std::make_shared<std::promise<void>>();
  const std::function<Task<void>()> bound = [&] { return f(*impl_->server); };
  asio::co_spawn(impl_->io, run_and_tell(bound, done), asio::detached);
  ASSERT_EQ(done->get_future().wait_for(kPatience), std::future_status::ready);
}

void run_alone(const std::function<Task<void>()>& f) {
  asio::io_context io(1);
  const Promise done = std::make_shared<std::promise<void>>();
  std::future<void> finished = done->get_future();
  asio::co_spawn(io, run_and_tell(f, done), asio::detached);
  io.run_for(kPatience);
  EXPECT_EQ(finished.wait_for(std::chrono::seconds(0)), std::future_status::ready)
      << "the coroutine did not end";
}

namespace {

void set_timeouts(int fd) {
  const ::timeval patience{10, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

::sockaddr_in loopback(std::uint16_t port) {
  ::sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

RawClient::RawClient(UniqueFd fd) : fd_(std::move(fd)) { set_timeouts(fd_.get()); }

RawClient::RawClient(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  set_timeouts(fd_.get());
  const ::sockaddr_in address = loopback(port);
  const int failed =
      ::connect(fd_.get(), reinterpret_cast<const ::sockaddr*>(&address), sizeof address);
  EXPECT_EQ(failed, 0) << "errno " << errno;
}

bool RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

bool RawClient::fill() {
  std::array<char, 65536> piece;
  const ssize_t n = ::recv(fd_.get(), piece.data(), piece.size(), 0);
  if (n > 0) {
    left_.append(piece.data(), static_cast<std::size_t>(n));
  } else if (n < 0) {
    reset_ = errno == ECONNRESET;
    timed_out_ = !reset_;
  }
  return n > 0;
}

std::string RawClient::read_all() {
  while (fill()) continue;
  if (timed_out_) left_ += "<timeout>";
  return std::exchange(left_, {});
}

std::string RawClient::read_until(std::string_view end) {
  std::size_t at = std::string::npos;
  while ((at = left_.find(end)) == std::string::npos) {
    if (!fill()) return std::exchange(left_, {});
  }
  std::string out = left_.substr(0, at + end.size());
  left_.erase(0, out.size());
  return out;
}

std::string RawClient::read_exactly(std::size_t bytes) {
  while (left_.size() < bytes && fill()) continue;
  std::string out = left_.substr(0, bytes);
  left_.erase(0, out.size());
  return out;
}

void RawClient::shutdown_write() { ::shutdown(fd_.get(), SHUT_WR); }

void RawClient::reset_connection() {
  const ::linger reset{1, 0};
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  fd_.reset();
}

RawListener::RawListener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  ::sockaddr_in address = loopback(0);
  ::socklen_t size = sizeof address;
  EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<::sockaddr*>(&address), size), 0);
  EXPECT_EQ(::listen(fd_.get(), 16), 0);
  EXPECT_EQ(::getsockname(fd_.get(), reinterpret_cast<::sockaddr*>(&address), &size), 0);
  set_timeouts(fd_.get());
  port_ = ntohs(address.sin_port);
}

RawClient RawListener::accept() {
  UniqueFd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_TRUE(fd) << "nobody connected";
  return RawClient(std::move(fd));
}

std::string exchange(std::uint16_t port, std::string_view request) {
  RawClient client(port);
  client.send(request);
  return client.read_all();
}

}  // namespace glovebox::net::test
