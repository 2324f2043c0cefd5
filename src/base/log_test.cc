#include "base/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <limits>
#include <thread>
#include <vector>

#include "base/unique_fd.h"

namespace glovebox::log {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

struct Pipe {
  Pipe() {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC | O_NONBLOCK) != 0) std::abort();
    read.reset(fds[0]);
    write.reset(fds[1]);
  }
  std::string drain() {
    std::string all;
    char buffer[65536];
    for (ssize_t n = 0; (n = ::read(read.get(), buffer, sizeof buffer)) > 0;) {
      all.append(buffer, static_cast<std::size_t>(n));
    }
    return all;
  }
  UniqueFd read;
  UniqueFd write;
};

std::string line(Form form, std::int64_t unix_ms, Level level, std::string_view message,
                 Fields fields, std::uint64_t dropped = 0) {
  return format_line(form, unix_ms, level, message, FieldSpan(fields.begin(), fields.size()),
                     dropped);
}

std::string json(std::string_view message, Fields fields) {
  return line(Form::kJson, 0, Level::kInfo, message, fields);
}

TEST(Log, JsonKeepsEachValueInItsType) {
  EXPECT_EQ(json("started", {{"text", "a b"},
                             {"no", false},
                             {"n", -3},
                             {"big", std::numeric_limits<std::uint64_t>::max()},
                             {"s", 0.25}}),
            R"({"time":"1970-01-01T00:00:00.000Z","level":"info","message":"started",)"
            R"("text":"a b","no":false,"n":-3,"big":18446744073709551615,"s":0.25})"
            "\n");
}

TEST(Log, NotANumberIsNullInJson) {
  EXPECT_THAT(json("x", {{"v", std::numeric_limits<double>::infinity()}}),
              HasSubstr(R"("v":null)"));
}

TEST(Log, ConsoleQuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(line(Form::kConsole, 1, Level::kWarn, "slow call",
                 {{"path", "/api/v1"}, {"why", "a b"}, {"empty", ""}, {"ms", 12}}, 0),
            "00:00:00.001 warn  slow call path=/api/v1 why=\"a b\" empty=\"\" ms=12\n");
}

TEST(Log, AValueCannotForgeALineOrDriveATerminal) {
  for (const Form form : {Form::kJson, Form::kConsole}) {
    const std::string text = line(form, 0, Level::kInfo, "m\x1b[1m",
                                  {{"v", "x\n{\"level\":\"error\"}\x1b]0;t\a\xC2\x9B"}}, 0);
    EXPECT_EQ(text.find('\n'), text.size() - 1);
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_THAT(text, Not(HasSubstr("\xC2\x9B")));
  }
}

TEST(Log, ASecretNeverComesOut) {
  const Redacted key(std::string("gb-sesame"));
  EXPECT_THAT(json("x", {{"key", key}}), HasSubstr(R"("key":"[redacted]")"));
}

TEST(Log, LinesStayWithinOneAtomicWrite) {
  const std::string control(100'000, '\x01');
  for (const Form form : {Form::kJson, Form::kConsole}) {
    const std::string text =
        line(form, 0, Level::kInfo, control, {{"a", control}, {"b", control}, {"c", 1}}, 7);
    EXPECT_LE(text.size(), 4096U);
    EXPECT_THAT(text, HasSubstr("truncated"));
    EXPECT_THAT(text, HasSubstr("dropped"));
    EXPECT_THAT(text, EndsWith(form == Form::kJson ? "}\n" : "\n"));
  }
}

TEST(Log, LevelChangesAtRunTime) {
  Pipe pipe;
  Logger log(pipe.write.get(), Level::kInfo, Form::kJson);
  log.debug("hidden");
  EXPECT_EQ(pipe.drain(), "");
  log.set_level(Level::kDebug);
  log.debug("shown");
  EXPECT_THAT(pipe.drain(), HasSubstr("shown"));
  log.set_level(Level::kError);
  log.warn("hidden");
  EXPECT_EQ(pipe.drain(), "");
}

TEST(Log, AStuckReaderLosesLinesButBlocksNobody) {
  Pipe pipe;
  ::fcntl(pipe.write.get(), F_SETFL, 0);  // As stderr is: blocking.
  Logger log(pipe.write.get(), Level::kInfo, Form::kJson);
  const std::string filler(500, 'x');
  for (int i = 0; i < 1000; ++i) log.info("flood", {{"filler", filler}});
  pipe.drain();
  log.info("after");
  EXPECT_THAT(pipe.drain(), HasSubstr(R"("message":"after","dropped":)"));
  log.info("next");
  EXPECT_THAT(pipe.drain(), Not(HasSubstr("dropped")));
}

TEST(Log, ThreadsDoNotMixTheirLines) {
  Pipe pipe;
  ::fcntl(pipe.write.get(), F_SETPIPE_SZ, 1 << 20);
  Logger log(pipe.write.get(), Level::kInfo, Form::kConsole);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&log] {
      for (int i = 0; i < 200; ++i) log.info("line", {{"end", "here"}});
    });
  }
  for (std::thread& t : threads) t.join();
  const std::string all = pipe.drain();
  std::size_t lines = 0;
  for (std::size_t at = 0; at < all.size(); ++lines) {
    const std::size_t end = all.find('\n', at);
    ASSERT_THAT(all.substr(at, end - at), EndsWith("info  line end=here"));
    at = end + 1;
  }
  EXPECT_EQ(lines, 800U);
}

TEST(Log, LevelNamesRoundTrip) {
  for (const char* name : {"debug", "info", "warn", "error"}) {
    EXPECT_EQ(to_string(parse_level(name).value()), name);
  }
  EXPECT_FALSE(parse_level("INFO"));
  EXPECT_FALSE(parse_level(""));
}

}  // namespace
}  // namespace glovebox::log
