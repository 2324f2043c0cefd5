#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <fstream>

#include "async/coro.h"
#include "cli/fake_daemon.h"
#include "cli/json.h"

namespace glovebox::cli {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

RunOptions command(std::vector<std::string> args) {
  RunOptions options;
  options.args = std::move(args);
  return options;
}

struct Pipe {
  UniqueFd read;
  UniqueFd write;
  Pipe() {
    int fds[2];
    EXPECT_EQ(::pipe2(fds, O_CLOEXEC), 0);
    read.reset(fds[0]);
    write.reset(fds[1]);
  }
};

TEST(Run, PassesBothStreamsByteForByteAndRemovesTheSandbox) {
  CommandTest t;
  const Ran ran = t.run(command({"echo"}));
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, std::string("out\0\xff\r\n", 7));
  EXPECT_EQ(ran.err, "err\n");
  EXPECT_TRUE(t.daemon().sandboxes.empty());
  EXPECT_THAT(t.daemon().requests, Contains(StartsWith("DELETE ")));
}

TEST(Run, EndsWithTheCommandsExitCode) {
  struct Case {
    std::vector<std::string> args;
    int code;
  };
  for (const Case& c : {Case{{"exit", "0"}, 0},
                        {{"exit", "3"}, 3},
                        {{"exit", "255"}, 255},
                        {{"signal", "9"}, 137},
                        {{"signal", "15", "timeout"}, 124},
                        {{"missing"}, 127},
                        {{"forbidden"}, 126}}) {
    CommandTest t;
    const Ran ran = t.run(command(c.args));
    EXPECT_EQ(ran.code, c.code) << c.args[0];
    EXPECT_TRUE(t.daemon().sandboxes.empty()) << c.args[0];
    EXPECT_EQ(ran.err.empty(), c.code != 127 && c.code != 126) << ran.err;
  }
}

TEST(Run, Gives125WhenGloveboxFailed) {
  CommandTest t;
  t.daemon().refuse_create = true;
  const Ran ran = t.run(command({"echo"}));
  EXPECT_EQ(ran.code, 125);
  EXPECT_THAT(ran.err, HasSubstr("the node is full"));
}

TEST(Run, SaysHowToGiveAKey) {
  CommandTest t;
  t.daemon().unauthorized = true;
  const Ran ran = t.run(command({"echo"}));
  EXPECT_EQ(ran.code, 125);
  EXPECT_THAT(ran.err, HasSubstr("GLOVEBOX_API_KEY"));
}

