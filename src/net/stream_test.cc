#include "net/stream.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <future>

#include "async/coro.h"
#include "net/test_util.h"

namespace glovebox::net {
namespace {

using test::RawClient;
using test::RawListener;

Deadline soon() { return after(std::chrono::seconds(10)); }

// A stream and its raw other end.
struct Pair {
  Stream stream;
  RawClient peer;
};

Pair make_pair(const Executor& executor) {
  std::array<int, 2> fds{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()), 0);
  Result<Stream> stream = Stream::adopt(executor, UniqueFd(fds[0]));
  EXPECT_TRUE(stream);
  return Pair{std::move(*stream), RawClient(UniqueFd(fds[1]))};
}

TEST(Stream, ReadsWritesAndSeesTheEnd) {
  test::run_alone([]() -> Task<void> {
    Pair pair = make_pair(co_await boost::asio::this_coro::executor);
    Result<void> sent = co_await pair.stream.write_all("hello", soon());
    EXPECT_TRUE(sent);
    EXPECT_EQ(pair.peer.read_exactly(5), "hello");
    pair.peer.send("world");
    std::array<char, 64> buffer;
    Result<std::size_t> n = co_await pair.stream.read_some(buffer, soon());
    EXPECT_TRUE(n && std::string_view(buffer.data(), *n) == "world");
    EXPECT_FALSE(pair.stream.peer_gone());
    pair.peer.shutdown_write();
    EXPECT_TRUE(pair.stream.peer_gone());
    n = co_await pair.stream.read_some(buffer, soon());
    EXPECT_TRUE(n && *n == 0);
    sent = co_await pair.stream.write_all("bye", soon());
    EXPECT_TRUE(sent);
    pair.stream.shutdown_write();
    EXPECT_EQ(pair.peer.read_all(), "bye");
  });
}

TEST(Stream, KeepsItsDeadlines) {
  test::run_alone([]() -> Task<void> {
    Pair pair = make_pair(co_await boost::asio::this_coro::executor);
    std::array<char, 64> buffer;
    const auto wait = std::chrono::milliseconds(50);
    Deadline deadline = after(wait);
    const Result<std::size_t> n = co_await pair.stream.read_some(buffer, deadline);
    EXPECT_FALSE(n);
    EXPECT_EQ(n.error().code(), Errc::kTimeout);
    EXPECT_GE(Clock::now(), deadline);

    deadline = after(wait);
    const std::string much(8 << 20, 'x');
    const Result<void> sent = co_await pair.stream.write_all(much, deadline);
    EXPECT_FALSE(sent);
    EXPECT_EQ(sent.error().code(), Errc::kTimeout);
    // Nothing was closed by that.
    EXPECT_EQ(pair.peer.read_exactly(4), "xxxx");
  });
}

TEST(Stream, ClosingEndsWhatWaits) {
  using boost::asio::experimental::awaitable_operators::operator&&;
  test::run_alone([]() -> Task<void> {
    Pair pair = make_pair(co_await boost::asio::this_coro::executor);
    std::array<char, 64> buffer;
    const auto close_soon = [](Stream& stream) -> Task<void> {
      stream.close();
      co_return;
    };
    auto both = pair.stream.read_some(buffer, soon()) && close_soon(pair.stream);
    const Result<std::size_t> n = co_await std::move(both);
    EXPECT_FALSE(n);
    EXPECT_EQ(n.error().code(), Errc::kUnavailable);
  });
}

TEST(Stream, LosingARaceCancelsTheWait) {
  using boost::asio::experimental::awaitable_operators::operator||;
  test::run_alone([]() -> Task<void> {
    Pair pair = make_pair(co_await boost::asio::this_coro::executor);
    Pair other = make_pair(co_await boost::asio::this_coro::executor);
    other.peer.send("x");
    std::array<char, 64> a;
    std::array<char, 64> b;
    auto race = pair.stream.read_some(a, soon()) || other.stream.read_some(b, soon());
    auto first = co_await std::move(race);
    EXPECT_EQ(first.index(), 1U);
    // The one that lost is as good as before.
    pair.peer.send("later");
    Result<std::size_t> n = co_await pair.stream.read_some(a, soon());
    EXPECT_TRUE(n && *n == 5);
  });
}

TEST(Stream, SurvivesAPeerThatHungUp) {
  test::run_alone([]() -> Task<void> {
    Pair pair = make_pair(co_await boost::asio::this_coro::executor);
    pair.peer.close();
    const Result<void> sent = co_await pair.stream.write_all("x", soon());
    EXPECT_FALSE(sent);
    EXPECT_EQ(sent.error().code(), Errc::kUnavailable);
  });
}

TEST(Stream, RefusesWhatIsNoStreamSocket) {
  test::run_alone([]() -> Task<void> {
    const Executor executor = co_await boost::asio::this_coro::executor;
    Result<Stream> datagram =
        Stream::adopt(executor, UniqueFd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)));
    EXPECT_FALSE(datagram);
    const Result<Stream> no_path = co_await Stream::connect_unix("/nonexistent/x", soon());
    EXPECT_FALSE(no_path);
    EXPECT_EQ(no_path.error().code(), Errc::kNotFound);
    const Result<Stream> long_path = co_await Stream::connect_unix(std::string(200, 'x'), soon());
    EXPECT_FALSE(long_path);
    EXPECT_EQ(long_path.error().code(), Errc::kInvalid);
    const Result<Stream> name = co_await Stream::connect_tcp("localhost", 1, soon());
    EXPECT_FALSE(name);
    EXPECT_EQ(name.error().code(), Errc::kInvalid);
  });
}

