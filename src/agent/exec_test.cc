// Commands, end to end: a real agent, real programs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/agent_harness.h"

namespace glovebox::agent {
namespace {

using harness::AgentProcess;
using harness::Cgroups;
using harness::Connection;
using harness::Event;
using harness::eventually;
using harness::member;
using harness::quote;
using harness::Reply;
using harness::seconds_of;
using harness::slurp;

constexpr int kNeverThisLong = 10;  // Seconds; generous, as machines are busy.

TEST(Exec, AnswersWithOutputAndExitCode) {
  AgentProcess agent;
  const Reply reply = agent.exec("echo out; echo err >&2; exit 3");
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(member(reply.body, "exit_code"), "3");
  EXPECT_EQ(member(reply.body, "stdout"), "out\\n");
  EXPECT_EQ(member(reply.body, "stderr"), "err\\n");
  EXPECT_EQ(member(reply.body, "signal"), "null");
  EXPECT_EQ(member(reply.body, "timed_out"), "false");
}

TEST(Exec, ReportsADeathBySignal) {
  AgentProcess agent;
  const Reply reply = agent.exec("kill -SEGV $$");
  EXPECT_EQ(member(reply.body, "exit_code"), "139");
  EXPECT_EQ(member(reply.body, "signal"), "11");
}

// C01
TEST(Exec, ABackgroundChildDoesNotDelayTheAnswer) {
  AgentProcess agent;
  for (const char* line : {"sleep 20 & echo STARTED", "(sleep 20 &) ; echo STARTED"}) {
    Reply reply;
    EXPECT_LT(seconds_of([&] { reply = agent.exec(line); }), kNeverThisLong) << line;
    EXPECT_EQ(member(reply.body, "stdout"), "STARTED\\n");
    EXPECT_EQ(member(reply.body, "exit_code"), "0");
  }
  EXPECT_EQ(member(agent.exec("pgrep -fc '^sleep 20$'").body, "stdout"), "2\\n");
}

// C01: one that never falls silent does not either.
TEST(Exec, ANoisyBackgroundChildDoesNotDelayTheAnswer) {
  AgentProcess agent;
  Reply reply;
  EXPECT_LT(seconds_of([&] { reply = agent.exec("yes & echo STARTED"); }), kNeverThisLong);
  EXPECT_EQ(member(reply.body, "exit_code"), "0");
}

// C02
TEST(Exec, AnOrphanIsNotKilledByAClosedPipe) {
  AgentProcess agent;
  const Reply reply = agent.exec(
      "(i=0; while [ $i -lt 10 ]; do echo tick; i=$((i+1)); sleep .1; done; echo done > alive) &");
  EXPECT_EQ(member(reply.body, "exit_code"), "0");
  EXPECT_TRUE(eventually([&] { return slurp(agent.dir() + "/alive") == "done\n"; }));
}

// C04
TEST(Exec, NeverCutsACharacterInAStream) {
  AgentProcess agent;
  Connection stream = agent.stream(
      "python3 -c \"import os,time\nfor b in '≤🙂é'.encode(): os.write(1,bytes([b])); "
      "time.sleep(.02)\"");
  std::string text;
  for (Event event = stream.next_event(); !event.name.empty(); event = stream.next_event()) {
    if (event.name == "stdout") text += member(event.data, "text");
  }
  EXPECT_EQ(text, "≤🙂é");
}

TEST(Exec, NeverCutsACharacterInALongAnswer) {
  AgentProcess agent;
  const Reply reply = agent.exec("python3 -c \"print('─'*200000)\"");
  ASSERT_TRUE(reply.whole);
  std::string expected;
  for (int i = 0; i < 200'000; ++i) expected += "─";
  EXPECT_EQ(member(reply.body, "stdout"), expected + "\\n");
}

TEST(Exec, GivesBytesThatAreNoTextAsBase64) {
  AgentProcess agent;
  const Reply reply = agent.exec("printf '\\377\\376'");
  EXPECT_EQ(member(reply.body, "stdout_b64"), to_base64("\xff\xfe"));
}

// C05
TEST(Exec, InputEndsAfterWhatWasWritten) {
  AgentProcess agent;
  const std::string pid = agent.start("wc -c", R"(,"stdin":true)");
  const std::string path = "/v1/processes/" + pid + "/stdin";
  EXPECT_EQ(agent.call("POST", path, std::string(1'000'000, 'x')).status, 204);
  EXPECT_EQ(agent.call("POST", path + "?close=1", "").status, 204);
  Connection output = agent.follow(pid);
  EXPECT_EQ(member(output.next_event().data, "text"), "1000000\\n");
  EXPECT_EQ(output.next_event().name, "exit");
  EXPECT_EQ(agent.call("POST", path + "?close=1", "").status, 204) << "closing twice is harmless";
}

TEST(Exec, FeedsInputLongerThanAPipe) {
  AgentProcess agent;
  const Reply reply = agent.exec("wc -c", R"(,"stdin":")" + std::string(3'000'000, 'y') + "\"");
  EXPECT_EQ(member(reply.body, "stdout"), "3000000\\n");
}

TEST(Exec, FeedsBytes) {
  AgentProcess agent;
  const Reply reply =
      agent.exec("od -An -tx1", R"(,"stdin_b64":")" + to_base64(std::string("\0\1\xff", 3)) + "\"");
  EXPECT_EQ(member(reply.body, "stdout"), " 00 01 ff\\n");
}

// C07
TEST(Exec, InputErrorsAreTyped) {
  AgentProcess agent;
  const std::string ended = agent.start("true", R"(,"stdin":true)");
  agent.follow(ended).next_event();
  EXPECT_EQ(agent.call("POST", "/v1/processes/" + ended + "/stdin", "x").status, 409);
  const std::string mute = agent.start("sleep 20");
  EXPECT_EQ(agent.call("POST", "/v1/processes/" + mute + "/stdin", "x").status, 409);
  EXPECT_EQ(agent.call("POST", "/v1/processes/999999/stdin", "x").status, 404);
  EXPECT_EQ(agent.call("GET", "/v1/processes/999999").status, 404);
  EXPECT_EQ(agent.call("GET", "/v1/processes/abc").status, 404);
}

// C08
TEST(Exec, ACommandThatIgnoresItsInputStillGivesItsExitCode) {
  AgentProcess agent;
  const std::string input = R"(,"stdin":")" + std::string(64 << 10, 'z') + "\"";
  for (int i = 0; i < 100; ++i) {
    const Reply reply = agent.exec("exit 3", input);
    ASSERT_EQ(reply.status, 200);
    ASSERT_EQ(member(reply.body, "exit_code"), "3");
  }
}

