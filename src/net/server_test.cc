#include "net/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <future>
#include <stdexcept>

#include "async/coro.h"
#include "net/address.h"
#include "net/loop.h"
#include "net/test_util.h"

namespace glovebox::net {
namespace {

using test::exchange;
using test::RawClient;
using test::TestServer;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// "METHOD TARGET BODY"
Task<void> echo(Exchange& exchange) {
  Result<std::string> body = co_await exchange.read_whole_body(1 << 20);
  Response reply;
  if (!body) {
    reply.status = body.error().code() == Errc::kExhausted ? 413 : 400;
    reply.headers.add("Content-Type", "application/json");
    reply.body = "{\"code\":\"invalid\",\"message\":\"" + body.error().text() + "\"}";
  } else {
    reply.body = exchange.head().method + " " + exchange.head().target + " " + *body;
  }
  const Result<void> sent = co_await exchange.respond(std::move(reply));
  (void)sent;
}

Task<void> ignore_body(Exchange& exchange) {
  Response reply;
  reply.body = "ignored";
  const Result<void> sent = co_await exchange.respond(std::move(reply));
  (void)sent;
}

std::string get(std::string_view target) {
  return "GET " + std::string(target) + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
}

struct Vector {
  const char* name;
  std::string request;
  int status;
};

class RequestVectors : public ::testing::TestWithParam<Vector> {};

TEST_P(RequestVectors, AreAnsweredAsTheyDeserve) {
  TestServer server(echo);
  const std::string reply = exchange(server.port(), GetParam().request);
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 " + std::to_string(GetParam().status) + " "));
  EXPECT_THAT(reply, HasSubstr("X-Request-ID: "));
  if (GetParam().status < 300) return;
  EXPECT_THAT(reply, HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_THAT(reply, HasSubstr("Content-Type: application/json"));
  EXPECT_THAT(reply, HasSubstr("{\"code\":\""));
  // One reply only: nothing of a refused request is taken for another.
  EXPECT_EQ(reply.find("HTTP/1.1", 1), std::string::npos) << reply;
}

std::string post(std::string_view headers, std::string_view body) {
  return "POST /p HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + std::string(headers) + "\r\n" +
         std::string(body);
}

const Vector kVectors[] = {
    {"PlainGet", get("/a?b=c"), 200},
    {"Http10WithoutHost", "GET / HTTP/1.0\r\n\r\n", 200},
    {"AbsoluteForm", "GET http://h:1/x HTTP/1.1\r\nHost: y\r\nConnection: close\r\n\r\n", 200},
    {"AsteriskForm", "OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 200},
    {"EmptyLinesBefore", "\r\n\r\n" + get("/"), 200},
    {"Length", post("Content-Length: 3\r\n", "abc"), 200},
    {"Chunked", post("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n"), 200},
    {"ChunkedInCapitals", post("Transfer-Encoding: CHUNKED\r\n", "0\r\n\r\n"), 200},
    {"ChunkedWithTrailers", post("Transfer-Encoding: chunked\r\n", "0\r\nA: b\r\n\r\n"), 200},

    {"XChunked", post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"), 400},
    {"ChunkedIdentity", post("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n"), 400},
    {"GzipChunked", post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), 400},
    {"ChunkedTwice",
     post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), 400},
    {"ChunkedAndIdentityFields",
     post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n"), 400},
    {"EmptyTransferEncoding", post("Transfer-Encoding: \r\n", "0\r\n\r\n"), 400},
    {"VerticalTabChunked", post("Transfer-Encoding: \vchunked\r\n", "0\r\n\r\n"), 400},
    {"TransferEncodingInHttp10",
     "POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
    {"LengthThenEncoding", post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
     400},
    {"EncodingThenLength", post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"),
     400},
    {"LengthList", post("Content-Length: 4, 4\r\n", "abcd"), 400},
    {"LengthTwice", post("Content-Length: 4\r\nContent-Length: 4\r\n", "abcd"), 400},
    {"LengthsDiffer", post("Content-Length: 4\r\nContent-Length: 5\r\n", "abcd"), 400},
    {"LengthWithPlus", post("Content-Length: +4\r\n", "abcd"), 400},
    {"LengthWithMinus", post("Content-Length: -4\r\n", "abcd"), 400},
    {"LengthInHex", post("Content-Length: 0x4\r\n", "abcd"), 400},
    {"LengthEmpty", post("Content-Length: \r\n", ""), 400},
    {"LengthOverflows", post("Content-Length: 18446744073709551617\r\n", "a"), 400},
    {"FoldedHeader", post("A: b\r\n c: d\r\n", ""), 400},
    {"FoldedByTab", post("A: b\r\n\tc\r\n", ""), 400},
    {"FoldedFirstHeader", "GET / HTTP/1.1\r\n Host: x\r\n\r\n", 400},
    {"NoHost", "GET / HTTP/1.1\r\n\r\n", 400},
    {"TwoHosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400},
    {"HostWithSpace", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
    {"HostWithSlash", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
    {"HostWithAt", "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", 400},
    {"BareLineFeeds", "GET / HTTP/1.1\nHost: x\n\n", 400},
    {"OneBareLineFeed", "GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n", 400},
    {"SpaceBeforeColon", post("A : b\r\n", ""), 400},
    {"NulInValue", post(std::string("A: b\0c\r\n", 8), ""), 400},
    {"CarriageReturnInValue", post("A: b\rc\r\n", ""), 400},
    {"NoColon", post("Abc\r\n", ""), 400},
    {"ControlInTarget", "GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"HighByteInTarget", "GET /\xc3\xa9 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"FragmentInTarget", "GET /a#b HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"AuthorityForm", "GET a.b:80 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"AsteriskForGet", "GET * HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"AbsoluteFormWithUser", "GET http://a@b/ HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"Http20", "GET / HTTP/2.0\r\nHost: x\r\n\r\n", 400},
    {"Http12", "GET / HTTP/1.2\r\nHost: x\r\n\r\n", 400},
    {"Http09", "GET /\r\n\r\n", 400},
    {"TwoSpaces", "GET  / HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"NoMethod", " / HTTP/1.1\r\nHost: x\r\n\r\n", 400},
    {"Tls", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 15), 400},
    {"Connect", "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", 501},
    {"UnknownExpectation", post("Expect: miracles\r\n", ""), 417},
    {"BadChunkSize", post("Transfer-Encoding: chunked\r\n", "x\r\nabc\r\n0\r\n\r\n"), 400},
    {"NegativeChunkSize", post("Transfer-Encoding: chunked\r\n", "-3\r\nabc\r\n0\r\n\r\n"), 400},
    {"ChunkSizeOverflows",
     post("Transfer-Encoding: chunked\r\n", "10000000000000000\r\nabc\r\n0\r\n\r\n"), 400},
    {"ChunkWithoutEnd", post("Transfer-Encoding: chunked\r\n", "3\r\nabcX0\r\n\r\n"), 400},
    {"ChunkWithBareLineFeed", post("Transfer-Encoding: chunked\r\n", "3\nabc\r\n0\r\n\r\n"), 400},
};

INSTANTIATE_TEST_SUITE_P(All, RequestVectors, ::testing::ValuesIn(kVectors),
                         [](const auto& c) { return std::string(c.param.name); });

TEST(Server, AnswersPipelinedRequestsInOrder) {
  TestServer server(echo);
  RawClient client(server.port());
  std::string requests;
  for (int i = 0; i < 200; ++i) {
    requests += "POST /" + std::to_string(i) + " HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nb";
  }
  client.send(requests);
  for (int i = 0; i < 200; ++i) {
    EXPECT_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 200 OK\r\n"));
    const std::string body = "POST /" + std::to_string(i) + " b";
    EXPECT_EQ(client.read_exactly(body.size()), body);
  }
}

TEST(Server, DropsABodyThatTheHandlerIgnored) {
  TestServer server(ignore_body);
  RawClient client(server.port());
  const std::string body(200 << 10, 'x');
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) +
              "\r\n\r\n" + body + get("/next"));
  const std::string replies = client.read_all();
  EXPECT_THAT(replies, StartsWith("HTTP/1.1 200 OK"));
  EXPECT_THAT(replies.substr(20), HasSubstr("HTTP/1.1 200 OK"));
}

TEST(Server, ClosesAfterALongBodyThatTheHandlerIgnoredAndTheReplyArrives) {
  TestServer server(ignore_body);
  RawClient client(server.port());
  const std::string body(512 << 10, 'x');
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) +
              "\r\n\r\n" + body);
  const std::string reply = client.read_all();
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 OK"));
  EXPECT_THAT(reply, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(reply, EndsWith("ignored"));
  EXPECT_FALSE(client.reset());
}

TEST(Server, AsksForABodyOnlyWhenTheHandlerWantsIt) {
  const std::string request =
      "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
  {
    TestServer server(echo);
    RawClient client(server.port());
    client.send(request);
    EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("ab");
    EXPECT_THAT(client.read_until(" ab"), EndsWith("POST / ab"));
  }
  TestServer server(ignore_body);
  RawClient client(server.port());
  client.send(request);
  const std::string reply = client.read_all();
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 OK"));
  EXPECT_THAT(reply, HasSubstr("Connection: close\r\n"));
}

TEST(Server, AnswersHeadWithoutBody) {
  TestServer server(ignore_body);
  RawClient client(server.port());
  client.send("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n" + get("/"));
  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("Content-Length: 7\r\n"));
  EXPECT_THAT(client.read_until("\r\n"), StartsWith("HTTP/1.1 200 OK"));
}

TEST(Server, BoundsTheHead) {
  TestServer server(echo);
  const std::string fits =
      "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nA: " + std::string(60000, 'x') +
      "\r\n\r\n";
  EXPECT_THAT(exchange(server.port(), fits), StartsWith("HTTP/1.1 200 "));
  const std::string huge =
      "GET / HTTP/1.1\r\nHost: x\r\nA: " + std::string(100000, 'x') + "\r\n\r\n";
  EXPECT_THAT(exchange(server.port(), huge), StartsWith("HTTP/1.1 431 "));
  const std::string endless = "GET /" + std::string(100000, 'x');
  EXPECT_THAT(exchange(server.port(), endless), StartsWith("HTTP/1.1 431 "));
  std::string many = "GET / HTTP/1.1\r\nHost: x\r\n";
  for (int i = 0; i < 300; ++i) many += "A: b\r\n";
  EXPECT_THAT(exchange(server.port(), many + "\r\n"), StartsWith("HTTP/1.1 431 "));
}

TEST(Server, GivesUpOnASlowHead) {
  ServerLimits limits;
  limits.head_timeout = std::chrono::seconds(1);
  TestServer server(echo, limits);
  RawClient client(server.port());
  client.send("GET / HT");
  const std::string reply = client.read_all();
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 408 "));
  EXPECT_THAT(reply, HasSubstr("\"code\":\"timeout\""));
}

TEST(Server, ClosesAConnectionThatIsIdleForTooLong) {
  ServerLimits limits;
  limits.idle = std::chrono::seconds(1);
  TestServer server(echo, limits);
  RawClient silent(server.port());
  EXPECT_EQ(silent.read_all(), "");
}

TEST(Server, GivesUpOnASlowBody) {
  ServerLimits limits;
  limits.body_idle = std::chrono::seconds(1);
  TestServer server(echo, limits);
  RawClient client(server.port());
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_THAT(client.read_all(), HasSubstr("timed out"));
}

TEST(Server, AcceptsARequestByteByByte) {
  TestServer server(echo);
  RawClient client(server.port());
  for (const std::string& body :
       {std::string("0\r\n\r\n"), std::string("2\r\nab\r\n0\r\nT: t\r\n\r\n")}) {
    const std::string request =
        "POST /slow HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + body;
    for (const char c : request) client.send(std::string_view(&c, 1));
    const std::string answer = body.size() == 5 ? "POST /slow " : "POST /slow ab";
    EXPECT_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
    EXPECT_EQ(client.read_exactly(answer.size()), answer);
  }
}

TEST(Server, AnswersAClientThatHasSentItsLast) {
  TestServer server(echo);
  RawClient client(server.port());
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab");
  client.shutdown_write();
  EXPECT_THAT(client.read_all(), EndsWith("POST / ab"));
}

TEST(Server, KeepsTheRequestIdOfTheClientIfItIsSound) {
  TestServer server(ignore_body);
  const auto reply_to = [&](const std::string& id) {
    return exchange(
        server.port(),
        "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Request-ID: " + id + "\r\n\r\n");
  };
  EXPECT_THAT(reply_to("aZ0._-"), HasSubstr("X-Request-ID: aZ0._-\r\n"));
  EXPECT_THAT(reply_to("a b"), Not(HasSubstr("a b")));
  EXPECT_THAT(reply_to("<x>"), Not(HasSubstr("<x>")));
  EXPECT_THAT(reply_to(std::string(129, 'a')), Not(HasSubstr(std::string(129, 'a'))));
}

TEST(Server, TurnsAwayOneConnectionTooMany) {
  ServerLimits limits;
  limits.connections_max = 2;
  TestServer server(echo, limits);
  RawClient first(server.port());
  RawClient second(server.port());
  first.send(get("/").substr(0, 5));
  second.send(get("/").substr(0, 5));
  while (server.connections() < 2) continue;
  RawClient third(server.port());
  EXPECT_THAT(third.read_all(), StartsWith("HTTP/1.1 503 "));
  first.close();
  while (server.connections() > 1) continue;
  EXPECT_THAT(exchange(server.port(), get("/")), StartsWith("HTTP/1.1 200 "));
}

// What the handler makes of its reply, and what the client gets.
struct StreamCase {
  const char* name;
  std::string request;
  std::optional<std::uint64_t> length;
  bool finish;
  const char* ending;
  bool whole;
};

class StreamedReplies : public ::testing::TestWithParam<StreamCase> {};

TEST_P(StreamedReplies, AreFramed) {
  TestServer server([](Exchange& exchange) -> Task<void> {
    Headers headers{{"Content-Type", "text/plain"}, {"Content-Length", "999"}};
    Result<void> done = co_await exchange.start(200, std::move(headers), GetParam().length);
    if (done) done = co_await exchange.write("ab");
    if (done) done = co_await exchange.write("");
    if (done) done = co_await exchange.write("cd");
    if (done && GetParam().finish) done = co_await exchange.finish();
  });
  RawClient client(server.port());
  client.send(GetParam().request);
  if (GetParam().whole) client.shutdown_write();
  const std::string reply = client.read_all();
  EXPECT_THAT(reply, Not(HasSubstr("Content-Length: 999")));
  EXPECT_THAT(reply, Not(HasSubstr("<timeout>")));
  EXPECT_THAT(reply, EndsWith(GetParam().ending));
}

const std::string kGet11 = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
INSTANTIATE_TEST_SUITE_P(
    All, StreamedReplies,
    ::testing::Values(StreamCase{"Chunked", kGet11, std::nullopt, true,
                                 "\r\n\r\n2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n", true},
                      StreamCase{"Length", kGet11, 4, true, "\r\n\r\nabcd", true},
                      StreamCase{"Head", "HEAD / HTTP/1.1\r\nHost: x\r\n\r\n", std::nullopt, true,
                                 "\r\n\r\n", true},
                      StreamCase{"Http10", "GET / HTTP/1.0\r\n\r\n", std::nullopt, true,
                                 "\r\n\r\nabcd", true},
                      StreamCase{"NotFinished", kGet11, std::nullopt, false, "2\r\ncd\r\n", false},
                      StreamCase{"TooShort", kGet11, 5, true, "abcd", false},
                      StreamCase{"TooLong", kGet11, 3, true, "ab", false}),
    [](const auto& c) { return std::string(c.param.name); });

TEST(Server, ResetsACutReplyThatHasNoOtherEnd) {
  TestServer server([](Exchange& exchange) -> Task<void> {
    Headers none;
    Result<void> done = co_await exchange.start(200, std::move(none), std::nullopt);
    if (done) done = co_await exchange.write("ab");
    exchange.abort();
  });
  RawClient client(server.port());
  client.send("GET / HTTP/1.0\r\n\r\n");
  client.read_all();
  EXPECT_TRUE(client.reset());
}

TEST(Server, AnswersForAHandlerThatDidNot) {
  TestServer silent([](Exchange&) -> Task<void> { co_return; });
  EXPECT_THAT(exchange(silent.port(), get("/")), StartsWith("HTTP/1.1 500 "));
  TestServer throwing([](Exchange&) -> Task<void> {
    throw std::runtime_error("secret");
    co_return;
  });
  const std::string reply = exchange(throwing.port(), get("/"));
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(reply, Not(HasSubstr("secret")));
}

TEST(Server, DoesNotLetAHeaderSplitTheReply) {
  TestServer server([](Exchange& exchange) -> Task<void> {
    Response reply;
    reply.headers.add("A", "b\r\nSet-Cookie: c");
    const Result<void> sent = co_await exchange.respond(std::move(reply));
    EXPECT_FALSE(sent);
  });
  const std::string reply = exchange(server.port(), get("/"));
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(reply, Not(HasSubstr("Set-Cookie")));
}

TEST(Server, TellsTheHandlerThatTheClientHungUp) {
  std::promise<void> begun;
  std::promise<void> gone;
  TestServer server([&](Exchange& exchange) -> Task<void> {
    Headers none;
    const Result<void> started = co_await exchange.start(200, std::move(none), std::nullopt);
    EXPECT_TRUE(started);
    EXPECT_FALSE(exchange.client_gone());
    begun.set_value();
    co_await exchange.wait_client_gone();
    EXPECT_TRUE(exchange.client_gone());
    gone.set_value();
  });
  RawClient client(server.port());
  client.send(kGet11);
  begun.get_future().wait();
  client.close();
  EXPECT_EQ(gone.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
}

TEST(Server, ListensOnAUnixSocketAndKnowsThePeer) {
  const std::string path = ::testing::TempDir() + "net_server_test_" + std::to_string(::getpid());
  TestServer server([](Exchange& exchange) -> Task<void> {
    Response reply;
    reply.body = exchange.peer().address + " " + std::to_string(exchange.peer().local) + " " +
                 std::to_string(exchange.peer().uid);
    const Result<void> sent = co_await exchange.respond(std::move(reply));
    (void)sent;
  });
  for (int round = 0; round < 2; ++round) {  // The second finds a stale file.
    if (round == 0) {
      UniqueFd stale(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
      Result<SocketAddress> address = SocketAddress::local(path);
      ASSERT_TRUE(address);
      ASSERT_EQ(::bind(stale.get(), address->get(), address->size()), 0);
      continue;
    }
    server.run([&](Server& s) {
      const Result<void> listening = s.listen_unix(path, 0600);
      EXPECT_TRUE(listening) << listening.error().text();
      const Result<void> twice = s.listen_unix(path, 0600);
      EXPECT_FALSE(twice);
      if (!twice) EXPECT_EQ(twice.error().code(), Errc::kConflict);
    });
  }
  struct ::stat st{};
  ASSERT_EQ(::stat(path.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 0600U);

  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Result<SocketAddress> address = SocketAddress::local(path);
  ASSERT_EQ(::connect(fd.get(), address->get(), address->size()), 0);
  RawClient client(std::move(fd));
  client.send(get("/"));
  EXPECT_THAT(client.read_all(), EndsWith("unix 1 " + std::to_string(::getuid())));

  server.run_task([](Server& s) { return s.close(after(std::chrono::seconds(1))); });
  EXPECT_NE(::stat(path.c_str(), &st), 0) << "close leaves the socket's file";
}

TEST(Server, GivesASlowReaderTimeAsLongAsItReads) {
  ServerLimits limits;
  limits.body_idle = std::chrono::seconds(1);
  const std::string body(8 << 20, 'x');
  TestServer server(
      [&](Exchange& exchange) -> Task<void> {
        Response reply;
        reply.body = body;
        const Result<void> sent = co_await exchange.respond(std::move(reply));
        (void)sent;
      },
      limits);
  RawClient client(server.port());
  client.send(kGet11);
  client.read_until("\r\n\r\n");
  const auto begin = Clock::now();
  std::size_t got = 0;
  // Longer in all than the limit for one pause.
  for (; Clock::now() - begin < std::chrono::milliseconds(1500);) {
    got += client.read_exactly(256 << 10).size();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  got += client.read_exactly(body.size() - got).size();
  EXPECT_EQ(got, body.size());
}

TEST(Server, GivesUpOnAClientThatDoesNotRead) {
  ServerLimits limits;
  limits.body_idle = std::chrono::seconds(1);
  std::promise<Errc> ended;
  TestServer server(
      [&](Exchange& exchange) -> Task<void> {
        Response reply;
        reply.body.assign(64 << 20, 'x');
        const Result<void> sent = co_await exchange.respond(std::move(reply));
        ended.set_value(sent ? Errc::kInternal : sent.error().code());
      },
      limits);
  RawClient client(server.port());
  client.send(kGet11);
  EXPECT_EQ(ended.get_future().get(), Errc::kTimeout);
}

TEST(Server, ClosesGracefullyAndCutsWhatDoesNotEnd) {
  std::promise<void> begun;
  std::atomic<int> running = 0;
  TestServer server([&](Exchange& exchange) -> Task<void> {
    ++running;
    if (exchange.head().target == "/forever") {
      begun.set_value();
      co_await exchange.wait_client_gone();
    }
    --running;
    co_await ignore_body(exchange);
  });
  RawClient idle(server.port());
  idle.send(kGet11);
  idle.read_until("ignored");
  RawClient busy(server.port());
  busy.send("GET /forever HTTP/1.1\r\nHost: x\r\n\r\n");
  begun.get_future().wait();
  server.run_task([](Server& s) { return s.close(after(std::chrono::milliseconds(100))); });
  EXPECT_EQ(idle.read_all(), "");
  EXPECT_THAT(busy.read_all(), Not(HasSubstr("<timeout>")));
  EXPECT_EQ(server.connections(), 0U);
}

}  // namespace
}  // namespace glovebox::net
