#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "cli/fake_daemon.h"
#include "cli/json.h"

namespace glovebox::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kProcesses[] =
    R"({"processes":[
      {"pid":5,"args":["sleep","10"],"tag":"t","running":true,"started_at":"2020-01-01T00:00:00Z"},
      {"pid":6,"cmd":"echo \u001b[2J\nx","running":false,"exit_code":3,"signal":null},
      {"pid":7,"args":["x"],"exit_code":137,"signal":9,"oom_killed":false},
      {"pid":8,"args":["y"],"exit_code":137,"signal":9,"timed_out":true}]})";

std::string events() {
  return "event: start\ndata: {\"pid\":5}\n\n"
         "event: stdout\ndata: {\"text\":\"out\\n\",\"cursor\":4}\n\n"
         ":\n\n"
         "event: stderr\ndata: {\"b64\":\"/wA=\",\"cursor\":6}\n\n"
         "event: lost\ndata: {\"bytes\":12}\n\n"
         "event: exit\ndata: {\"exit_code\":0,\"timed_out\":false}\n\n";
}

PsOptions ps(bool all) {
  PsOptions options;
  options.sandbox = kFakeId;
  options.all = all;
  return options;
}

TEST(Ps, ShowsHowEachEndedOnOneLineEach) {
  CommandTest t;
  t.daemon().answers["/processes"] = kProcesses;
  const std::string running = t.run(ps(false)).out;
  EXPECT_THAT(running, HasSubstr("5    running"));
  EXPECT_THAT(running, Not(HasSubstr("exited")));
  const std::string all = t.run(ps(true)).out;
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 5);
  EXPECT_EQ(all.find('\x1b'), std::string::npos);
  EXPECT_THAT(all, HasSubstr("exited (3)"));
  EXPECT_THAT(all, HasSubstr("killed (SIGKILL)"));
  EXPECT_THAT(all, HasSubstr("timed out"));
  t.globals.quiet = true;
  EXPECT_EQ(t.run(ps(true)).out, "5\n6\n7\n8\n");
}

LogsOptions logs(std::optional<std::int64_t> pid) {
  LogsOptions options;
  options.sandbox = kFakeId;
  options.pid = pid;
  return options;
}

TEST(Logs, GivesEachStreamItsBytes) {
  CommandTest t;
  t.daemon().answers["/processes/5/output?follow=0"] = events();
  const Ran ran = t.run(logs(5));
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, "out\n");
  EXPECT_EQ(ran.err, std::string("\xff\0glovebox: 12 earlier bytes are no longer kept\n", 48));
}

TEST(Logs, GivesJsonALineAnEvent) {
  CommandTest t;
  t.globals.json = true;
  t.daemon().answers["/processes/5/output?follow=0"] = events();
  const Ran ran = t.run(logs(5));
  EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 4);
  EXPECT_THAT(ran.out, HasSubstr(R"({"text":"out\n","cursor":4,"event":"stdout"})"));
}

TEST(Logs, ShowsAllCommandsUnderTheirTitles) {
  CommandTest t;
  t.daemon().answers["/processes"] = kProcesses;
  for (const char* pid : {"5", "6", "7", "8"}) {
    t.daemon().answers[std::string("/processes/") + pid + "/output?follow=0"] = events();
  }
  const Ran ran = t.run(logs({}));
  EXPECT_EQ(ran.out, "out\nout\nout\nout\n");
  EXPECT_THAT(ran.err, HasSubstr("==> 6  echo \\x1b[2J\\x0ax (exited (3)) <=="));
}

TEST(Logs, FollowsTheOneThatRuns) {
  CommandTest t;
  t.daemon().answers["/processes"] = kProcesses;
  t.daemon().answers["/processes/5/output"] = events();
  LogsOptions options = logs({});
  options.follow = true;
  EXPECT_EQ(t.run(options).out, "out\n");
  t.daemon().answers["/processes"] = R"({"processes":[]})";
  const Ran none = t.run(options);
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.err, HasSubstr("nothing runs"));
}

TEST(Logs, RefusesAStreamThatIsNone) {
  CommandTest t;
  t.daemon().answers["/processes/5/output?follow=0"] = "event: stdout\ndata: not json\n\n";
  EXPECT_EQ(t.run(logs(5)).code, 1);
  EXPECT_EQ(t.run(logs(99)).code, 1);
}

