#include "api/native/native.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/together/test_daemon.h"
#include "base/base64.h"

namespace glovebox::api::native {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kNobody = "sb-aaaaaaaaaaaaaaaaaaaa";

// --- who may ask ---

TEST(Auth, OverTcpAKeyIsNeeded) {
  TestDaemon d;
  const net::Response none = d.call("GET", "/api/v1/sandboxes", "", {{"X-API-Key", "none"}});
  EXPECT_EQ(none.status, 401);
  EXPECT_THAT(none.body, HasSubstr(R"("code":"unauthorized")"));
  EXPECT_THAT(none.headers.get("WWW-Authenticate"), StartsWith("Bearer"));
  EXPECT_FALSE(none.headers.get("X-Request-ID").empty());

  for (const net::Header& wrong :
       std::vector<net::Header>{{"X-API-Key", ""},
                                {"X-API-Key", "gbx_wrong"},
                                {"X-API-Key", d.key + "x"},
                                {"X-API-Key", d.key.substr(0, d.key.size() - 1)},
                                {"Authorization", "Bearer"},
                                {"Authorization", "Bearer "},
                                {"Authorization", "Basic " + d.key},
                                {"Authorization", d.key}}) {
    EXPECT_EQ(d.call("GET", "/api/v1/sandboxes", "", {wrong}).status, 401)
        << wrong.name << ": " << wrong.value;
  }
  EXPECT_EQ(d.call("GET", "/api/v1/sandboxes", "", {{"X-API-Key", d.key}}).status, 200);
  EXPECT_EQ(d.call("GET", "/api/v1/sandboxes", "", {{"Authorization", "bearer  " + d.key}}).status,
            200);
}

TEST(Auth, ARevokedKeyOpensNothing) {
  TestDaemon d;
  const auto second = d.keys.create("second").value();
  EXPECT_EQ(d.call("GET", "/api/v1/sandboxes", "", {{"X-API-Key", second.secret}}).status, 200);
  ASSERT_TRUE(d.keys.revoke(second.key.id));
  EXPECT_EQ(d.call("GET", "/api/v1/sandboxes", "", {{"X-API-Key", second.secret}}).status, 401);
}

TEST(Auth, WithoutAKeyNothingIsLearned) {
  TestDaemon d;
  const std::string id = d.make();
  const net::Headers none{{"X-API-Key", "none"}, {"X-Request-ID", "r1"}};
  const std::string expected = d.call("GET", "/api/v1/sandboxes/" + id, "", none).body;
  for (const std::string& target :
       {std::string("/api/v1/sandboxes/") + kNobody, std::string("/nope"),
        "/api/v1/sandboxes/" + id + "/nope", "/sandboxes/" + id + "/proxy/8080/",
        std::string("/sandboxes/") + kNobody + "/proxy/8080/", std::string("/sandboxes/x/proxy/y/"),
        std::string("/metrics")}) {
    const net::Response reply = d.call("GET", target, "", none);
    EXPECT_EQ(reply.status, 401) << target;
    EXPECT_EQ(reply.body, expected) << target;
  }
  EXPECT_EQ(d.call("DELETE", "/api/v1/sandboxes", "", none).status, 401);
}

TEST(Auth, OverTheSocketTheUserDecides) {
  TestDaemon d;
  net::ClientConnection connection = d.dial_socket();
  EXPECT_EQ(d.exchange(connection, "GET", "/api/v1/sandboxes", "", {}).status, 200);
}

TEST(Auth, AUserWhoIsNotListedIsDenied) {
  TestDaemon d({.socket_uids = {4242}});
  net::RequestHead head;
  net::Peer peer{.local = true, .uid = 4242, .address = "unix"};
  EXPECT_TRUE(d.auth.check(head, peer));
  peer.uid = 4243;
  const auto refused = d.auth.check(head, peer);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::kDenied);
  // A key does not help: the socket is the kernel's word.
  head.headers.add("X-API-Key", d.key);
  EXPECT_FALSE(d.auth.check(head, peer));
}

// --- the service's own routes ---