// C10
TEST(Exec, AStalledReaderStopsNeitherTheCommandNorOtherReaders) {
  AgentProcess agent;
  const std::string pid = agent.start("i=0; while :; do echo line $i; i=$((i+1)); sleep .05; done");
  Connection stalled = agent.follow(pid);  // Never read from.
  Connection reader = agent.follow(pid);
  EXPECT_LT(seconds_of([&] {
              for (int i = 0; i < 40; ++i) ASSERT_EQ(reader.next_event().name, "stdout");
            }),
            kNeverThisLong);
}

// C10: also when it writes more than all buffers together hold.
TEST(Exec, AStalledReaderFallsBehindAndIsTold) {
  AgentProcess agent;
  const std::string pid = agent.start("head -c 30000000 /dev/zero | tr '\\0' x; echo; echo END");
  Connection stalled = agent.follow(pid);
  Connection reader = agent.follow(pid);
  std::string last;
  std::string exit_code;
  for (Event event = reader.next_event(); !event.name.empty(); event = reader.next_event()) {
    if (event.name == "stdout") last = member(event.data, "text");
    if (event.name == "exit") exit_code = member(event.data, "exit_code");
  }
  EXPECT_EQ(exit_code, "0");
  EXPECT_TRUE(last.ends_with("END\\n"));
  std::uint64_t lost = 0;
  for (Event event = stalled.next_event(); !event.name.empty(); event = stalled.next_event()) {
    if (event.name == "lost") lost += std::stoull(member(event.data, "bytes"));
  }
  EXPECT_GT(lost, 20'000'000U);
}

