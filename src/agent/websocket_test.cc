// One command over one WebSocket, end to end.

#include "net/websocket.h"

#include <boost/asio/io_context.hpp>
#include <exception>
#include <string>

#include "agent/agent_harness.h"
#include "async/coro.h"
#include "net/stream.h"

namespace glovebox::agent {
namespace {

using harness::AgentProcess;
using harness::member;
using harness::quote;

struct Talk {
  std::string first;                // The ExecRequest.
  std::vector<std::string> texts;   // Sent after the start event, in order.
  std::string binary;               // Sent before them.
  std::vector<std::string> events;  // What came, in order.
  std::string out;
  std::string err;
  std::string failure;
};

Task<Result<std::unique_ptr<net::WebSocket>>> open_socket(std::string path, Deadline deadline) {
  Result<net::Stream> stream = co_await net::Stream::connect_unix(std::move(path), deadline);
  if (!stream) co_return std::move(stream).error();
  net::Headers headers;
  Result<std::unique_ptr<net::WebSocket>> socket = co_await net::WebSocket::connect(
      std::move(*stream), "agent", "/v1/exec", std::move(headers), deadline);
  co_return socket;
}

Task<Result<void>> send_all(net::WebSocket& socket, const Talk& talk, Deadline deadline) {
  Result<void> sent;
  if (!talk.binary.empty()) sent = co_await socket.write_binary(talk.binary, deadline);
  for (const std::string& text : talk.texts) {
    if (sent) sent = co_await socket.write_text(text, deadline);
  }
  co_return sent;
}

Task<void> talk_to(std::string path, Talk& talk) {
  const Deadline deadline = after(std::chrono::seconds(20));
  Result<std::unique_ptr<net::WebSocket>> socket = co_await open_socket(path, deadline);
  if (!socket) {
    talk.failure = socket.error().text();
    co_return;
  }
  Result<void> sent = co_await (*socket)->write_text(talk.first, deadline);
  for (;;) {
    Result<net::WebSocket::Message> message = co_await (*socket)->read(deadline);
    if (!message) {
      talk.failure = message.error().text();
      co_return;
    }
    if (message->closed) co_return;
    if (message->binary) {
      (message->data.at(0) == 1 ? talk.out : talk.err) += message->data.substr(1);
      continue;
    }
    talk.events.push_back(message->data);
    if (member(message->data, "event") == "start") {
      sent = co_await send_all(**socket, talk, deadline);
    }
  }
}

void run(const AgentProcess& agent, Talk& talk) {
  boost::asio::io_context io(1);
  boost::asio::co_spawn(io, talk_to(agent.dir() + "/agent.sock", talk),
                        [](const std::exception_ptr&) {});
  io.run_for(std::chrono::seconds(25));
}

TEST(WebSocketExec, CarriesInputOutputAndTheEnd) {
  AgentProcess agent;
  Talk talk;
  talk.first = agent.request("cat; echo err >&2; exit 5", R"(,"stdin":true)");
  talk.binary = std::string("bin\0ary ", 8);
  talk.texts = {R"({"stdin":"text"})", R"({"close_stdin":true})"};
  run(agent, talk);
  EXPECT_EQ(talk.failure, "");
  EXPECT_EQ(talk.out, std::string("bin\0ary text", 12));
  EXPECT_EQ(talk.err, "err\n");
  ASSERT_EQ(talk.events.size(), 2U);
  EXPECT_EQ(member(talk.events[1], "event"), "exit");
  EXPECT_EQ(member(talk.events[1], "exit_code"), "5");
}

TEST(WebSocketExec, DrivesATerminal) {
  AgentProcess agent;
  Talk talk;
  talk.first =
      agent.request("while [ \"$(stty size)\" != '33 90' ]; do sleep .05; done; stty size; exit 3",
                    R"(,"pty":{"cols":80,"rows":24})");
  talk.texts = {R"({"resize":{"cols":0,"rows":1}})", R"({"nonsense":1})",
                R"({"resize":{"cols":90,"rows":33}})"};
  run(agent, talk);
  EXPECT_EQ(talk.failure, "");
  EXPECT_NE(talk.out.find("33 90"), std::string::npos) << talk.out;
  ASSERT_EQ(talk.events.size(), 4U);
  EXPECT_EQ(member(talk.events[1], "event"), "error");
  EXPECT_EQ(member(talk.events[1], "code"), "invalid");
  EXPECT_EQ(member(talk.events[2], "event"), "error");
  EXPECT_EQ(member(talk.events[3], "exit_code"), "3");
}

TEST(WebSocketExec, SignalsTheCommand) {
  AgentProcess agent;
  Talk talk;
  talk.first = agent.request("exec sleep 30");
  talk.texts = {R"({"signal":"SIGTERM"})"};
  run(agent, talk);
  ASSERT_EQ(talk.events.size(), 2U);
  EXPECT_EQ(member(talk.events[1], "exit_code"), "143");
}

TEST(WebSocketExec, TellsWhyItCannotStart) {
  AgentProcess agent;
  Talk talk;
  talk.first = R"({"cmd":"true","user":"no_such_user_x"})";
  run(agent, talk);
  ASSERT_EQ(talk.events.size(), 1U);
  EXPECT_EQ(member(talk.events[0], "event"), "error");
  EXPECT_EQ(member(talk.events[0], "code"), "invalid");
}

}  // namespace
}  // namespace glovebox::agent
