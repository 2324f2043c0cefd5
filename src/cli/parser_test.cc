#include "cli/parser.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace glovebox::cli {
namespace {

using Args = std::vector<std::string>;

template <class T>
T parsed(Args args) {
  auto result = parse_command_line(std::move(args));
  if (auto* printed = std::get_if<Printed>(&result)) {
    ADD_FAILURE() << printed->err << printed->out;
    return T{};
  }
  auto* options = std::get_if<T>(&std::get<Parsed>(result).command);
  if (options == nullptr) {
    ADD_FAILURE() << "another command";
    return T{};
  }
  return *options;
}

Printed refused(Args args) {
  auto result = parse_command_line(std::move(args));
  if (auto* printed = std::get_if<Printed>(&result)) return *printed;
  ADD_FAILURE() << "taken";
  return {};
}

TEST(Parser, GivesOptionsAfterTheFileToTheFile) {
  const auto run = parsed<RunOptions>({"run", "--memory", "512m", "-e", "A=b", "-e", "C=[d]",
                                       "job.py", "--memory", "x", "-e", "--", "y"});
  EXPECT_EQ(run.file, "job.py");
  EXPECT_EQ(run.args, (Args{"--memory", "x", "-e", "y"}));
  EXPECT_EQ(run.sandbox.memory_bytes, 512ULL << 20);
  EXPECT_EQ(run.sandbox.env, (Pairs{{"A", "b"}, {"C", "[d]"}}));
}

TEST(Parser, TakesWhatFollowsTwoDashesAsItIs) {
  const auto run = parsed<RunOptions>({"run", "--timeout", "1m", "--", "ls", "--json", "--", "-h"});
  EXPECT_EQ(run.file, "");
  EXPECT_EQ(run.args, (Args{"ls", "--json", "--", "-h"}));
  EXPECT_EQ(run.timeout_s, 60);
}

TEST(Parser, TakesExecWithAndWithoutDashes) {
  for (const Args& args :
       {Args{"exec", "-t", "box", "--", "top", "-b"}, Args{"exec", "-t", "box", "top", "-b"},
        Args{"exec", "box", "-t", "--", "top", "-b"}}) {
    const auto exec = parsed<ExecOptions>(args);
    EXPECT_EQ(exec.sandbox, "box");
    EXPECT_EQ(exec.args, (Args{"top", "-b"}));
    EXPECT_TRUE(exec.terminal);
  }
}

TEST(Parser, KeepsBracketsInPaths) {
  const auto copy = parsed<CopyOptions>({"cp", "[a,b]", "box:[x]"});
  EXPECT_EQ(copy.paths, (Args{"[a,b]", "box:[x]"}));
  EXPECT_EQ(parsed<CopyOptions>({"cp", "-u", "root", "--", "-x", "box:"}).paths,
            (Args{"-x", "box:"}));
  EXPECT_EQ(parsed<CopyOptions>({"cp", "-", "box:x"}).paths, (Args{"-", "box:x"}));
}

TEST(Parser, TakesGlobalOptionsOnEitherSide) {
  for (const Args& args :
       {Args{"--json", "--url", "http://h:1", "ls"}, Args{"ls", "--json", "--url", "http://h:1"}}) {
    auto result = parse_command_line(args);
    ASSERT_TRUE(std::holds_alternative<Parsed>(result));
    EXPECT_TRUE(std::get<Parsed>(result).globals.json);
    EXPECT_EQ(std::get<Parsed>(result).globals.url, "http://h:1");
  }
}

TEST(Parser, PrefersTheOptionToTheEnvironment) {
  ::setenv("GLOVEBOX_URL", "http://env:1", 1);
  auto from_env = parse_command_line({"ls"});
  auto from_option = parse_command_line({"--url", "http://opt:1", "ls"});
  ::unsetenv("GLOVEBOX_URL");
  EXPECT_EQ(std::get<Parsed>(from_env).globals.url, "http://env:1");
  EXPECT_EQ(std::get<Parsed>(from_option).globals.url, "http://opt:1");
}

TEST(Parser, RefusesWithExitCodeTwoAndSaysHowToGetHelp) {
  struct Case {
    Args args;
    const char* text;
  };
  const Case cases[] = {
      {{"rnu", "x"}, "did you mean 'run'?"},
      {{"frobnicate"}, "no command 'frobnicate'"},
      {{"run"}, "name a file"},
      {{"run", "--bogus", "x.py"}, "unknown option --bogus"},
      {{"run", "--memory", "lots", "x.py"}, "'lots' is not a size"},
      {{"run", "-e", "novalue", "x.py"}, "expected KEY=VALUE"},
      {{"exec", "box"}, "name a command"},
      {{"exec", "-d", "-t", "box", "ls"}, "does not go together"},
      {{"cp", "--bogus", "x", "y"}, "unknown option --bogus"},
      {{"cp", "x"}, "name a source and a destination"},
      {{"rm"}, "--all"},
      {{"extend", "box", "soon"}, "'soon' is not a duration"},
      {{"create", "--isolation", "none"}, "--isolation"},
      {{"kill", "box", "x"}, "pid"},
      {{"completion", "tcsh"}, "tcsh"},
      {{"ls", "extra"}, "extra"},
      {{"config"}, "subcommand"},
  };
  for (const Case& c : cases) {
    const Printed printed = refused(c.args);
    EXPECT_EQ(printed.exit_code, 2) << c.args[0];
    EXPECT_NE(printed.err.find(c.text), std::string::npos) << c.args[0] << ": " << printed.err;
    EXPECT_NE(printed.err.find("--help"), std::string::npos) << printed.err;
    EXPECT_EQ(printed.out, "");
  }
}

TEST(Parser, GivesUsageErrorsAsJsonWhenAsked) {
  const Printed printed = refused({"extend", "box", "soon", "--json"});
  EXPECT_EQ(printed.exit_code, 2);
  EXPECT_EQ(printed.err.find(R"({"code":"invalid","message":)"), 0U) << printed.err;
}

TEST(Parser, NeverPrintsAnArgumentRaw) {
  EXPECT_EQ(refused({"x\x1b[2J"}).err.find('\x1b'), std::string::npos);
  EXPECT_EQ(refused({"run", "--\x1b[2J", "f"}).err.find('\x1b'), std::string::npos);
}

TEST(Parser, HelpsOnEveryCommand) {
  EXPECT_EQ(refused({}).exit_code, 0);
  EXPECT_NE(refused({}).out.find("doctor"), std::string::npos);
  for (const CommandModel& command : command_model().subcommands) {
    const Printed printed = refused({command.name, "--help"});
    EXPECT_EQ(printed.exit_code, 0) << command.name;
    EXPECT_NE(printed.out.find("Usage: glovebox " + command.name), std::string::npos)
        << printed.out;
  }
}

TEST(Completion, CoversEveryCommandAndOption) {
  const CommandModel model = command_model();
  EXPECT_GE(model.subcommands.size(), 19U);
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = completion_script(model, shell);
    for (const CommandModel& command : model.subcommands) {
      EXPECT_NE(script.find(command.name), std::string::npos) << shell << " " << command.name;
      for (const OptionModel& option : command.options) {
        std::string name = option.names.back();
        if (std::string(shell) == "fish") name = name.substr(name.find_first_not_of('-'));
        EXPECT_NE(script.find(name), std::string::npos) << shell << " " << name;
      }
    }
  }
  EXPECT_EQ(completion_script(model, "tcsh"), "");
}

TEST(Completion, IsValidBashThatCompletes) {
  const std::string path = ::testing::TempDir() + "glovebox_completion.bash";
  std::ofstream(path) << completion_script(command_model(), "bash");
  const std::string ask = "bash --norc -c 'source " + path +
                          "; COMP_WORDS=(glovebox config ch); COMP_CWORD=2; _glovebox; "
                          "printf %s \"${COMPREPLY[*]}\"; COMP_WORDS=(glovebox create --on-timeout "
                          "\"\"); COMP_CWORD=3; _glovebox; printf \" %s\" \"${COMPREPLY[*]}\"; "
                          "COMP_WORDS=(glovebox completion f); "
                          "COMP_CWORD=2; _glovebox; printf \" %s\" \"${COMPREPLY[*]}\"'";
  FILE* pipe = ::popen(ask.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  char buffer[256] = {};
  const std::size_t got = std::fread(buffer, 1, sizeof buffer - 1, pipe);
  EXPECT_EQ(::pclose(pipe), 0);
  EXPECT_EQ(std::string(buffer, got), "check kill pause fish");
  std::remove(path.c_str());
}

}  // namespace
}  // namespace glovebox::cli