TEST(Exec, AReaderThatKeepsUpLosesNothing) {
  AgentProcess agent;
  Connection stream = agent.stream("head -c 50000000 /dev/zero | tr '\\0' x");
  std::size_t bytes = 0;
  for (Event event = stream.next_event(); !event.name.empty(); event = stream.next_event()) {
    ASSERT_NE(event.name, "lost");
    if (event.name == "stdout") bytes += member(event.data, "text").size();
  }
  EXPECT_EQ(bytes, 50'000'000U);
}

TEST(Exec, CutsALongAnswerAtItsFront) {
  AgentProcess agent;
  const Reply reply = agent.exec("head -c 20000000 /dev/zero | tr '\\0' x; echo END");
  EXPECT_EQ(member(reply.body, "stdout_truncated"), "true");
  EXPECT_EQ(member(reply.body, "stderr_truncated"), "false");
  const std::string out = member(reply.body, "stdout");
  EXPECT_TRUE(out.ends_with("END\\n"));
  EXPECT_GT(out.size(), 7U << 20);
  EXPECT_LE(out.size(), 9U << 20);
}

// C11
TEST(Exec, AClientMayLeaveAndComeBack) {
  AgentProcess agent;
  std::string pid;
  {
    Connection stream = agent.stream("for i in $(seq 50); do echo $i; sleep .05; done");
    pid = member(stream.next_event().data, "pid");
    EXPECT_EQ(stream.next_event().name, "stdout");
  }
  const Reply listed = agent.call("GET", "/v1/processes");
  EXPECT_NE(listed.body.find("\"pid\":" + pid), std::string::npos);
  Connection again = agent.follow(pid);
  std::string text;
  std::string exit_code;
  for (Event event = again.next_event(); !event.name.empty(); event = again.next_event()) {
    if (event.name == "stdout") text += member(event.data, "text");
    if (event.name == "exit") exit_code = member(event.data, "exit_code");
  }
  EXPECT_TRUE(text.starts_with("1\\n2\\n"));
  EXPECT_TRUE(text.ends_with("49\\n50\\n"));
  EXPECT_EQ(exit_code, "0");
}

TEST(Exec, OutputContinuesFromACursor) {
  AgentProcess agent;
  const std::string pid = agent.start("printf 0123456789");
  agent.follow(pid).next_event();
  ASSERT_TRUE(eventually([&] {
    return member(agent.call("GET", "/v1/processes/" + pid).body, "running") == "false";
  }));
  Connection tail = agent.follow(pid, "?from=7");
  const Event event = tail.next_event();
  EXPECT_EQ(member(event.data, "text"), "789");
  EXPECT_EQ(member(event.data, "cursor"), "10");
  EXPECT_EQ(tail.next_event().name, "exit");
  EXPECT_EQ(agent.call("GET", "/v1/processes/" + pid + "/output?from=11").status, 400);
}

TEST(Exec, OutputWithoutFollowingEndsAtWhatThereIs) {
  AgentProcess agent;
  const std::string pid = agent.start("echo hi; sleep 30");
  ASSERT_TRUE(eventually(
      [&] { return member(agent.call("GET", "/v1/processes/" + pid).body, "cursor") == "3"; }));
  Connection now = agent.follow(pid, "?follow=0");
  EXPECT_EQ(member(now.next_event().data, "text"), "hi\\n");
  EXPECT_EQ(now.next_event().name, "");
}

TEST(Exec, HangingUpKillsOnlyWhenAsked) {
  AgentProcess agent;
  {
    Connection kept = agent.stream("sleep .5; echo kept > kept");
    kept.next_event();
    Connection killed =
        agent.stream("sleep 1; echo killed > killed", R"(,"kill_on_disconnect":true)");
    const std::string pid = member(killed.next_event().data, "pid");
    killed.close();
    EXPECT_TRUE(eventually([&] {
      return member(agent.call("GET", "/v1/processes/" + pid).body, "exit_code") == "137";
    }));
  }
  EXPECT_TRUE(eventually([&] { return slurp(agent.dir() + "/kept") == "kept\n"; }));
  EXPECT_EQ(slurp(agent.dir() + "/killed"), "");
}