TEST(Service, HealthReadyAndDescriptionNeedNoKey) {
  TestDaemon d;
  const net::Headers none{{"X-API-Key", "none"}};
  EXPECT_EQ(d.call("GET", "/health", "", none).body, "{\"status\":\"ok\"}\n");
  const net::Response ready = d.call("GET", "/ready", "", none);
  EXPECT_EQ(ready.status, 200);
  EXPECT_THAT(ready.body, HasSubstr(R"({"name":"sandboxes","ok":true,"detail":""})"));
  EXPECT_THAT(d.call("GET", "/openapi.yaml", "", none).body, StartsWith("openapi: 3.1.0"));
  EXPECT_EQ(d.call("GET", "/health", "", none).headers.get("Content-Type"), "application/json");
}

TEST(Service, MetricsCountRequestsByRoute) {
  TestDaemon d;
  d.call("GET", std::string("/api/v1/sandboxes/") + kNobody);
  d.call("GET", "/nope?secret=1");
  const net::Response metrics = d.call("GET", "/metrics");
  EXPECT_EQ(metrics.status, 200);
  EXPECT_THAT(metrics.body,
              HasSubstr("glovebox_http_requests_total{route=\"GET /api/v1/sandboxes/{id}\","
                        "status=\"4xx\"} 1\n"));
  EXPECT_THAT(metrics.body,
              HasSubstr("glovebox_http_requests_total{route=\"unmatched\",status=\"4xx\"} 1\n"));
  EXPECT_THAT(metrics.body, Not(HasSubstr("secret")));
}

TEST(Service, UnknownRoutesAndMethodsAreTold) {
  TestDaemon d;
  const net::Response unknown = d.call("GET", "/api/v1/nope");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_THAT(unknown.body, HasSubstr("\"not_found\""));
  const net::Response method = d.call("PATCH", "/api/v1/sandboxes");
  EXPECT_EQ(method.status, 405);
  EXPECT_EQ(method.headers.get("Allow"), "POST, GET, HEAD");
  EXPECT_EQ(d.call("HEAD", "/health").status, 200);
}

TEST(Service, TheRequestIdComesBack) {
  TestDaemon d;
  EXPECT_EQ(d.call("GET", "/health", "", {{"X-Request-ID", "abc-1"}}).headers.get("X-Request-ID"),
            "abc-1");
}

// --- sandboxes ---

TEST(Sandboxes, LiveFromCreateToDelete) {
  TestDaemon d;
  const net::Response made =
      d.call("POST", "/api/v1/sandboxes", R"({"name":"n","labels":{"a":"1"},"timeout_s":60})");
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_THAT(made.body, HasSubstr(R"("state":"running")"));
  const std::string path(made.headers.get("Location"));
  EXPECT_THAT(path, StartsWith("/api/v1/sandboxes/sb-"));

  EXPECT_EQ(d.call("GET", path).body, made.body);
  EXPECT_THAT(d.call("GET", "/api/v1/sandboxes?label=a%3D1&state=running").body,
              HasSubstr(path.substr(path.rfind('/') + 1)));
  EXPECT_EQ(d.call("GET", "/api/v1/sandboxes?label=a=2").body,
            "{\"sandboxes\":[],\"next_cursor\":null}\n");

  EXPECT_EQ(d.call("POST", path + "/extend", R"({"timeout_s":600})").status, 200);
  EXPECT_THAT(d.call("GET", path + "/metrics").body, HasSubstr(R"("pids":2)"));
  EXPECT_THAT(d.call("POST", path + "/pause").body, HasSubstr(R"("state":"paused")"));
  EXPECT_THAT(d.call("POST", path + "/resume", "{}").body, HasSubstr(R"("state":"running")"));

  EXPECT_EQ(d.call("DELETE", path).status, 204);
  EXPECT_EQ(d.call("DELETE", path).status, 204);
  EXPECT_THAT(d.call("GET", path).body, HasSubstr(R"("state":"stopped")"));
  EXPECT_EQ(d.call("POST", path + "/pause").status, 409);
}

TEST(Sandboxes, AnIdempotencyKeyGivesTheSameOne) {
  TestDaemon d;
  const net::Headers headers{{"X-API-Key", d.key}, {"Idempotency-Key", "k1"}};
  const std::string first = d.call("POST", "/api/v1/sandboxes", "{}", headers).body;
  EXPECT_EQ(d.call("POST", "/api/v1/sandboxes", "{}", headers).body, first);
  EXPECT_EQ(d.call("POST", "/api/v1/sandboxes", R"({"name":"x"})", headers).status, 409);
  const net::Headers empty{{"X-API-Key", d.key}, {"Idempotency-Key", ""}};
  EXPECT_EQ(d.call("POST", "/api/v1/sandboxes", "{}", empty).status, 400);
}

