#include "net/relay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "async/coro.h"
#include "net/test_util.h"

namespace glovebox::net {
namespace {

using test::RawClient;
using test::RawListener;
using test::TestServer;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A gateway in front of `upstream`, a port of 127.0.0.1.
class Gateway {
 public:
  explicit Gateway(std::uint16_t upstream, RelayOptions options = RelayOptions())
      : upstream_(upstream),
        options_(std::move(options)),
        pool_(std::make_unique<UpstreamPool>(8, std::chrono::seconds(60))),
        server_([this](Exchange& exchange) { return pass(exchange); }) {}
  ~Gateway() {
    // In the thread that uses it.
    server_.run_task(
        [](Server& server) { return server.close(after(std::chrono::milliseconds(200))); });
    server_.run([this](Server&) { pool_.reset(); });
  }

  std::uint16_t port() const { return server_.port(); }
  std::string last_error() {
    std::string out;
    server_.run([&](Server&) { out = error_; });
    return out;
  }

 private:
  Task<void> pass(Exchange& exchange) {
    RelayOptions options = options_;
    options.target = exchange.head().target;
    Dial dial = [this](Deadline deadline) {
      return Stream::connect_tcp("127.0.0.1", upstream_, deadline);
    };
    const Result<void> done = co_await relay(exchange, *pool_, std::move(dial), std::move(options));
    if (done) co_return;
    error_ = done.error().text();
    if (exchange.started()) co_return;
    Response reply;
    reply.status = done.error().code() == Errc::kTimeout ? 504 : 502;
    const Result<void> sent = co_await exchange.respond(std::move(reply));
    (void)sent;
  }

  std::uint16_t upstream_;
  RelayOptions options_;
  std::unique_ptr<UpstreamPool> pool_;
  std::string error_;
  TestServer server_;
};

// Speaks as the upstream over one connection, in another thread.
class Script {
 public:
  explicit Script(std::function<void(RawListener&)> play)
      : done_(std::async(std::launch::async, [this, play] { play(listener_); })) {}
  std::uint16_t port() const { return listener_.port(); }
  void wait() { done_.get(); }