// C13
TEST(Exec, AMissingProgramHasItsOwnError) {
  AgentProcess agent;
  const Reply shell = agent.exec("no_such_cmd_xyz --help");
  EXPECT_EQ(member(shell.body, "exit_code"), "127");
  EXPECT_NE(member(shell.body, "stderr").find("no_such_cmd_xyz"), std::string::npos);
  const auto run = [&](const std::string& args) {
    return agent.call("POST", "/v1/exec", R"({"user":"0","args":)" + args + "}");
  };
  const Reply missing = run(R"(["no_such_cmd_xyz","--help"])");
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(member(missing.body, "code"), "not_found");
  EXPECT_NE(missing.body.find("no_such_cmd_xyz"), std::string::npos);
  std::ofstream(agent.dir() + "/plain") << "text";
  EXPECT_EQ(member(agent.exec("./plain").body, "exit_code"), "126");
  EXPECT_EQ(run("[" + quote(agent.dir() + "/plain") + "]").status, 403);
  std::ofstream(agent.dir() + "/bad") << "#!/no/such/interpreter\n";
  ::chmod((agent.dir() + "/bad").c_str(), 0755);
  EXPECT_EQ(run("[" + quote(agent.dir() + "/bad") + "]").status, 404);
  EXPECT_EQ(run(R"(["/tmp"])").status, 403);
}

// C14, as far as one call goes.
TEST(Exec, TakesHeredocsAndLinesThatBeginWithADash) {
  AgentProcess agent;
  EXPECT_EQ(member(agent.exec("cat <<'X'\n hello \nX").body, "stdout"), " hello \\n");
  EXPECT_EQ(member(agent.exec("-x").body, "exit_code"), "127");
}

// C20, C101
TEST(Exec, HasOnlyTheDocumentedEnvironment) {
  ::setenv("GLOVEBOX_TEST_SECRET", "leak", 1);
  AgentProcess agent;
  ::unsetenv("GLOVEBOX_TEST_SECRET");
  const Reply reply = agent.call(
      "POST", "/v1/exec", R"({"args":["/usr/bin/env"],"user":"0","env":{"MINE":"1","BOTH":"r"}})",
      {{"Glovebox-Default-Env", to_base64(R"({"THEIRS":"2","BOTH":"s"})")}});
  const std::string out = member(reply.body, "stdout");
  EXPECT_EQ(out.find("leak"), std::string::npos);
  for (const char* line : {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\\n",
                           "LANG=C.UTF-8\\n", "GLOVEBOX=1\\n", "MINE=1\\n", "THEIRS=2\\n",
                           "BOTH=r\\n", "USER=root\\n", "LOGNAME=root\\n"}) {
    EXPECT_NE(out.find(line), std::string::npos) << line << out;
  }
  std::size_t lines = 0;
  for (std::size_t at = out.find("\\n"); at != std::string::npos; at = out.find("\\n", at + 1)) {
    ++lines;
  }
  EXPECT_EQ(lines, 10U) << out;
}

// C20
TEST(Exec, RunsAsTheUserInTheDirectory) {
  AgentProcess agent;
  const auto run = [&](const std::string& more) {
    return agent.call("POST", "/v1/exec",
                      R"({"args":["/bin/sh","-c","id -u; id -g; id -G; pwd"])" + more + "}");
  };
  EXPECT_EQ(member(run(R"(,"user":"4321:1234","cwd":"/usr")").body, "stdout"),
            "4321\\n1234\\n1234\\n/usr\\n");
  const Reply missing = run(R"(,"user":"0","cwd":"/no/such/dir")");
  EXPECT_EQ(missing.status, 400);
  EXPECT_NE(missing.body.find("/no/such/dir"), std::string::npos);
  EXPECT_EQ(run(R"(,"user":"0","cwd":"/etc/passwd")").status, 400);
  EXPECT_EQ(run(R"(,"user":"no_such_user_x")").status, 400);
  ::mkdir((agent.dir() + "/closed").c_str(), 0700);
  EXPECT_EQ(run(R"(,"user":"4321","cwd":)" + quote(agent.dir() + "/closed")).status, 403);
}

