#include "net/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

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

}  // namespace
}  // namespace glovebox::net