TEST(Run, PassesPipedInputOnByteForByte) {
  CommandTest t;
  Pipe pipe;
  std::string bytes;
  for (int i = 0; i < 40'000; ++i) bytes += static_cast<char>(i * 7);
  ASSERT_EQ(::fcntl(pipe.write.get(), F_SETPIPE_SZ, 1 << 16), 1 << 16);
  ASSERT_EQ(::write(pipe.write.get(), bytes.data(), bytes.size()),
            static_cast<ssize_t>(bytes.size()));
  pipe.write.reset();
  t.input = std::move(pipe.read);
  const Ran ran = t.run(command({"cat"}));
  EXPECT_EQ(ran.code, 0);
  EXPECT_TRUE(ran.out == bytes) << ran.out.size();
  EXPECT_THAT(t.daemon().exec_texts.at(0), HasSubstr(R"("stdin":true)"));
}

TEST(Run, ReturnsAtOnceThoughItsInputStaysOpen) {
  CommandTest t;
  Pipe pipe;
  t.input = std::move(pipe.read);
  const auto began = Clock::now();
  EXPECT_EQ(t.run(command({"exit", "4"})).code, 4);
  EXPECT_LT(Clock::now() - began, std::chrono::seconds(5));
}

TEST(Run, LeavesInputAloneWhenItIsNullOrToldTo) {
  CommandTest t;
  EXPECT_EQ(t.run(command({"echo"})).code, 0);
  Pipe pipe;
  t.input = std::move(pipe.read);
  RunOptions options = command({"echo"});
  options.no_stdin = true;
  EXPECT_EQ(t.run(options).code, 0);
  for (const std::string& text : t.daemon().exec_texts) {
    EXPECT_EQ(text.find("stdin"), std::string::npos) << text;
  }
}

TEST(Run, KillsAndRemovesWhenInterrupted) {
  for (const int signal : {SIGINT, SIGTERM}) {
    CommandTest t;
    t.daemon().on_exec_start = [signal] { ::raise(signal); };
    EXPECT_EQ(t.run(command({"sleep"})).code, 128 + signal);
    EXPECT_EQ(t.daemon().hung_up, 1);
    EXPECT_THAT(t.daemon().exec_texts.at(0), HasSubstr(R"("kill_on_disconnect":true)"));
    EXPECT_TRUE(t.daemon().sandboxes.empty());
  }
}

TEST(Run, LeavesTheQueueWhenInterruptedBeforeTheSandboxIsThere) {
  CommandTest t;
  t.daemon().stall_create = true;
  Timer timer(t.io());
  timer.expires_after(std::chrono::milliseconds(50));
  timer.async_wait([](boost::system::error_code) { ::raise(SIGINT); });
  EXPECT_EQ(t.run(command({"echo"})).code, 130);
  EXPECT_TRUE(t.daemon().exec_texts.empty());
}

TEST(Run, EndsTheCommandWhenNobodyReadsItsOutput) {
  CommandTest t;
  Pipe pipe;
  pipe.read.reset();
  (void)::signal(SIGPIPE, SIG_IGN);
  t.out_fd = pipe.write.get();
  EXPECT_EQ(t.run(command({"slow"})).code, 141);
  EXPECT_EQ(t.daemon().hung_up, 1);
  EXPECT_TRUE(t.daemon().sandboxes.empty());
}

TEST(Run, DoesNotCallLostOutputASuccess) {
  CommandTest t;
  const Ran ran = t.run(command({"lossy"}));
  EXPECT_EQ(ran.code, 125);
  EXPECT_THAT(ran.err, HasSubstr("12 bytes of output were lost"));
}

TEST(Run, CopiesTheFileInAndRunsItByItsLanguage) {
  CommandTest t;
  const std::string path = t.dir() + "/hello.py";
  std::ofstream(path) << "print(1)\n";
  RunOptions options;
  options.file = path;
  options.args = {"a", "--b"};
  EXPECT_EQ(t.run(options).code, 0);
  EXPECT_EQ(t.daemon().files.at("/home/user/hello.py").bytes, "print(1)\n");
  EXPECT_THAT(t.daemon().exec_texts.at(0),
              HasSubstr(R"("args":["python3","./hello.py","a","--b"])"));
}

TEST(Run, TriesTheNextInterpreterAndSaysWhichWereLookedFor) {
  CommandTest t;
  const std::string path = t.dir() + "/a.js";
  std::ofstream(path) << "1\n";
  RunOptions options;
  options.file = path;
  t.daemon().programs = {"nodejs"};
  EXPECT_EQ(t.run(options).code, 0);
  EXPECT_EQ(t.daemon().exec_texts.size(), 2U);
  t.daemon().programs = {};
  const Ran ran = t.run(options);
  EXPECT_EQ(ran.code, 127);
  EXPECT_THAT(ran.err, HasSubstr("node, nodejs, deno, bun"));
  EXPECT_THAT(ran.err, HasSubstr("apt install nodejs"));
  EXPECT_TRUE(t.daemon().sandboxes.empty());
}

TEST(Run, MakesNoSandboxForAFileThatCannotBeRun) {
  CommandTest t;
  std::ofstream(t.dir() + "/notes.txt") << "hello\n";
  for (const char* name : {"/notes.txt", "/absent.py", ""}) {
    RunOptions options;
    options.file = t.dir() + name;
    EXPECT_EQ(t.run(options).code, 125) << name;
  }
  EXPECT_TRUE(t.daemon().requests.empty());
}

TEST(Run, KeepsTheSandboxWhenAskedTo) {
  CommandTest t;
  RunOptions options = command({"exit", "5"});
  options.keep = true;
  const Ran ran = t.run(options);
  EXPECT_EQ(ran.code, 5);
  EXPECT_EQ(t.daemon().sandboxes.size(), 1U);
  EXPECT_THAT(ran.err, HasSubstr(std::string("glovebox rm ") + kFakeId));
}

TEST(Run, CollectsEverythingForJson) {
  CommandTest t;
  t.globals.json = true;
  const Ran ran = t.run(command({"echo"}));
  const boost::json::object result = *parse_object(ran.out);
  EXPECT_EQ(text_at(result, "stdout_b64"), "b3V0AP8NCg==");
  EXPECT_EQ(text_at(result, "stderr"), "err\n");
  EXPECT_EQ(number_at(result, "exit_code"), 0);
  EXPECT_EQ(text_at(result, "sandbox"), kFakeId);
  EXPECT_EQ(ran.err, "");
}

ExecOptions exec(std::vector<std::string> args) {
  ExecOptions options;
  options.sandbox = kFakeId;
  options.args = std::move(args);
  return options;
}

TEST(Exec, LeavesTheSandboxThere) {
  CommandTest t;
  t.daemon().sandboxes.insert(kFakeId);
  EXPECT_EQ(t.run(exec({"exit", "9"})).code, 9);
  EXPECT_EQ(t.daemon().sandboxes.size(), 1U);
}

TEST(Exec, SendsTheFirstInterruptToTheCommand) {
  CommandTest t;
  t.daemon().on_exec_start = [] { ::raise(SIGINT); };
  EXPECT_EQ(t.run(exec({"sleep"})).code, 0);  // The fake sleep ends well when it is interrupted.
  EXPECT_THAT(t.daemon().inputs, Contains(R"({"signal":"SIGINT"})"));
  EXPECT_EQ(t.daemon().hung_up, 0);
}

TEST(Exec, RefusesATerminalThatIsNone) {
  CommandTest t;
  ExecOptions options = exec({"echo"});
  options.terminal = true;
  const Ran ran = t.run(options);
  EXPECT_EQ(ran.code, 125);
  EXPECT_THAT(ran.err, HasSubstr("-t needs a terminal"));
}

struct Terminal {
  UniqueFd master;
  UniqueFd slave;
  ::termios before{};
  Terminal() {
    master.reset(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    EXPECT_EQ(::grantpt(master.get()), 0);
    EXPECT_EQ(::unlockpt(master.get()), 0);
    slave.reset(::open(::ptsname(master.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
    resize(100, 30);
    EXPECT_EQ(::tcgetattr(slave.get(), &before), 0);
  }
  void resize(unsigned short cols, unsigned short rows) const {
    ::winsize size{};
    size.ws_col = cols;
    size.ws_row = rows;
    EXPECT_EQ(::ioctl(master.get(), TIOCSWINSZ, &size), 0);
  }
  void type(std::string_view keys) const {
    EXPECT_EQ(::write(master.get(), keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  bool as_before() const {
    ::termios now{};
    EXPECT_EQ(::tcgetattr(slave.get(), &now), 0);
    return now.c_lflag == before.c_lflag && now.c_iflag == before.c_iflag &&
           now.c_oflag == before.c_oflag;
  }
};

TEST(Exec, GivesEveryKeyToTheTerminalInsideAndRestoresOurs) {
  CommandTest t;
  const Terminal terminal;
  t.input.reset(::dup(terminal.slave.get()));
  bool was_raw = false;
  t.daemon().on_exec_start = [&] {
    was_raw = !terminal.as_before();
    terminal.resize(120, 40);
    ::raise(SIGWINCH);
    terminal.type("\x03\x1a\x04q");  // Ctrl-C, Ctrl-Z and Ctrl-D are bytes like any other.
  };
  ExecOptions options = exec({"tty"});
  options.terminal = true;
  const Ran ran = t.run(options);
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "\x03\x1a\x04q");
  EXPECT_THAT(t.daemon().exec_texts.at(0), HasSubstr(R"("pty":{"cols":100,"rows":30})"));
  EXPECT_THAT(t.daemon().inputs, Contains(R"({"resize":{"cols":120,"rows":40}})"));
  EXPECT_TRUE(was_raw);
  EXPECT_TRUE(terminal.as_before());
}

TEST(Exec, RestoresTheTerminalWhenItIsEndedOrRefused) {
  struct Case {
    const char* program;
    int code;
  };
  for (const Case& c : {Case{"tty", 128 + SIGTERM}, {"missing", 127}}) {
    CommandTest t;
    const Terminal terminal;
    t.input.reset(::dup(terminal.slave.get()));
    if (c.code > 128) t.daemon().on_exec_start = [] { ::raise(SIGTERM); };
    ExecOptions options = exec({c.program});
    options.terminal = true;
    EXPECT_EQ(t.run(options).code, c.code) << c.program;
    EXPECT_TRUE(terminal.as_before()) << c.program;
  }
}

TEST(Exec, FindsASandboxByNameAndByTheBeginningOfItsId) {
  CommandTest t;
  t.daemon().list_body = std::string(R"({"sandboxes":[{"id":")") + kFakeId +
                         R"(","name":"my-box"},{"id":"sb-abbbbbbbbbbbbbbbbbbb","name":"b"},)" +
                         R"({"id":"sb-accccccccccccccccccc","name":"my-box","state":"stopped"}],)" +
                         R"("next_cursor":null})";
  struct Case {
    const char* name;
    int code;
    const char* says;
  };
  for (const Case& c : {Case{"my-box", 0, ""},
                        {"sb-aa", 0, ""},
                        {"aa", 0, ""},
                        {"sb-a", 125, "fits 2 sandboxes"},
                        {"nope", 125, "no sandbox"}}) {
    ExecOptions options = exec({"exit", "0"});
    options.sandbox = c.name;
    const Ran ran = t.run(options);
    EXPECT_EQ(ran.code, c.code) << c.name;
    EXPECT_THAT(ran.err, HasSubstr(c.says));
  }
}

TEST(Ls, ShowsNoControlByteOfANameOrLabel) {
  CommandTest t;
  t.daemon().list_body = R"({"sandboxes":[{"id":"sb-x","name":"\u001b[2J\nfake","state":"running",)"
                         R"("labels":{"k\u009b":"\u202ev"}}],"next_cursor":null})";
  const std::string out = t.run(ListOptions{}).out;
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 2);
  EXPECT_EQ(out.find('\x1b'), std::string::npos);
  EXPECT_EQ(out.find("\xc2\x9b"), std::string::npos);
  EXPECT_EQ(out.find("\u202e"), std::string::npos);
  t.globals.json = true;
  const std::string as_json = t.run(ListOptions{}).out;
  EXPECT_EQ(as_json.find("\xc2\x9b"), std::string::npos);
  EXPECT_TRUE(parse_object(as_json));
}

TEST(Ls, FollowsNoPagesForEver) {
  CommandTest t;
  t.daemon().list_body = R"({"sandboxes":[],"next_cursor":"again"})";
  EXPECT_EQ(t.run(ListOptions{}).code, 0);
}

TEST(NotRunning, SaysHowToStartIt) {
  CommandTest t;
  ::unlink((t.dir() + "/d.sock").c_str());
  const Ran ran = t.run(ListOptions{});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("glovebox up"));
  EXPECT_THAT(ran.err, HasSubstr(t.dir() + "/d.sock"));
}

}  // namespace
}  // namespace glovebox::cli