struct BadRequest {
  const char* method;
  const char* target;  // ID stands for a running sandbox.
  const char* body;
  int status;
  const char* reply;
};

const BadRequest kBadRequests[] = {
    {"POST", "/api/v1/sandboxes", "{", 400, "body: not JSON"},
    {"POST", "/api/v1/sandboxes", R"({"a":1})", 400, "a: is not a known field"},
    {"POST", "/api/v1/sandboxes", R"({"name":"a","name":"b"})", 400, "has the field name twice"},
    {"POST", "/api/v1/sandboxes", R"({"timeout_s":0})", 400, "timeout_s"},
    {"POST", "/api/v1/sandboxes", R"({"template":"../etc"})", 400, "template"},
    {"POST", "/api/v1/sandboxes", R"({"isolation":"vm"})", 400, "isolation"},
    {"POST", "/api/v1/sandboxes", "\xFF", 400, "body: not JSON"},
    {"GET", "/api/v1/sandboxes?limit=0", "", 400, "limit: must be 1 to 1000"},
    {"GET", "/api/v1/sandboxes?nope=1", "", 400, "unknown parameter"},
    {"GET", "/api/v1/sandboxes?label=%zz", "", 400, "invalid"},
    {"GET", "/api/v1/sandboxes?cursor=nonsense", "", 400, "cursor"},
    {"POST", "/api/v1/sandboxes/ID/extend", "", 400, "body: not JSON"},
    {"POST", "/api/v1/sandboxes/ID/extend", R"({"timeout_s":1e9})", 400, "timeout_s"},
    {"POST", "/api/v1/sandboxes/ID/pause", R"({"a":1})", 400, "a: is not a known field"},
    {"GET", "/api/v1/sandboxes/sb-aaaaaaaaaaaaaaaaaaaa", "", 404, "not_found"},
    {"GET", "/api/v1/sandboxes/nonsense", "", 404, "no such sandbox"},
    {"POST", "/api/v1/sandboxes/nonsense/exec", "{}", 404, "no such sandbox"},
    {"POST", "/api/v1/sandboxes/sb-aaaaaaaaaaaaaaaaaaaa/exec", "{}", 404, "not_found"},
    {"DELETE", "/api/v1/sandboxes/sb-aaaaaaaaaaaaaaaaaaaa", "", 404, "not_found"},
};

TEST(Sandboxes, BadRequestsAreAnsweredWithWhatIsWrong) {
  TestDaemon d;
  const std::string id = d.make();
  for (const BadRequest& bad : kBadRequests) {
    std::string target = bad.target;
    if (const std::size_t at = target.find("ID"); at != std::string::npos) {
      target.replace(at, 2, id);
    }
    const net::Response reply = d.call(bad.method, target, bad.body);
    EXPECT_EQ(reply.status, bad.status) << target << " " << bad.body << ": " << reply.body;
    EXPECT_THAT(reply.body, HasSubstr(bad.reply)) << target;
    EXPECT_THAT(reply.body, StartsWith(R"({"code":")"));
  }
}

TEST(Sandboxes, AHugeBodyIs413) {
  TestDaemon d;
  const net::Response reply = d.call("POST", "/api/v1/sandboxes", std::string(5000, ' '));
  EXPECT_EQ(reply.status, 413);
  EXPECT_THAT(reply.body, HasSubstr("too_large"));
}

TEST(Sandboxes, ARuntimeThatIsDownIsUnavailable) {
  TestDaemon d;
  const std::string id = d.make();
  d.runtime.fake.set_down(true);
  const net::Response reply = d.call("GET", "/api/v1/sandboxes/" + id + "/metrics");
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.headers.get("Retry-After"), "1");
}

// --- the way to the agent ---

