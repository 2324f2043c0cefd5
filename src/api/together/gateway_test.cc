// The gateway with everything around it; gateway/destination_test.cc has the routing by itself.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/together/test_daemon.h"

namespace glovebox::api::native {
namespace {

using ::testing::HasSubstr;

struct Seen {
  std::optional<net::RequestHead> head;
  std::string body;
};

Inside remember(Seen& seen) {
  return [&seen](net::Exchange& e) -> Task<void> {
    seen.head = e.head();
    auto body = co_await e.read_whole_body(1000);
    seen.body = body ? *body : "?";
    co_await TestDaemon::reply_text(e, 200, "from the program");
  };
}

TEST(Gateway, PassesARequestOnByEachWay) {
  TestDaemon d;
  const std::string id = d.make();
  Seen seen;
  d.on_program = remember(seen);

  EXPECT_EQ(d.call("POST", "/sandboxes/" + id + "/proxy/8080/a//%2e/b?x=%20", "in").body,
            "from the program");
  EXPECT_EQ(seen.head->target, "/a//%2e/b?x=%20");
  EXPECT_EQ(seen.head->method, "POST");
  EXPECT_EQ(seen.body, "in");
  EXPECT_EQ(seen.head->headers.get("X-Forwarded-Prefix"), "/sandboxes/" + id + "/proxy/8080");

  EXPECT_EQ(
      d.call("GET", "/x", "",
             {{"X-API-Key", d.key}, {"Glovebox-Sandbox-Id", id}, {"Glovebox-Sandbox-Port", "8080"}})
          .status,
      200);
  EXPECT_EQ(seen.head->target, "/x");
  EXPECT_EQ(
      d.call("GET", "/y", "", {{"X-API-Key", d.key}, {"Host", "8080-" + id + ".localhost:7070"}})
          .status,
      200);
  EXPECT_EQ(seen.head->target, "/y");
  EXPECT_EQ(seen.head->headers.get("Host"), "8080-" + id + ".localhost:7070");
}

TEST(Gateway, OurHeadersStayOutAndForwardedOnesGoIn) {
  TestDaemon d;
  const std::string id = d.make();
  Seen seen;
  d.on_program = remember(seen);
  d.call("GET", "/", "",
         {{"X-API-Key", d.key},
          {"Authorization", "Bearer app-token"},
          {"Glovebox-Sandbox-Id", id},
          {"Glovebox-Sandbox-Port", "8080"},
          {"X-Forwarded-For", "10.0.0.9"},
          {"X-Forwarded-Proto", "https"},
          {"Host", "shop.example"},
          {"X-Request-ID", "r-1"}});
  const net::Headers& h = seen.head->headers;
  EXPECT_FALSE(h.has("X-API-Key"));
  EXPECT_FALSE(h.has("Glovebox-Sandbox-Id"));
  EXPECT_FALSE(h.has("Glovebox-Sandbox-Port"));
  EXPECT_EQ(h.get("Authorization"), "Bearer app-token");  // The program's own.
  EXPECT_EQ(h.get("X-Forwarded-For"), "10.0.0.9, 127.0.0.1");
  EXPECT_EQ(h.get("X-Forwarded-Proto"), "https");
  EXPECT_EQ(h.get("X-Forwarded-Host"), "shop.example");
  EXPECT_EQ(h.get("X-Request-ID"), "r-1");

  d.call("GET", "/sandboxes/" + id + "/proxy/8080/", "", {{"Authorization", "Bearer " + d.key}});
  EXPECT_FALSE(seen.head->headers.has("Authorization"));
  EXPECT_EQ(seen.head->headers.get("X-Forwarded-Proto"), "http");
}

TEST(Gateway, AKeyInAuthorizationNeverGoesInEvenBesideAnother) {
  TestDaemon d;
  const std::string id = d.make();
  Seen seen;
  d.on_program = remember(seen);
  d.call("GET", "/sandboxes/" + id + "/proxy/8080/", "",
         {{"X-API-Key", d.key}, {"Authorization", "Bearer " + d.key}});
  EXPECT_FALSE(seen.head->headers.has("Authorization"));
}

struct Refusal {
  int status;
  std::string code;
};

Refusal refusal(const net::Response& r) {
  EXPECT_THAT(r.body,
              HasSubstr("\"code\":\"" + std::string(r.headers.get("Glovebox-Gateway-Error"))));
  return {r.status, std::string(r.headers.get("Glovebox-Gateway-Error"))};
}

TEST(Gateway, EachFailureHasItsOwnStatusAndCode) {
  TestDaemon d;
  const std::string id = d.make();
  const auto ask = [&](const std::string& who, int port) {
    return refusal(d.call("GET", "/sandboxes/" + who + "/proxy/" + std::to_string(port) + "/"));
  };
  const auto expect = [](const Refusal& r, int status, const char* code) {
    EXPECT_EQ(r.status, status);
    EXPECT_EQ(r.code, code);
  };
  expect(ask(id, 8081), 502, "port_closed");
  expect(ask("sb-aaaaaaaaaaaaaaaaaaaa", 8080), 404, "not_found");
  expect(ask("nonsense", 8080), 404, "not_found");
  expect(ask(id, 0), 404, "not_found");
  expect(ask(id, 65536), 404, "not_found");
  expect(refusal(d.call("GET", "/", "", {{"X-API-Key", d.key}, {"Glovebox-Sandbox-Id", id}})), 400,
         "invalid");
  expect(refusal(d.call("GET", "/sandboxes/" + id + "/proxy/8080/", "", {{"X-API-Key", "none"}})),
         401, "unauthorized");

  d.on_program = [](net::Exchange& e) -> Task<void> {
    e.abort();
    co_return;
  };
  expect(ask(id, 8080), 502, "bad_gateway");

  Timer never(d.io.get_executor(), Timer::time_point::max());
  d.on_program = [&](net::Exchange& e) -> Task<void> {
    co_await never.async_wait(use_result);
    e.abort();
  };
  expect(ask(id, 8080), 504, "timeout");
  never.cancel();

  d.call("POST", "/api/v1/sandboxes/" + id + "/pause");
  expect(ask(id, 8080), 409, "sandbox_paused");
  d.call("DELETE", "/api/v1/sandboxes/" + id);
  expect(ask(id, 8080), 410, "sandbox_ended");
  EXPECT_EQ(d.service.snapshot().streams_open, 0U);
}

TEST(Gateway, KeepsRepliesAsTheyAre) {
  TestDaemon d;
  const std::string id = d.make();
  d.on_program = [](net::Exchange& e) -> Task<void> {
    net::Response r;
    r.status = e.head().target == "/304" ? 304 : 204;
    r.headers.add("Set-Cookie", "a=1");
    r.headers.add("Set-Cookie", "b=2");
    auto sent = co_await e.respond(std::move(r));
    static_cast<void>(sent);
  };
  for (const auto& [path, status] : {std::pair("/204", 204), std::pair("/304", 304)}) {
    const net::Response r = d.call("GET", "/sandboxes/" + id + "/proxy/8080" + path);
    EXPECT_EQ(r.status, status);
    std::vector<std::string> cookies;
    for (const net::Header& h : r.headers) {
      if (h.name == "Set-Cookie") cookies.push_back(h.value);
    }
    EXPECT_THAT(cookies, ::testing::ElementsAre("a=1", "b=2"));
  }
}

TEST(Gateway, UpgradesBecomeATunnel) {
  TestDaemon d;
  const std::string id = d.make();
  d.on_program = [](net::Exchange& e) -> Task<void> {
    auto socket = co_await e.accept_websocket();
    if (!socket) co_return;
    const Deadline soon = after(std::chrono::seconds(10));
    auto message = co_await (*socket)->read(soon);
    if (!message) co_return;
    const std::string answer = "echo " + message->data;
    auto written = co_await (*socket)->write_text(answer, soon);
    co_await (*socket)->close("", soon);
  };
  const Deadline soon = after(std::chrono::seconds(10));
  net::Stream stream = d.run(net::Stream::connect_tcp("127.0.0.1", d.port, soon)).value();
  net::Headers headers{{"X-API-Key", d.key}};
  auto socket = d.run(net::WebSocket::connect(std::move(stream), "localhost",
                                              "/sandboxes/" + id + "/proxy/8080/ws",
                                              std::move(headers), soon));
  ASSERT_TRUE(socket) << socket.error().text();
  ASSERT_TRUE(d.run((*socket)->write_text("hello", soon)));
  Result<net::WebSocket::Message> message = d.run((*socket)->read(soon));
  ASSERT_TRUE(message);
  EXPECT_EQ(message->data, "echo hello");
}

TEST(Gateway, AnUpgradeNeedsAKeyToo) {
  TestDaemon d;
  const std::string id = d.make();
  const Deadline soon = after(std::chrono::seconds(10));
  net::Stream stream = d.run(net::Stream::connect_tcp("127.0.0.1", d.port, soon)).value();
  EXPECT_FALSE(
      d.run(net::WebSocket::connect(std::move(stream), "localhost",
                                    "/sandboxes/" + id + "/proxy/8080/ws", net::Headers(), soon)));
}

TEST(Gateway, CanBeOpenedToWhoeverKnowsAnId) {
  TestDaemon d({.gateway_key_required = false});
  const std::string id = d.make();
  const net::Headers none{{"X-API-Key", "none"}};
  EXPECT_EQ(d.call("GET", "/sandboxes/" + id + "/proxy/8080/", "", none).status, 200);
  EXPECT_EQ(d.call("GET", "/api/v1/sandboxes/" + id, "", none).status, 401);
}

TEST(Gateway, ConnectionsInsideAreReused) {
  TestDaemon d;
  const std::string id = d.make();
  net::ClientConnection connection = d.dial();
  for (int i = 0; i < 5; ++i) {
    d.exchange(connection, "GET", "/sandboxes/" + id + "/proxy/8080/", "", {{"X-API-Key", d.key}});
  }
  EXPECT_EQ(d.program.connections(), 1U);
}

}  // namespace
}  // namespace glovebox::api::native
