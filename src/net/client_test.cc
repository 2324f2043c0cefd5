#include "net/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "async/coro.h"
#include "net/test_util.h"

namespace glovebox::net {
namespace {

using test::RawClient;
using test::RawListener;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Plays the server for one connection in another thread while `client` runs in this one.
void with_peer(const std::function<void(RawClient&)>& play,
               const std::function<Task<void>(ClientConnection&)>& client) {
  RawListener listener;
  auto peer = std::async(std::launch::async, [&] {
    RawClient connection = listener.accept();
    play(connection);
  });
  test::run_alone([&]() -> Task<void> {
    Result<Stream> stream =
        co_await Stream::connect_tcp("127.0.0.1", listener.port(), after(std::chrono::seconds(5)));
    if (!stream) {
      ADD_FAILURE() << stream.error().text();
      co_return;
    }
    ClientConnection connection(*std::move(stream));
    co_await client(connection);
  });
  peer.get();
}

Deadline soon() { return after(std::chrono::seconds(10)); }

struct Case {
  const char* name;
  const char* reply;
  const char* outcome;  // "STATUS BODY reusable|spent", or "error CODE".
};

class Replies : public ::testing::TestWithParam<Case> {};

TEST_P(Replies, AreUnderstood) {
  std::string outcome;
  with_peer(
      [](RawClient& peer) {
        EXPECT_EQ(peer.read_until("\r\n\r\n"), "GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
        peer.send(GetParam().reply);
        peer.shutdown_write();
        peer.read_all();
      },
      [&](ClientConnection& connection) -> Task<void> {
        const Headers headers{{"Host", "h"}};
        Result<Response> reply =
            co_await request(connection, "GET", "/a", headers, "", 100, soon());
        if (!reply) {
          outcome = "error " + std::string(to_string(reply.error().code()));
        } else {
          outcome = std::to_string(reply->status) + " " + reply->body;
        }
      });
  EXPECT_EQ(outcome, GetParam().outcome);
}

INSTANTIATE_TEST_SUITE_P(
    All, Replies,
    ::testing::Values(
        Case{"Length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", "200 ab"},
        Case{"Chunked",
             "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n",
             "200 ab"},
        Case{"UntilTheEnd", "HTTP/1.1 200 OK\r\n\r\nab", "200 ab"},
        Case{"Http10", "HTTP/1.0 404 Not Found\r\n\r\nab", "404 ab"},
        Case{"NoReason", "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", "200 "},
        Case{"Interim",
             "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 E\r\nA: b\r\n\r\nHTTP/1.1 204 N\r\n\r\n",
             "204 "},
        Case{"NoContentIgnoresLength", "HTTP/1.1 304 N\r\nContent-Length: 50\r\n\r\n", "304 "},
        Case{"Cut", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", "error unavailable"},
        Case{"CutChunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
             "error unavailable"},
        Case{"CutHead", "HTTP/1.1 200 OK\r\nContent-Le", "error unavailable"},
        Case{"Nothing", "", "error unavailable"},
        Case{"BadChunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzzzz\r\n",
             "error invalid"},
        Case{"TwoLengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
             "error unavailable"},
        Case{"LengthList", "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\na", "error unavailable"},
        Case{"UnknownCoding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: x\r\n\r\na",
             "error unavailable"},
        Case{"NotHttp", "220 mail\r\n\r\n", "error unavailable"},
        Case{"Status000", "HTTP/1.1 000 X\r\n\r\n", "error unavailable"}),
    [](const auto& c) { return std::string(c.param.name); });

TEST(Client, SendsSeveralRequestsOverOneConnection) {
  with_peer(
      [](RawClient& peer) {
        EXPECT_EQ(peer.read_until("\r\n\r\n"),
                  "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n");
        EXPECT_EQ(peer.read_exactly(3), "abc");
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
        EXPECT_EQ(peer.read_until("\r\n\r\n"), "HEAD /b HTTP/1.1\r\n\r\n");
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
        EXPECT_EQ(peer.read_until("0\r\n\r\n"),
                  "PUT /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n");
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
      },
      [](ClientConnection& connection) -> Task<void> {
        const Headers host{{"Host", "h"}};
        const Headers none;
        Result<Response> a = co_await request(connection, "POST", "/a", host, "abc", 10, soon());
        EXPECT_TRUE(a && a->body == "x");
        EXPECT_TRUE(connection.reusable());
        Result<Response> b = co_await request(connection, "HEAD", "/b", none, "", 10, soon());
        EXPECT_TRUE(b && b->headers.get("content-length") == "1000" && b->body.empty());
        EXPECT_TRUE(connection.reusable());

        Result<void> sent =
            co_await connection.send_head("PUT", "/c", none, std::nullopt, true, soon());
        EXPECT_TRUE(sent);
        sent = co_await connection.write_body("ab", soon());
        EXPECT_TRUE(sent);
        sent = co_await connection.write_body("c", soon());
        EXPECT_TRUE(sent);
        EXPECT_FALSE(connection.reusable());
        sent = co_await connection.finish_body(soon());
        EXPECT_TRUE(sent);
        const Result<ResponseHead> head = co_await connection.read_head(false, soon());
        EXPECT_TRUE(head);
        EXPECT_FALSE(connection.reusable());  // The server closes.
      });
}

TEST(Client, RefusesToSendWhatWouldSplitTheRequest) {
  with_peer([](RawClient& peer) { EXPECT_EQ(peer.read_all(), ""); },
            [](ClientConnection& connection) -> Task<void> {
              struct Case {
                const char* method;
                const char* target;
                Headers headers;
              };
              const Case cases[] = {
                  {"GET", "/a b", {}},
                  {"GET", "/a\r\nB: c", {}},
                  {"GET", "", {}},
                  {"G ET", "/", {}},
                  {"GET", "/", {{"A", "b\r\nC: d"}}},
                  {"GET", "/", {{"A b", "c"}}},
                  {"GET", "/", {{"", "c"}}},
              };
              for (const Case& c : cases) {
                Result<void> sent = co_await connection.send_head(c.method, c.target, c.headers,
                                                                  std::nullopt, false, soon());
                EXPECT_FALSE(sent);
              }
            });
}

TEST(Client, BoundsTheReply) {
  with_peer(
      [](RawClient& peer) {
        peer.read_until("\r\n\r\n");
        peer.send("HTTP/1.1 200 OK\r\n\r\n" + std::string(1000, 'x'));
      },
      [](ClientConnection& connection) -> Task<void> {
        const Headers none;
        const Result<Response> reply =
            co_await request(connection, "GET", "/", none, "", 999, soon());
        EXPECT_FALSE(reply);
        EXPECT_EQ(reply.error().code(), Errc::kExhausted);
      });
  with_peer(
      [](RawClient& peer) {
        peer.read_until("\r\n\r\n");
        peer.send("HTTP/1.1 200 OK\r\nA: " + std::string(70000, 'x'));
        peer.read_all();
      },
      [](ClientConnection& connection) -> Task<void> {
        const Headers none;
        const Result<Response> reply =
            co_await request(connection, "GET", "/", none, "", 999, soon());
        EXPECT_FALSE(reply);
      });
}

TEST(Client, GivesUpAtTheDeadline) {
  with_peer([](RawClient& peer) { EXPECT_THAT(peer.read_all(), StartsWith("GET / ")); },
            [](ClientConnection& connection) -> Task<void> {
              const Headers none;
              const Deadline deadline = after(std::chrono::milliseconds(100));
              const Result<Response> reply =
                  co_await request(connection, "GET", "/", none, "", 999, deadline);
              EXPECT_FALSE(reply);
              EXPECT_EQ(reply.error().code(), Errc::kTimeout);
              EXPECT_FALSE(connection.reusable());
              EXPECT_GE(Clock::now(), deadline);
            });
}

TEST(Client, HandsOverAfterSwitchingProtocols) {
  with_peer(
      [](RawClient& peer) {
        peer.read_until("\r\n\r\n");
        peer.send("HTTP/1.1 101 S\r\nUpgrade: x\r\n\r\nearly");
        EXPECT_EQ(peer.read_all(), "hi");
      },
      [](ClientConnection& connection) -> Task<void> {
        const Headers headers{{"Connection", "Upgrade"}, {"Upgrade", "x"}};
        Result<void> sent =
            co_await connection.send_head("GET", "/", headers, std::nullopt, false, soon());
        EXPECT_TRUE(sent);
        const Result<ResponseHead> head = co_await connection.read_head(false, soon());
        EXPECT_TRUE(head && head.value().status == 101);
        std::string early = connection.take_unread();
        while (early.size() < 5) {
          char more[8];
          Result<std::size_t> n = co_await connection.stream().read_some(more, soon());
          if (!n || *n == 0) break;
          early.append(more, *n);
        }
        EXPECT_EQ(early, "early");
        sent = co_await connection.stream().write_all("hi", soon());
        EXPECT_TRUE(sent);
        EXPECT_FALSE(connection.reusable());
      });
}

}  // namespace
}  // namespace glovebox::net