TEST(Agent, GetsTheRestOfThePathAndNoKeys) {
  TestDaemon d;
  const std::string id = d.make(R"({"env":{"A":"\"x"}})");
  std::optional<net::RequestHead> seen;
  std::string body;
  d.on_agent = [&](net::Exchange& e) -> Task<void> {
    seen = e.head();
    auto read = co_await e.read_whole_body(100);
    body = read ? *read : "";
    co_await TestDaemon::reply_text(e, 418, "teapot");
  };
  const net::Response reply =
      d.call("POST", "/api/v1/sandboxes/" + id + "/exec?a=%2Fb%20c", "the body",
             {{"X-API-Key", d.key},
              {"Authorization", "Bearer " + d.key},
              {"Glovebox-Default-Env", "Zm9yZ2Vk"},
              {"glovebox-anything", "x"},
              {"X-Request-ID", "r-7"},
              {"X-Other", "kept"}});
  EXPECT_EQ(reply.status, 418);
  EXPECT_EQ(reply.body, "teapot");
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->method, "POST");
  EXPECT_EQ(seen->target, "/v1/exec?a=%2Fb%20c");
  EXPECT_EQ(body, "the body");
  EXPECT_FALSE(seen->headers.has("X-API-Key"));
  EXPECT_FALSE(seen->headers.has("Authorization"));
  EXPECT_FALSE(seen->headers.has("Glovebox-Anything"));
  EXPECT_EQ(seen->headers.get("X-Other"), "kept");
  EXPECT_EQ(seen->headers.get("X-Request-ID"), "r-7");
  EXPECT_EQ(from_base64(seen->headers.get("Glovebox-Default-Env")), R"({"A":"\"x"})");
}

TEST(Agent, OnlyTheListedRoutesGoIn) {
  TestDaemon d;
  const std::string id = d.make();
  int asked = 0;
  d.on_agent = [&](net::Exchange& e) {
    ++asked;
    return TestDaemon::reply_text(e, 200, "");
  };
  const std::string base = "/api/v1/sandboxes/" + id;
  for (const std::string& target :
       {base + "/nope",
        base + "/exec/",
        base + "//exec",
        base + "/./exec",
        base + "/../" + id + "/exec",
        base + "/%65xec",
        base + "/exec%2f",
        base + "/files%2Fstat",
        base + "%2Fexec",
        base + "%2F..%2F" + kNobody + "/exec",
        base + "%252f../exec",
        base + "..%5c/exec",
        base + ";/exec",
        "/api/v1/sandboxes/" + std::string(id).replace(0, 2, "SB") + "/exec",
        "//api/v1/sandboxes/" + id + "/exec",
        "/api/v1/x/../sandboxes/" + id + "/exec",
        "/api/v1/sandboxes/%73" + id.substr(1) + "/exec",
        "/API/v1/sandboxes/" + id + "/exec",
        base + "/processes//output",
        base + "/v1/exec"}) {
    const net::Response reply = d.call("POST", target, "{}");
    EXPECT_THAT(reply.status, ::testing::AnyOf(400, 404, 405)) << target;
  }
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(d.call("DELETE", base + "/exec").status, 405);
  EXPECT_EQ(d.call("GET", base + "/processes/12/output").status, 200);
  EXPECT_EQ(asked, 1);
}

TEST(Agent, TheStateIsCheckedFirst) {
  TestDaemon d;
  const std::string id = d.make();
  const std::string health = "/api/v1/sandboxes/" + id + "/health";
  EXPECT_EQ(d.call("GET", health).status, 200);
  d.call("POST", "/api/v1/sandboxes/" + id + "/pause");
  const net::Response paused = d.call("GET", health);
  EXPECT_EQ(paused.status, 409);
  EXPECT_THAT(paused.body, HasSubstr("paused"));
  d.call("POST", "/api/v1/sandboxes/" + id + "/resume");
  EXPECT_EQ(d.call("GET", health).status, 200);
  d.call("DELETE", "/api/v1/sandboxes/" + id);
  EXPECT_EQ(d.call("GET", health).status, 409);
  EXPECT_EQ(d.upstreams.size(), 0U);
}

TEST(Agent, ADeadOneIsUnavailable) {
  TestDaemon d;
  const std::string id = d.make();
  d.runtime.agent_path.clear();
  const net::Response reply = d.call("GET", "/api/v1/sandboxes/" + id + "/health");
  EXPECT_EQ(reply.status, 503);
  EXPECT_THAT(reply.body, HasSubstr("sandbox is not answering"));
  EXPECT_EQ(d.service.snapshot().streams_open, 0U);
}

TEST(Agent, OneThatHangsUpIsUnavailable) {
  TestDaemon d;
  const std::string id = d.make();
  d.on_agent = [](net::Exchange& e) -> Task<void> {
    e.abort();
    co_return;
  };
  const net::Response reply = d.call("POST", "/api/v1/sandboxes/" + id + "/exec", "{}");
  EXPECT_EQ(reply.status, 503);
  EXPECT_THAT(reply.body, HasSubstr("sandbox is not answering"));
}