 private:
  RawListener listener_;
  std::future<void> done_;
};

const std::string kGet = "GET /x HTTP/1.1\r\nHost: h\r\n\r\n";
const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

std::string pattern(std::size_t bytes) {
  std::string out(bytes, '\0');
  std::uint32_t state = 1;
  for (char& c : out) {
    state = state * 1664525 + 1013904223;
    c = static_cast<char>(state >> 24);
  }
  return out;
}

TEST(Relay, PassesRequestAndReplyAndKeepsBothConnections) {
  Script upstream([](RawListener& listener) {
    RawClient peer = listener.accept();
    for (int i = 0; i < 3; ++i) {
      const std::string head = peer.read_until("\r\n\r\n");
      EXPECT_EQ(head, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
      peer.send(kOk);
    }
  });
  Gateway gateway(upstream.port());
  RawClient client(gateway.port());
  for (int i = 0; i < 3; ++i) {
    client.send(kGet);
    const std::string head = client.read_until("\r\n\r\n");
    EXPECT_THAT(head, StartsWith("HTTP/1.1 200 OK\r\n"));
    EXPECT_THAT(head, HasSubstr("Content-Length: 2\r\n"));
    EXPECT_EQ(client.read_exactly(2), "ok");
  }
  upstream.wait();
}

TEST(Relay, StripsHopByHopAndOurOwnHeaders) {
  RelayOptions options;
  options.drop_headers = {"X-API-Key"};
  options.add_headers = {{"X-Forwarded-For", "1.2.3.4"}};
  Script upstream([](RawListener& listener) {
    RawClient peer = listener.accept();
    EXPECT_EQ(peer.read_until("\r\n\r\n"),
              "GET /x HTTP/1.1\r\nHost: h\r\nKeep: 1\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n");
    peer.send(
        "HTTP/1.1 200 OK\r\nConnection: X-Hop, close\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nA: b\r\n"
        "Proxy-Authenticate: x\r\nContent-Length: 0\r\n\r\n");
  });
  Gateway gateway(upstream.port(), options);
  RawClient client(gateway.port());
  client.send(
      "GET /x HTTP/1.1\r\nHost: h\r\nKeep: 1\r\nConnection: X-Secret, keep-alive, Host\r\n"
      "X-Secret: 1\r\nTE: trailers\r\nProxy-Authorization: x\r\nx-api-key: k\r\n"
      "X-Forwarded-For: 6.6.6.6\r\nUpgrade: h2c\r\nKeep-Alive: 3\r\n\r\n");
  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("A: b\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("X-Hop")));
  EXPECT_THAT(head, Not(HasSubstr("Keep-Alive")));
  EXPECT_THAT(head, Not(HasSubstr("Connection: close")));
  EXPECT_THAT(head, Not(HasSubstr("Proxy-Authenticate")));
}

TEST(Relay, PassesLargeBodiesBothWays) {
  const std::string body = pattern(9 << 20);
  Script upstream([&](RawListener& listener) {
    RawClient peer = listener.accept();
    for (int i = 0; i < 2; ++i) {
      EXPECT_THAT(peer.read_until("\r\n\r\n"), HasSubstr("Content-Length: 9437184\r\n"));
      const std::string got = peer.read_exactly(body.size());
      EXPECT_TRUE(got == body);
      peer.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(got.size()) + "\r\n\r\n");
      peer.send(got);
    }
  });
  Gateway gateway(upstream.port());
  RawClient client(gateway.port());
  for (int i = 0; i < 2; ++i) {
    client.send("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(body.size()) +
                "\r\n\r\n");
    client.send(body);
    EXPECT_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 200"));
    EXPECT_TRUE(client.read_exactly(body.size()) == body);
  }
  upstream.wait();
}

TEST(Relay, PassesChunkedBodiesBothWays) {
  Script upstream([](RawListener& listener) {
    RawClient peer = listener.accept();
    EXPECT_THAT(peer.read_until("\r\n\r\n"), HasSubstr("Transfer-Encoding: chunked\r\n"));
    EXPECT_EQ(peer.read_until("0\r\n\r\n"), "3\r\nabc\r\n0\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nde\r\n0\r\nT: t\r\n\r\n");
    EXPECT_EQ(peer.read_until("\r\n\r\n"), "GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    peer.send(kOk);
  });
  Gateway gateway(upstream.port());
  RawClient client(gateway.port());
  client.send(
      "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
  EXPECT_THAT(client.read_until("\r\n\r\n"), HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_EQ(client.read_until("0\r\n\r\n"), "2\r\nde\r\n0\r\n\r\n");
  client.send(kGet);
  EXPECT_THAT(client.read_until("ok"), EndsWith("ok"));
  upstream.wait();
}

TEST(Relay, PassesEventsAsTheyCome) {
  Script upstream([](RawListener& listener) {
    RawClient peer = listener.accept();
    peer.read_until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    // Each event is only sent when the client has said that it has the one before.
    for (int i = 0; i < 3; ++i) {
      peer.send("9\r\ndata: " + std::to_string(i) + "\n\n\r\n");
      RawClient got = listener.accept();
    }
    peer.send("0\r\n\r\n");
  });
  Gateway gateway(upstream.port());
  RawClient client(gateway.port());
  client.send(kGet);
  client.read_until("\r\n\r\n");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(client.read_until("\n\n\r\n"), "9\r\ndata: " + std::to_string(i) + "\n\n\r\n");
    RawClient tell(upstream.port());
  }
  EXPECT_EQ(client.read_until("0\r\n\r\n"), "0\r\n\r\n");
  upstream.wait();
}

TEST(Relay, TriesAgainWhenAPooledConnectionWasClosed) {
  Script upstream([&](RawListener& listener) {
    {
      RawClient peer = listener.accept();
      peer.read_until("\r\n\r\n");
      peer.send(kOk);
      // Takes the second request, and hangs up on it.
      peer.read_until("\r\n\r\n");
    }
    RawClient peer = listener.accept();
    peer.read_until("\r\n\r\n");
    peer.send(kOk);
  });
  Gateway gateway(upstream.port());
  RawClient client(gateway.port());
  for (int i = 0; i < 2; ++i) {
    client.send(kGet);
    EXPECT_THAT(client.read_until("ok"), EndsWith("ok"));
  }
  upstream.wait();
}

TEST(Relay, DoesNotRepeatAPost) {
  Script upstream([&](RawListener& listener) {
    RawClient peer = listener.accept();
    peer.read_until("\r\n\r\n");
    peer.send(kOk);
    peer.read_until("\r\n\r\n");
  });
  Gateway gateway(upstream.port());
  RawClient client(gateway.port());
  client.send(kGet);
  client.read_until("ok");
  client.send("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx");
  EXPECT_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 502 "));
  upstream.wait();
}

TEST(Relay, UsesAFreshConnectionForAPostWhenThePooledOneIsClosed) {
  std::promise<void> closed;
  Script upstream([&](RawListener& listener) {
    {
      RawClient peer = listener.accept();
      peer.read_until("\r\n\r\n");
      peer.send(kOk);
    }
    closed.set_value();
    RawClient peer = listener.accept();
    peer.read_until("\r\n\r\n");
    EXPECT_EQ(peer.read_exactly(1), "x");
    peer.send(kOk);
  });
  Gateway gateway(upstream.port());
  RawClient client(gateway.port());
  client.send(kGet);
  client.read_until("ok");
  closed.get_future().wait();
  client.send("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx");
  EXPECT_THAT(client.read_until("ok"), EndsWith("ok"));
  upstream.wait();
}

TEST(Relay, TunnelsAfterAnUpgrade) {
  const std::string bulk = pattern(3 << 20);
  Script upstream([&](RawListener& listener) {
    RawClient peer = listener.accept();
    const std::string head = peer.read_until("\r\n\r\n");
    EXPECT_THAT(head, HasSubstr("Connection: Upgrade\r\nUpgrade: tunnel\r\n"));
    peer.send(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: tunnel\r\n"
        "X: y\r\n\r\nearly");
    EXPECT_EQ(peer.read_exactly(4), "ping");
    peer.send("pong");
    EXPECT_TRUE(peer.read_exactly(bulk.size()) == bulk);
    peer.send(bulk);
    EXPECT_EQ(peer.read_all(), "bye");
    peer.send("end");
  });
  Gateway gateway(upstream.port());
  RawClient client(gateway.port());
  client.send("GET /x HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: tunnel\r\n\r\n");
  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 101 Switching Protocols\r\n"));
  EXPECT_THAT(head, HasSubstr("Connection: Upgrade\r\nUpgrade: tunnel\r\n"));
  EXPECT_THAT(head, HasSubstr("X: y\r\n"));
  EXPECT_THAT(head, HasSubstr("X-Request-ID: "));
  EXPECT_EQ(client.read_exactly(5), "early");
  client.send("ping");
  EXPECT_EQ(client.read_exactly(4), "pong");
  client.send(bulk);
  EXPECT_TRUE(client.read_exactly(bulk.size()) == bulk);
  client.send("bye");
  client.shutdown_write();
  EXPECT_EQ(client.read_all(), "end");
  upstream.wait();
}

TEST(Relay, RefusesAnUpgradeThatNobodyAskedFor) {
  Script upstream([&](RawListener& listener) {
    RawClient peer = listener.accept();
    peer.read_until("\r\n\r\n");
    peer.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
    EXPECT_EQ(peer.read_all(), "");
  });
  Gateway gateway(upstream.port());
  RawClient client(gateway.port());
  client.send(kGet);
  EXPECT_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 502 "));
  upstream.wait();
}

struct CutCase {
  const char* name;
  std::string reply;
  bool reset;
};

class CutReplies : public ::testing::TestWithParam<CutCase> {};

TEST_P(CutReplies, AreCutForTheClientToo) {
  Script upstream([&](RawListener& listener) {
    RawClient peer = listener.accept();
    peer.read_until("\r\n\r\n");
    peer.send(GetParam().reply);
    RawClient told = listener.accept();
    told.read_all();
    if (GetParam().reset) peer.reset_connection();
  });
  Gateway gateway(upstream.port());
  RawClient client(gateway.port());
  client.send(kGet);
  client.read_until("part");
  RawClient tell(upstream.port());
  tell.close();
  const std::string rest = client.read_all();
  EXPECT_THAT(rest, Not(HasSubstr("0\r\n\r\n")));
  EXPECT_THAT(rest, Not(HasSubstr("<timeout>")));
  EXPECT_LT(rest.size(), 100U);
  upstream.wait();
}

INSTANTIATE_TEST_SUITE_P(
    All, CutReplies,
    ::testing::Values(
        CutCase{"Length", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\npart", false},
        CutCase{"LongLength", "HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\npart", false},
        CutCase{"LongLengthReset", "HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\npart", true},
        CutCase{"Chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n",
                false},
        CutCase{"ChunkedReset",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n", true}),
    [](const auto& c) { return std::string(c.param.name); });

struct BadReply {
  const char* name;
  std::string reply;
};

class BadReplies : public ::testing::TestWithParam<BadReply> {};

TEST_P(BadReplies, BecomeABadGateway) {
  Script upstream([&](RawListener& listener) {
    RawClient peer = listener.accept();
    peer.read_until("\r\n\r\n");
    peer.send(GetParam().reply);
  });
  Gateway gateway(upstream.port());
  RawClient client(gateway.port());
  client.send(kGet);
  EXPECT_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 502 "));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadReplies,
    ::testing::Values(
        BadReply{"Nothing", ""}, BadReply{"NotHttp", "SSH-2.0-x\r\n\r\n"},
        BadReply{"HalfAHead", "HTTP/1.1 200 OK\r\nA: b\r\n"},
        BadReply{"TwoLengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"},
        BadReply{"LengthAndChunks",
                 "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"},
        BadReply{"UnknownCoding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"},
        BadReply{"Folded", "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n"},
        BadReply{"Status999", "HTTP/1.1 999 X\r\n\r\n"},
        BadReply{"HugeHead", "HTTP/1.1 200 OK\r\nA: " + std::string(70000, 'x') + "\r\n\r\n"}),
    [](const auto& c) { return std::string(c.param.name); });

TEST(Relay, EndsTheUpstreamWhenTheClientLeaves) {
  Script upstream([](RawListener& listener) {
    RawClient peer = listener.accept();
    peer.read_until("\r\n\r\n");
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n");
    EXPECT_EQ(peer.read_all(), "");  // And no timeout.
  });
  Gateway gateway(upstream.port());
  RawClient client(gateway.port());
  client.send(kGet);
  client.read_until("x\r\n");
  client.close();
  upstream.wait();
}

TEST(Relay, SurvivesClientsThatLeaveInTheMiddleOfALargeReply) {
  constexpr int kRounds = 400;
  const std::string body = pattern(4 << 20);
  Script upstream([&](RawListener& listener) {
    for (int i = 0; i < kRounds; ++i) {
      RawClient peer = listener.accept();
      peer.read_until("\r\n\r\n");
      peer.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n");
      peer.send(body);  // Fails when the relay hangs up.
    }
  });
  Gateway gateway(upstream.port());
  for (int i = 0; i < kRounds; ++i) {
    RawClient client(gateway.port());
    client.send(kGet);
    client.read_until("\r\n\r\n");
    client.read_exactly(static_cast<std::size_t>(i % 40) * 50000);
    if (i % 2 == 0) client.reset_connection();
  }
  upstream.wait();
}

TEST(Relay, EndsTheUpstreamWhenTheClientLeavesBeforeTheReply) {
  std::promise<void> asked;
  Script upstream([&](RawListener& listener) {
    RawClient peer = listener.accept();
    peer.read_until("\r\n\r\n");
    asked.set_value();
    EXPECT_EQ(peer.read_all(), "");
  });
  Gateway gateway(upstream.port());
  RawClient client(gateway.port());
  client.send(kGet);
  asked.get_future().wait();
  client.close();
  upstream.wait();
}

TEST(Relay, EndsTheUpstreamWhenTheUploadIsCut) {
  std::promise<void> begun;
  Script upstream([&](RawListener& listener) {
    RawClient peer = listener.accept();
    peer.read_until("\r\n\r\n");
    EXPECT_EQ(peer.read_exactly(3), "abc");
    begun.set_value();
    EXPECT_EQ(peer.read_all(), "");
  });
  Gateway gateway(upstream.port());
  RawClient client(gateway.port());
  client.send("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\nabc");
  begun.get_future().wait();
  client.reset_connection();
  upstream.wait();
}

TEST(Relay, PassesAnEarlyRefusalOfALongUpload) {
  Script upstream([](RawListener& listener) {
    RawClient peer = listener.accept();
    peer.read_until("\r\n\r\n");
    peer.send("HTTP/1.1 413 X\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
    peer.read_all();
  });
  Gateway gateway(upstream.port());
  RawClient client(gateway.port());
  client.send("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 100000000\r\n\r\nabc");
  const std::string reply = client.read_all();
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(reply, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(reply, EndsWith("no"));
  client.close();
  upstream.wait();
}

TEST(Relay, AsksForTheBodyThatWaitsForItsTurn) {
  Script upstream([](RawListener& listener) {
    RawClient peer = listener.accept();
    EXPECT_THAT(peer.read_until("\r\n\r\n"), Not(HasSubstr("Expect")));
    EXPECT_EQ(peer.read_exactly(3), "abc");
    peer.send(kOk);
  });
  Gateway gateway(upstream.port());
  RawClient client(gateway.port());
  client.send("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("abc");
  EXPECT_THAT(client.read_until("ok"), StartsWith("HTTP/1.1 200 "));
  upstream.wait();
}

TEST(Relay, HandlesRepliesWithoutBody) {
  Script upstream([](RawListener& listener) {
    RawClient peer = listener.accept();
    peer.read_until("\r\n\r\n");
    peer.send(
        "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    peer.read_until("\r\n\r\n");
    peer.send("HTTP/1.1 204 No Content\r\n\r\n");
    peer.read_until("\r\n\r\n");
    peer.send("HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n");
    peer.read_until("\r\n\r\n");
    peer.send(kOk);
  });
  Gateway gateway(upstream.port());
  RawClient client(gateway.port());
  client.send("HEAD /x HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(client.read_until("\r\n\r\n"), HasSubstr("Content-Length: 5\r\n"));
  client.send(kGet);
  EXPECT_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 204 "));
  client.send(kGet);
  EXPECT_THAT(client.read_until("\r\n\r\n"), HasSubstr("ETag: \"a\"\r\n"));
  client.send(kGet);
  EXPECT_THAT(client.read_until("ok"), EndsWith("ok"));
}

TEST(Relay, AnswersAnHttp10Client) {
  Script upstream([](RawListener& listener) {
    RawClient peer = listener.accept();
    EXPECT_THAT(peer.read_until("\r\n\r\n"), StartsWith("GET /x HTTP/1.1\r\n"));
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n");
  });
  Gateway gateway(upstream.port());
  const std::string reply = test::exchange(gateway.port(), "GET /x HTTP/1.0\r\nHost: h\r\n\r\n");
  EXPECT_THAT(reply, Not(HasSubstr("chunked")));
  EXPECT_THAT(reply, EndsWith("\r\n\r\nab"));
}

TEST(Relay, PassesAReplyThatEndsWithItsConnection) {
  Script upstream([](RawListener& listener) {
    RawClient peer = listener.accept();
    peer.read_until("\r\n\r\n");
    peer.send("HTTP/1.0 200 OK\r\n\r\nall of it");
  });
  Gateway gateway(upstream.port());
  RawClient client(gateway.port());
  client.send(kGet);
  EXPECT_THAT(client.read_until("\r\n0\r\n\r\n"), EndsWith("9\r\nall of it\r\n0\r\n\r\n"));
}

TEST(Relay, GivesUpWhenTheReplyDoesNotCome) {
  RelayOptions options;
  options.head_timeout = std::chrono::seconds(1);
  Script upstream([](RawListener& listener) {
    RawClient peer = listener.accept();
    peer.read_until("\r\n\r\n");
    EXPECT_EQ(peer.read_all(), "");
  });
  Gateway gateway(upstream.port(), options);
  RawClient client(gateway.port());
  client.send(kGet);
  EXPECT_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 504 "));
  upstream.wait();
}

TEST(Relay, SaysWhenNobodyListens) {
  std::uint16_t port = 0;
  {
    RawListener listener;
    port = listener.port();
  }
  Gateway gateway(port);
  RawClient client(gateway.port());
  client.send(kGet);
  EXPECT_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 502 "));
  EXPECT_THAT(gateway.last_error(), HasSubstr("Connection refused"));
}

}  // namespace
}  // namespace glovebox::net
