#include "daemon/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace glovebox::daemon {
namespace {

using testing::HasSubstr;

TEST(Flags, TakeBothForms) {
  const std::vector<const char*> args{"--listen",     "127.0.0.1:0", "--data-dir=/d",
                                      "--run-dir=/r", "--set",       "log.level=debug",
                                      "--ready-file", "/ready",      "--allow-root"};
  const Result<Flags> flags = parse_flags(args);
  ASSERT_TRUE(flags) << flags.error().text();
  EXPECT_EQ(flags.value().ready_file, "/ready");
  EXPECT_TRUE(flags.value().allow_root);
  EXPECT_FALSE(flags.value().die_with_parent);
  const Result<config::Config> config = load_config(flags.value());
  ASSERT_TRUE(config) << config.error().text();
  EXPECT_EQ(config.value().listen, "127.0.0.1:0");
  EXPECT_EQ(config.value().data_dir, "/d");
  EXPECT_EQ(config.value().socket, "/r/glovebox.sock");
  EXPECT_EQ(config.value().log.level, "debug");
}

struct BadCase {
  std::vector<const char*> args;
  const char* error;
};

const BadCase kBad[] = {
    {{"--nope"}, "unknown argument --nope"},
    {{"serve"}, "unknown argument serve"},
    {{"--listen"}, "--listen needs a value: ADDR:PORT"},
    {{"--allow-root=yes"}, "--allow-root takes no value"},
    {{"--set", "log.level"}, "--set takes KEY=VALUE"},
    {{""}, "unknown argument"},
};

TEST(Flags, RefuseWhatTheyDoNotKnow) {
  for (const BadCase& bad : kBad) {
    const Result<Flags> flags = parse_flags(bad.args);
    ASSERT_FALSE(flags) << bad.args[0];
    EXPECT_THAT(flags.error().text(), HasSubstr(bad.error));
  }
}

TEST(Flags, AWrongValueIsFoundWhenTheConfigIsMade) {
  Flags flags;
  flags.settings = {{"listen", "nowhere"}};
  const Result<config::Config> config = load_config(flags);
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().text(), HasSubstr("listen: must be a numeric address"));
}

TEST(Flags, HelpNamesEachOne) {
  const std::string help = help_text();
  for (const char* name : {"--config FILE", "--listen ADDR:PORT", "--api-key-file", "--set"}) {
    EXPECT_THAT(help, HasSubstr(name));
  }
}

}  // namespace
}  // namespace glovebox::daemon