TEST(Kill, SendsTheSignalByNameOrNumber) {
  CommandTest t;
  t.daemon().answers["/processes/5/signal"] = "";
  KillOptions options;
  options.sandbox = kFakeId;
  options.pid = 5;
  EXPECT_EQ(t.run(options).code, 0);
  options.signal = "9";
  EXPECT_EQ(t.run(options).code, 0);
  options.tree = true;
  EXPECT_EQ(t.run(options).code, 0);
  EXPECT_EQ(t.daemon().bodies,
            (std::vector<std::string>{R"({"signal":"SIGTERM"})", R"({"signal":9})",
                                      R"({"signal":"SIGKILL","tree":true})"}));
}

TEST(Exec, DetachedPrintsThePid) {
  CommandTest t;
  t.daemon().answers["/exec"] = R"({"pid":42})";
  ExecOptions options;
  options.sandbox = kFakeId;
  options.args = {"sleep", "1"};
  options.detach = true;
  EXPECT_EQ(t.run(options).out, "42\n");
  EXPECT_EQ(t.daemon().bodies.at(0), R"({"args":["sleep","1"],"background":true})");
}

TEST(Create, SendsWhatWasAskedForAndNothingElse) {
  CommandTest t;
  EXPECT_EQ(t.run(CreateOptions{}).out, std::string(kFakeId) + "\n");
  t.daemon().answers["/api/v1/sandboxes"] = R"({"id":"sb-x"})";
  CreateOptions options;
  options.sandbox.name = "n";
  options.sandbox.ttl_s = 90;
  options.sandbox.memory_bytes = 1 << 20;
  options.sandbox.cpus = 0.5;
  options.sandbox.env = {{"A", "b"}};
  options.sandbox.labels = {{"l", "v"}};
  EXPECT_EQ(t.run(options).code, 0);
  EXPECT_EQ(t.daemon().bodies.at(0),
            R"({"name":"n","timeout_s":90,"limits":{"memory_bytes":1048576,"cpus":0.5},)"
            R"("env":{"A":"b"},"labels":{"l":"v"}})");
  options.sandbox.name = "\xff";
  EXPECT_THAT(t.run(options).err, HasSubstr("not UTF-8"));
}

TEST(Rm, GoesOnAfterOneThatIsNotThere) {
  CommandTest t;
  t.daemon().sandboxes.insert(kFakeId);
  RemoveOptions options;
  options.sandboxes = {"nope", kFakeId};
  const Ran ran = t.run(options);
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.out, std::string(kFakeId) + "\n");
  EXPECT_TRUE(t.daemon().sandboxes.empty());
}

TEST(Top, ShowsARateFromTwoLooks) {
  CommandTest t;
  t.daemon().list_body = std::string(R"({"sandboxes":[{"id":")") + kFakeId +
                         R"(","name":"\u001b[31m","state":"running"}],"next_cursor":null})";
  t.daemon().answers["/metrics"] =
      R"({"cpu_us":1000,"memory_bytes":1048576,"memory_limit_bytes":2097152,"pids":3,)"
      R"("pids_limit":9,"disk_used_bytes":0,"disk_limit_bytes":1024,"oom_kills":1})";
  TopOptions options;
  options.once = true;
  const Ran ran = t.run(options);
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.out, HasSubstr("0.0%  1M / 2M  3 / 9  0B / 1K  1"));
  EXPECT_EQ(ran.out.find('\x1b'), std::string::npos);
  t.globals.json = true;
  const boost::json::object json = *parse_object(t.run(options).out);
  EXPECT_EQ(number_at(array_at(json, "sandboxes").at(0).get_object(), "memory_bytes"), 1048576);
}

TEST(Answers, ThatAreNotTheDaemonsAreAnErrorAndHarmless) {
  for (const char* body : {"", "<html>\x1b[2J</html>", "[]", "null", "{", "\"x\""}) {
    CommandTest t;
    t.daemon().answers["/api/v1/sandboxes"] = body;
    const Ran ran = t.run(CreateOptions{});
    EXPECT_EQ(ran.code, 1) << body;
    EXPECT_EQ(ran.err.find('\x1b'), std::string::npos);
  }
  for (const char* body : {R"({"sandboxes":5})", R"({"sandboxes":[1,null,[]]})", "{}"}) {
    CommandTest t;
    t.daemon().list_body = body;
    EXPECT_EQ(t.run(ListOptions{}).code, 0) << body;
  }
}

}  // namespace
}  // namespace glovebox::cli
