#include "net/websocket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "async/coro.h"
#include "net/test_util.h"

namespace glovebox::net {
namespace {

using test::RawClient;
using test::TestServer;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Deadline soon() { return after(std::chrono::seconds(10)); }

Task<void> echo(Exchange& exchange) {
  Result<std::unique_ptr<WebSocket>> accepted = co_await exchange.accept_websocket();
  if (!accepted) co_return;
  WebSocket& socket = **accepted;
  for (;;) {
    Result<WebSocket::Message> message = co_await socket.read(soon());
    if (!message || message->closed) co_return;
    if (message->data == "close") {
      co_await socket.close("as you wish", soon());
      co_return;
    }
    Result<void> sent;
    if (message->binary) {
      sent = co_await socket.write_binary(message->data, soon());
    } else {
      sent = co_await socket.write_text(message->data, soon());
    }
    if (!sent) co_return;
  }
}

void with_socket(const TestServer& server, const std::function<Task<void>(WebSocket&)>& f) {
  test::run_alone([&]() -> Task<void> {
    Result<Stream> stream = co_await Stream::connect_tcp("127.0.0.1", server.port(), soon());
    if (!stream) {
      ADD_FAILURE() << stream.error().text();
      co_return;
    }
    Headers headers{{"X-Test", "1"}};
    Result<std::unique_ptr<WebSocket>> socket = co_await WebSocket::connect(
        std::move(*stream), "localhost", "/ws", std::move(headers), soon());
    if (!socket) {
      ADD_FAILURE() << socket.error().text();
      co_return;
    }
    co_await f(**socket);
  });
}

TEST(WebSocket, EchoesTextAndBinary) {
  TestServer server(echo);
  with_socket(server, [](WebSocket& socket) -> Task<void> {
    const std::string sizes[] = {"",
                                 "a",
                                 std::string(125, 'b'),
                                 std::string(126, 'c'),
                                 std::string(70000, 'd'),
                                 std::string(1 << 20, 'e')};
    for (const std::string& data : sizes) {
      Result<void> sent = co_await socket.write_text(data, soon());
      EXPECT_TRUE(sent);
      Result<WebSocket::Message> back = co_await socket.read(soon());
      EXPECT_TRUE(back && !back->binary && !back->closed && back->data == data);
      const std::string bytes = data + std::string("\0\xff", 2);
      if (bytes.size() > (1 << 20)) continue;
      sent = co_await socket.write_binary(bytes, soon());
      EXPECT_TRUE(sent);
      back = co_await socket.read(soon());
      EXPECT_TRUE(back && back->binary && back->data == bytes);
    }
  });
}

TEST(WebSocket, SaysWhenThePeerEndsIt) {
  TestServer server(echo);
  with_socket(server, [](WebSocket& socket) -> Task<void> {
    Result<void> sent = co_await socket.write_text("close", soon());
    EXPECT_TRUE(sent);
    const Result<WebSocket::Message> back = co_await socket.read(soon());
    EXPECT_TRUE(back && back.value().closed);
  });
}

TEST(WebSocket, RefusesAMessageOverTheLimit) {
  TestServer server(echo);
  with_socket(server, [](WebSocket& socket) -> Task<void> {
    const std::string big((1 << 20) + 1, 'x');
    const Result<void> sent = co_await socket.write_text(big, soon());
    (void)sent;
    Result<WebSocket::Message> back = co_await socket.read(soon());
    EXPECT_TRUE(!back || back->closed);
  });
}

TEST(WebSocket, KeepsAReadThatTimedOut) {
  TestServer server(echo);
  with_socket(server, [](WebSocket& socket) -> Task<void> {
    for (int i = 0; i < 3; ++i) {
      Result<WebSocket::Message> none = co_await socket.read(after(std::chrono::milliseconds(1)));
      EXPECT_FALSE(none);
      EXPECT_EQ(none.error().code(), Errc::kTimeout);
    }
    Result<void> sent = co_await socket.ping(soon());
    EXPECT_TRUE(sent);
    sent = co_await socket.write_text("still here", soon());
    EXPECT_TRUE(sent);
    const Result<WebSocket::Message> back = co_await socket.read(soon());
    EXPECT_TRUE(back && back.value().data == "still here");
  });
}

const std::string kHandshake =
    "GET / HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

TEST(WebSocket, AnswersTheHandshakeAndAPing) {
  TestServer server(echo);
  RawClient client(server.port());
  client.send(kHandshake);
  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 101 "));
  // The example of RFC 6455, 1.3.
  EXPECT_THAT(head, HasSubstr("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
  EXPECT_THAT(head, HasSubstr("X-Request-ID: "));
  client.send(std::string("\x89\x82\0\0\0\0hi", 8));  // A masked ping.
  EXPECT_EQ(client.read_exactly(4), "\x8a\x02hi");
  client.send("\x81\x02hi");  // Not masked: RFC 6455, 5.1.
  EXPECT_THAT(client.read_all(), StartsWith("\x88"));
}

struct Refusal {
  const char* name;
  std::string request;
  int status;
};

class Handshakes : public ::testing::TestWithParam<Refusal> {};

TEST_P(Handshakes, AreRefused) {
  TestServer server(echo);
  RawClient client(server.port());
  client.send(GetParam().request);
  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 " + std::to_string(GetParam().status) + " "));
  if (GetParam().status == 426) EXPECT_THAT(head, HasSubstr("Sec-WebSocket-Version: 13\r\n"));
}

std::string handshake_without(std::string_view line) {
  std::string out = kHandshake;
  const std::size_t at = out.find(line);
  out.erase(at, out.find("\r\n", at) + 2 - at);
  return out;
}

INSTANTIATE_TEST_SUITE_P(
    All, Handshakes,
    ::testing::Values(Refusal{"PlainGet", "GET / HTTP/1.1\r\nHost: h\r\n\r\n", 426},
                      Refusal{"NoUpgrade", handshake_without("Upgrade: "), 426},
                      Refusal{"NoVersion", handshake_without("Sec-WebSocket-Version"), 426},
                      Refusal{"NoKey", handshake_without("Sec-WebSocket-Key"), 400},
                      Refusal{"EarlyFrames", kHandshake + "\x81\x80", 400},
                      Refusal{"Post", "POST" + kHandshake.substr(3), 400}),
    [](const auto& c) { return std::string(c.param.name); });

TEST(WebSocket, SaysWhenTheServerDeclines) {
  TestServer server([](Exchange& exchange) -> Task<void> {
    Response reply;
    reply.status = 403;
    const Result<void> sent = co_await exchange.respond(std::move(reply));
    (void)sent;
  });
  test::run_alone([&]() -> Task<void> {
    Result<Stream> stream = co_await Stream::connect_tcp("127.0.0.1", server.port(), soon());
    Headers none;
    const Result<std::unique_ptr<WebSocket>> socket =
        co_await WebSocket::connect(std::move(*stream), "localhost", "/", std::move(none), soon());
    EXPECT_FALSE(socket);
    EXPECT_EQ(socket.error().code(), Errc::kDenied);
    EXPECT_THAT(socket.error().text(), HasSubstr("403"));
  });
}

}  // namespace
}  // namespace glovebox::net