TEST(Stream, SaysWhenNobodyListens) {
  std::uint16_t port = 0;
  {
    RawListener listener;
    port = listener.port();
  }
  test::run_alone([port]() -> Task<void> {
    const Result<Stream> stream = co_await Stream::connect_tcp("127.0.0.1", port, soon());
    EXPECT_FALSE(stream);
    EXPECT_EQ(stream.error().code(), Errc::kUnavailable);
  });
}

TEST(Stream, EndsTheLoopWhenNobodyWaits) {
  const auto begin = Clock::now();
  test::run_alone([]() -> Task<void> {
    Pair pair = make_pair(co_await boost::asio::this_coro::executor);
    pair.peer.send("x");
    std::array<char, 64> buffer;
    const Result<std::size_t> n =
        co_await pair.stream.read_some(buffer, after(std::chrono::hours(1)));
    EXPECT_TRUE(n);
  });
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(5));
}

TEST(Stream, MayStillBeWaitedForWhenTheLoopIsDestroyed) {
  auto io = std::make_unique<boost::asio::io_context>(1);
  const auto wait_forever = []() -> Task<void> {
    Pair pair = make_pair(co_await boost::asio::this_coro::executor);
    std::array<char, 64> buffer;
    const Result<std::size_t> n = co_await pair.stream.read_some(buffer, Deadline::max());
    ADD_FAILURE() << "ended: " << n.has_value();
  };
  boost::asio::co_spawn(*io, wait_forever, boost::asio::detached);
  io->poll();
  io.reset();  // A leak here is for the sanitizer to find.
}

TEST(Pump, CopiesUntilTheEndAndPassesItOn) {
  const std::string data(3 << 20, 'p');
  test::run_alone([&]() -> Task<void> {
    const Executor executor = co_await boost::asio::this_coro::executor;
    Pair from = make_pair(executor);
    Pair to = make_pair(executor);
    auto feed = std::async(std::launch::async, [&] {
      from.peer.send(data);
      from.peer.shutdown_write();
    });
    auto drain = std::async(std::launch::async, [&] { return to.peer.read_all(); });
    Result<std::uint64_t> n = co_await pump(from.stream, to.stream, std::chrono::seconds(10));
    EXPECT_TRUE(n && *n == data.size());
    feed.get();
    EXPECT_TRUE(drain.get() == data);
  });
}

TEST(Tunnel, EndsBothWaysWhenOneBreaks) {
  test::run_alone([]() -> Task<void> {
    const Executor executor = co_await boost::asio::this_coro::executor;
    Pair a = make_pair(executor);
    Pair b = make_pair(executor);
    a.peer.send("x");
    b.peer.close();
    const Result<void> ended = co_await tunnel(a.stream, b.stream, std::chrono::seconds(10));
    EXPECT_FALSE(ended);
    EXPECT_EQ(a.peer.read_all(), "");
  });
}

TEST(Tunnel, EndsWhenNeitherSideSpeaks) {
  test::run_alone([]() -> Task<void> {
    const Executor executor = co_await boost::asio::this_coro::executor;
    Pair a = make_pair(executor);
    Pair b = make_pair(executor);
    const Result<void> ended = co_await tunnel(a.stream, b.stream, std::chrono::milliseconds(50));
    EXPECT_FALSE(ended);
    EXPECT_EQ(ended.error().code(), Errc::kTimeout);
  });
}

}  // namespace
}  // namespace glovebox::net