TEST(Agent, EventsComeThroughAsTheyHappen) {
  TestDaemon d;
  const std::string id = d.make();
  Timer gate(d.io.get_executor(), Timer::time_point::max());
  d.on_agent = [&](net::Exchange& e) -> Task<void> {
    net::Headers headers{{"Content-Type", "text/event-stream"}};
    auto started = co_await e.start(200, std::move(headers), std::nullopt);
    auto first = co_await e.write("data: one\n\n");
    co_await gate.async_wait(use_result);
    auto second = co_await e.write("data: two\n\n");
    auto finished = co_await e.finish();
  };
  net::ClientConnection c = d.dial();
  const Deadline soon = after(std::chrono::seconds(10));
  const net::Headers headers{{"Host", "x"}, {"X-API-Key", d.key}};
  ASSERT_TRUE(d.run(c.send_head("GET", "/api/v1/sandboxes/" + id + "/processes/1/output", headers,
                                std::nullopt, false, soon)));
  const auto head = d.run(c.read_head(false, soon));
  ASSERT_TRUE(head);
  EXPECT_EQ(head.value().status, 200);
  char buffer[256];
  Result<std::size_t> n = d.run(c.read_body(buffer, soon));
  ASSERT_TRUE(n);
  EXPECT_EQ(std::string_view(buffer, *n), "data: one\n\n");
  EXPECT_EQ(d.service.snapshot().streams_open, 1U);  // In use, so not idle.

  gate.cancel();
  n = d.run(c.read_body(buffer, soon));
  ASSERT_TRUE(n);
  EXPECT_EQ(std::string_view(buffer, *n), "data: two\n\n");
  n = d.run(c.read_body(buffer, soon));
  ASSERT_TRUE(n);
  EXPECT_EQ(*n, 0U);
  d.until([&] { return d.service.snapshot().streams_open == 0; });
}

TEST(Agent, AStreamThatIsCutInsideIsCutOutsideToo) {
  TestDaemon d;
  const std::string id = d.make();
  d.on_agent = [](net::Exchange& e) -> Task<void> {
    net::Headers headers{{"Content-Type", "text/event-stream"}};
    auto started = co_await e.start(200, std::move(headers), std::nullopt);
    auto first = co_await e.write("data: one\n\n");
    e.abort();  // As when the sandbox is removed.
  };
  net::ClientConnection c = d.dial();
  const Deadline soon = after(std::chrono::seconds(10));
  const net::Headers headers{{"Host", "x"}, {"X-API-Key", d.key}};
  ASSERT_TRUE(d.run(c.send_head("GET", "/api/v1/sandboxes/" + id + "/processes/1/output", headers,
                                std::nullopt, false, soon)));
  const auto head = d.run(c.read_head(false, soon));
  ASSERT_TRUE(head);
  char buffer[256];
  Result<std::size_t> n = d.run(c.read_body(buffer, soon));
  while (n && *n > 0) n = d.run(c.read_body(buffer, soon));
  EXPECT_FALSE(n) << "a cut stream looked like a whole one";
  d.until([&] { return d.service.snapshot().streams_open == 0; });
}

TEST(Agent, AClientThatHangsUpEndsTheStreamInside) {
  TestDaemon d;
  const std::string id = d.make();
  bool gone = false;
  d.on_agent = [&](net::Exchange& e) -> Task<void> {
    net::Headers headers{{"Content-Type", "text/event-stream"}};
    auto started = co_await e.start(200, std::move(headers), std::nullopt);
    auto first = co_await e.write("data: one\n\n");
    co_await e.wait_client_gone();
    gone = true;
  };
  {
    net::ClientConnection c = d.dial();
    const Deadline soon = after(std::chrono::seconds(10));
    const net::Headers headers{{"Host", "x"}, {"X-API-Key", d.key}};
    ASSERT_TRUE(d.run(c.send_head("GET", "/api/v1/sandboxes/" + id + "/processes/1/output", headers,
                                  std::nullopt, false, soon)));
    ASSERT_TRUE(d.run(c.read_head(false, soon)));
  }
  d.until([&] { return gone; });
  d.until([&] { return d.service.snapshot().streams_open == 0; });
}

}  // namespace
}  // namespace glovebox::api::native
