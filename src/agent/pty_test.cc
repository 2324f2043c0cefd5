// Terminals, end to end.

#include <gtest/gtest.h>

#include "agent/agent_harness.h"

namespace glovebox::agent {
namespace {

using harness::AgentProcess;
using harness::Connection;
using harness::Event;
using harness::eventually;
using harness::member;
using harness::Reply;

// Reads events until `text` has been printed, or the end.
std::string read_until(Connection& stream, const std::string& text) {
  std::string all;
  while (all.find(text) == std::string::npos) {
    const Event event = stream.next_event();
    if (event.name.empty()) break;
    if (event.name == "stdout") all += member(event.data, "text");
  }
  return all;
}

struct Terminal {
  explicit Terminal(AgentProcess& owner, const std::string& line)
      : agent(owner),
        pid(owner.start(line, R"(,"pty":{"cols":100,"rows":30})")),
        output(owner.follow(pid)) {}
  void type(const std::string& keys) {
    EXPECT_EQ(agent.call("POST", "/v1/processes/" + pid + "/stdin", keys).status, 204);
  }
  AgentProcess& agent;
  std::string pid;
  Connection output;
};

TEST(Pty, IsATerminalOfTheAskedSizeThatCanBeResized) {
  AgentProcess agent;
  Terminal terminal(agent,
                    "tty -s && stty size; trap 'stty size; exit' WINCH; echo ready; "
                    "while :; do sleep .05; done");
  EXPECT_NE(read_until(terminal.output, "ready").find("30 100"), std::string::npos);
  EXPECT_EQ(
      agent.call("POST", "/v1/processes/" + terminal.pid + "/resize", R"({"cols":120,"rows":40})")
          .status,
      204);
  EXPECT_NE(read_until(terminal.output, "40 120").find("40 120"), std::string::npos);
}

// C22
TEST(Pty, RefusesAbsurdSizes) {
  AgentProcess agent;
  Terminal terminal(agent, "sleep 20");
  for (const char* size :
       {R"({"cols":0,"rows":0})", R"({"cols":65535,"rows":65535})", R"({"cols":-1,"rows":1})",
        R"({"cols":1e9,"rows":1})", R"({"cols":80})", R"({"cols":"80","rows":24})"}) {
    EXPECT_EQ(agent.call("POST", "/v1/processes/" + terminal.pid + "/resize", size).status, 400)
        << size;
    EXPECT_EQ(agent.exec("true", std::string(R"(,"pty":)") + size).status == 400,
              std::string(size) != R"({"cols":80})")
        << size;
  }
  const std::string plain = agent.start("sleep 20");
  EXPECT_EQ(
      agent.call("POST", "/v1/processes/" + plain + "/resize", R"({"cols":80,"rows":24})").status,
      409);
}

// C05, C07
TEST(Pty, ItsInputCannotBeClosed) {
  AgentProcess agent;
  Terminal terminal(agent, "cat");
  const Reply reply = agent.call("POST", "/v1/processes/" + terminal.pid + "/stdin?close=1", "");
  EXPECT_EQ(reply.status, 400);
  terminal.type("hello\n\x04");
  EXPECT_NE(read_until(terminal.output, "hello\\r\\nhello").find("hello"), std::string::npos);
  EXPECT_EQ(terminal.output.next_event().name, "exit");
}

// C23
TEST(Pty, ControlCReachesTheForegroundJobOnly) {
  AgentProcess agent;
  Terminal terminal(agent, "exec bash --norc --noprofile -i");
  terminal.type("sleep 100 & sleep 200; echo after-$?\n");
  ASSERT_TRUE(eventually(
      [&] { return member(agent.exec("pgrep -fc '^sleep 20[0]'").body, "stdout") == "1\\n"; }));
  terminal.type("\x03");
  terminal.type("jobs; echo don''e\n");
  EXPECT_NE(read_until(terminal.output, "done").find("Running"), std::string::npos);
}

// C23
TEST(Pty, KillingTheSessionRemovesItsJobs) {
  AgentProcess agent;
  if (agent.cgroup().empty()) GTEST_SKIP() << "this host has no cgroup version 2";
  Terminal terminal(agent, "exec bash --norc --noprofile -i");
  terminal.type("sleep 101 & sleep 202\n");
  ASSERT_TRUE(eventually(
      [&] { return member(agent.exec("pgrep -fc '^sleep 20[2]'").body, "stdout") == "1\\n"; }));
  EXPECT_EQ(
      agent.call("POST", "/v1/processes/" + terminal.pid + "/signal", R"({"signal":"SIGKILL"})")
          .status,
      204);
  EXPECT_TRUE(eventually([&] {
    return member(agent.exec("pgrep -fc '^sleep (10[1]|20[2])'").body, "stdout") == "0\\n";
  }));
}

// C23
TEST(Pty, InteractiveShellsWorkWithAndWithoutATerminal) {
  AgentProcess agent;
  EXPECT_EQ(member(agent.exec("bash --norc -ic 'echo ok'").body, "stdout"), "ok\\n");
  Terminal terminal(agent, "bash --norc -ic 'echo ok'");
  EXPECT_NE(read_until(terminal.output, "ok").find("ok"), std::string::npos);
}

}  // namespace
}  // namespace glovebox::agent