// C97
TEST(Exec, HasThreeDescriptorsAndNoWayThroughAnother) {
  AgentProcess agent;
  EXPECT_EQ(member(agent.exec("ls /proc/self/fd | wc -w").body, "stdout"), "4\\n")
      << "0, 1, 2 and ls's own";
  for (int fd = 3; fd < 40; ++fd) {
    const Reply reply = agent.call(
        "POST", "/v1/exec",
        R"({"args":["/bin/pwd"],"user":"0","cwd":"/proc/self/fd/)" + std::to_string(fd) + "\"}");
    EXPECT_EQ(reply.status, 400) << fd;
  }
  const std::string link = agent.dir() + "/d";
  ASSERT_EQ(::symlink("/proc/self/fd/3", link.c_str()), 0);
  EXPECT_EQ(
      agent
          .call("POST", "/v1/exec", R"({"args":["/bin/pwd"],"user":"0","cwd":)" + quote(link) + "}")
          .status,
      400);
}

TEST(Exec, StartsWithCleanSignalsLimitsAndScore) {
  AgentProcess agent;
  EXPECT_EQ(member(agent.exec("grep -E 'Sig(Blk|Ign)' /proc/self/status | cut -f2").body, "stdout"),
            "0000000000000000\\n0000000000000000\\n");
  EXPECT_EQ(member(agent.exec("ulimit -n; ulimit -c; umask").body, "stdout"), "1024\\n0\\n0022\\n");
  EXPECT_EQ(member(agent.exec("cat /proc/self/oom_score_adj").body, "stdout"), "500\\n");
}

TEST(Exec, ATimeoutKillsAllThatWasStarted) {
  AgentProcess agent;
  if (agent.cgroup().empty()) GTEST_SKIP() << "this host has no cgroup version 2";
  Reply reply;
  const double took = seconds_of([&] {
    reply =
        agent.exec("setsid sh -c 'sleep 1.5; echo x > survived' & sleep 60", R"(,"timeout_s":0.3)");
  });
  EXPECT_LT(took, kNeverThisLong);
  EXPECT_EQ(member(reply.body, "timed_out"), "true");
  EXPECT_EQ(member(reply.body, "exit_code"), "137");
  std::this_thread::sleep_for(std::chrono::seconds(2));
  EXPECT_EQ(slurp(agent.dir() + "/survived"), "");
}

// Linux 6.18 kills what is born into a group that cgroup.kill was once written to.
TEST(Exec, CommandsAfterATimeoutLive) {
  AgentProcess agent;
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(member(agent.exec("sleep 60", R"(,"timeout_s":0.05)").body, "timed_out"), "true");
    ASSERT_EQ(member(agent.exec("echo alive").body, "stdout"), "alive\\n");
  }
}

TEST(Exec, ATimeoutKillsWithoutCgroupsToo) {
  AgentProcess agent(Cgroups::kNo);
  const Reply reply =
      agent.exec("(sleep 1.5; echo x > survived) & sleep 60", R"(,"timeout_s":0.3)");
  EXPECT_EQ(member(reply.body, "timed_out"), "true");
  std::this_thread::sleep_for(std::chrono::seconds(2));
  EXPECT_EQ(slurp(agent.dir() + "/survived"), "");
}

TEST(Exec, ATreeKillReachesDoubleForkedSessions) {
  AgentProcess agent;
  if (agent.cgroup().empty()) GTEST_SKIP() << "this host has no cgroup version 2";
  const std::string pid = agent.start("(setsid sh -c 'sleep 1.5; echo x > survived' &) ; sleep 60");
  ASSERT_TRUE(eventually(
      [&] { return member(agent.exec("pgrep -fc 'sleep 1.[5]'").body, "stdout") != "0\\n"; }));
  const std::string path = "/v1/processes/" + pid + "/signal";
  EXPECT_EQ(agent.call("POST", path, R"({"signal":"SIGTERM","tree":true})").status, 400);
  EXPECT_EQ(agent.call("POST", path, R"({"signal":"SIGKILL","tree":true})").status, 204);
  EXPECT_EQ(member(agent.follow(pid).next_event().data, "exit_code"), "137");
  std::this_thread::sleep_for(std::chrono::seconds(2));
  EXPECT_EQ(slurp(agent.dir() + "/survived"), "");
}

