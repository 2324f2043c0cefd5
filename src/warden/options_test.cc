#include "warden/options.h"

#include <gtest/gtest.h>

namespace glovebox::warden {
namespace {

Result<std::variant<Options, Text>> parse(std::vector<std::string> args) {
  args.insert(args.begin(), "glovebox-warden");
  std::vector<char*> argv;
  argv.reserve(args.size() + 1);
  for (std::string& a : args) argv.push_back(a.data());
  const int argc = static_cast<int>(argv.size());
  argv.push_back(nullptr);
  return parse_options(argc, argv.data());
}

const std::vector<std::string> kNeeded = {"--socket", "/run/glovebox/warden.sock", "--state-dir",
                                          "/var/lib/glovebox/", "--agent=/opt/a"};

Result<std::variant<Options, Text>> parse_with(std::vector<std::string> more) {
  more.insert(more.begin(), kNeeded.begin(), kNeeded.end());
  return parse(std::move(more));
}

TEST(WardenOptions, HaveDefaults) {
  const auto parsed = parse_with({});
  ASSERT_TRUE(parsed) << parsed.error().text();
  const auto& o = std::get<Options>(parsed.value());
  EXPECT_EQ(o.warden.state_dir, "/var/lib/glovebox");
  EXPECT_EQ(o.host.state_dir, "/var/lib/glovebox");
  EXPECT_EQ(o.host.agent_program, "/opt/a");
  EXPECT_EQ(o.host.agent_socket_dir, "/run/glovebox/agents");
  EXPECT_EQ(o.warden.server.agent_socket_dir, "/run/glovebox/agents");
  EXPECT_EQ(o.warden.keeper.pool_size, 4U);
  EXPECT_EQ(o.warden.keeper.slots, o.host.slots);
  EXPECT_FALSE(o.die_with_parent);
}

TEST(WardenOptions, AreTaken) {
  const auto parsed =
      parse_with({"--client-uid", "1000", "--client-gid", "1001", "--pool", "0", "--max-sandboxes",
                  "9000", "--uid-base", "100000", "--cgroup", "test-1", "--log-level", "debug",
                  "--die-with-parent", "--agent-sockets", "/run/a"});
  ASSERT_TRUE(parsed) << parsed.error().text();
  const auto& o = std::get<Options>(parsed.value());
  EXPECT_EQ(o.host.client_uid, 1000U);
  EXPECT_EQ(o.warden.server.client_uid, 1000U);
  EXPECT_EQ(o.warden.server.client_gid, 1001U);
  EXPECT_EQ(o.warden.keeper.pool_size, 0U);
  EXPECT_EQ(o.warden.keeper.sandboxes_max, 9000U);
  EXPECT_GT(o.host.slots, 9000U);
  EXPECT_EQ(o.host.uid_base, 100000U);
  EXPECT_EQ(o.host.cgroup_name, "test-1");
  EXPECT_EQ(o.log_level, log::Level::kDebug);
  EXPECT_TRUE(o.die_with_parent);
  EXPECT_EQ(o.host.agent_socket_dir, "/run/a");
}

TEST(WardenOptions, HelpIsText) {
  const auto parsed = parse({"--help"});
  ASSERT_TRUE(parsed);
  EXPECT_NE(std::get<Text>(parsed.value()).text.find("--state-dir"), std::string::npos);
}

TEST(WardenOptions, FaultsAreNamed) {
  struct Case {
    std::vector<std::string> args;
    const char* text;
  };
  const Case cases[] = {
      {{"--pool", "many"}, "--pool"},
      {{"--pool", "-1"}, "--pool"},
      {{"--pool", "100000"}, "--pool"},
      {{"--pool"}, "--pool needs a value"},
      {{"--client-uid", "4294967295"}, "--client-uid"},  // -1: no user.
      {{"--socket", "relative"}, "--socket"},
      {{"--cgroup", "../.."}, "--cgroup"},
      {{"--log-level", "loud"}, "--log-level"},
      {{"--nonsense"}, "--nonsense"},
      {{"extra"}, "extra"},
      {{"--uid-base", "4294000000"}, "--uid-base"},
  };
  for (const Case& c : cases) {
    const auto parsed = parse_with(c.args);
    ASSERT_FALSE(parsed) << c.text;
    EXPECT_EQ(parsed.error().code(), Errc::kInvalid);
    EXPECT_NE(parsed.error().text().find(c.text), std::string::npos) << parsed.error().text();
  }
  EXPECT_EQ(parse({"--socket", "/s", "--state-dir", "/d"}).error().text(), "--agent is needed");
}

}  // namespace
}  // namespace glovebox::warden