TEST(Exec, SignalsByNameAndNumber) {
  AgentProcess agent;
  const std::string pid =
      agent.start("trap 'echo got; exit 7' USR1; echo ready; while :; do sleep .05; done");
  Connection output = agent.follow(pid);
  ASSERT_EQ(member(output.next_event().data, "text"), "ready\\n");
  const std::string path = "/v1/processes/" + pid + "/signal";
  for (const char* bad : {R"({"signal":"SIGNOPE"})", R"({"signal":0})", R"({"signal":65})",
                          R"({"signal":-9})", R"({})", R"({"signal":9,"x":1})"}) {
    EXPECT_EQ(agent.call("POST", path, bad).status, 400) << bad;
  }
  EXPECT_EQ(agent.call("POST", path, R"({"signal":"SIGUSR1"})").status, 204);
  std::string exit_code;
  for (Event event = output.next_event(); !event.name.empty(); event = output.next_event()) {
    if (event.name == "exit") exit_code = member(event.data, "exit_code");
  }
  EXPECT_EQ(exit_code, "7");
  EXPECT_EQ(agent.call("POST", path, R"({"signal":15})").status, 409);
}

// C46
TEST(Exec, ReapsOrphansAndStealsNoExitCode) {
  AgentProcess agent;
  Connection other = agent.stream("for i in $(seq 20); do sleep .05; done; exit 42");
  agent.exec("for i in $(seq 100); do sh -c 'sleep .05 &' ; done");
  std::string exit_code;
  for (Event event = other.next_event(); !event.name.empty(); event = other.next_event()) {
    if (event.name == "exit") exit_code = member(event.data, "exit_code");
  }
  EXPECT_EQ(exit_code, "42");
  EXPECT_TRUE(eventually([&] {
    return member(
               agent.exec("ps --ppid " + std::to_string(agent.pid()) + " -o stat= | grep -c '^Z'")
                   .body,
               "stdout") == "0\\n";
  }));
}

TEST(Exec, LeavesNoCgroupsBehindButASpareFew) {
  AgentProcess agent;
  if (agent.cgroup().empty()) GTEST_SKIP() << "this host has no cgroup version 2";
  for (int i = 0; i < 20; ++i) agent.exec("(sleep .2 &) ; true");
  EXPECT_TRUE(eventually([&] {
    agent.exec("true");
    return std::stoi(
               member(agent.exec("ls -d " + agent.cgroup() + "/x* | wc -l").body, "stdout")) <= 5;
  }));
}

TEST(Exec, RefusesWhatItCannotRead) {
  AgentProcess agent;
  struct Case {
    const char* body;
    int status;
  };
  for (const Case& c :
       {Case{"", 400}, Case{"{", 400}, Case{"[]", 400}, Case{R"({"cmd":"true","nope":1})", 400},
        Case{R"({"cmd":"true","cmd":"false"})", 400}, Case{"\xff\xfe", 400}}) {
    const Reply reply = agent.call("POST", "/v1/exec", c.body);
    EXPECT_EQ(reply.status, c.status) << c.body;
    EXPECT_EQ(member(reply.body, "code"), "invalid") << c.body;
  }
  EXPECT_EQ(agent.call("GET", "/v1/nope").status, 404);
  EXPECT_EQ(agent.call("DELETE", "/v1/exec").status, 405);
  EXPECT_EQ(
      agent.call("POST", "/v1/exec", R"({"cmd":"true"})", {{"Glovebox-Default-Env", "%"}}).status,
      400);
  EXPECT_EQ(member(agent.call("GET", "/v1/health").body, "status"), "ok");
}

TEST(Exec, ListensAreSeen) {
  AgentProcess agent;
  Connection server = agent.stream(
      "python3 -uc \"import socket,time\ns=socket.socket();s.bind(('127.0.0.1',0));s.listen()\n"
      "print(s.getsockname()[1]);time.sleep(20)\"");
  const std::string pid = member(server.next_event().data, "pid");
  const std::string text = member(server.next_event().data, "text");
  const std::string port = text.substr(0, text.find_first_not_of("0123456789"));
  const std::string ports = agent.call("GET", "/v1/ports").body;
  EXPECT_NE(ports.find("{\"port\":" + port + ",\"address\":\"127.0.0.1\",\"pid\":"),
            std::string::npos)
      << ports;
}

}  // namespace
}  // namespace glovebox::agent
