#include "config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "config/keys.h"

namespace glovebox::config {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(Config, DefaultsAreSafe) {
  const Config c = defaults();
  EXPECT_EQ(c.listen, "127.0.0.1:7070");
  EXPECT_EQ(c.socket, "/run/glovebox/glovebox.sock");
  EXPECT_EQ(c.warden_socket, "/run/glovebox/warden.sock");
  EXPECT_THAT(c.socket_uids, IsEmpty());
  EXPECT_TRUE(c.gateway.key_required);
  EXPECT_EQ(c.http.head_bytes_max, 65536U);
  EXPECT_EQ(c.limits.memory_bytes, 512U << 20);
  EXPECT_GT(c.http.idle_timeout, std::chrono::seconds(75));
}

TEST(Config, ReadsEachKind) {
  Result<Config> c = parse(R"(
listen = "[::1]:0"
socket_uids = [1000, 1001]
log.level = "debug"
[http]
connections_max = 10
head_bytes_max = "8KiB"
json_bytes_max = 4096
head_timeout_s = 0.5
[gateway]
localhost = false
[limits]
cpus = 0.25
)",
                           "f");
  ASSERT_TRUE(c) << c.error().text();
  EXPECT_EQ(c->listen, "[::1]:0");
  EXPECT_THAT(c->socket_uids, testing::ElementsAre(1000U, 1001U));
  EXPECT_EQ(c->log.level, "debug");
  EXPECT_EQ(c->http.connections_max, 10U);
  EXPECT_EQ(c->http.head_bytes_max, 8192U);
  EXPECT_EQ(c->http.json_bytes_max, 4096U);
  EXPECT_EQ(c->http.head_timeout, std::chrono::milliseconds(500));
  EXPECT_FALSE(c->gateway.localhost);
  EXPECT_EQ(c->limits.cpus, 0.25);
  EXPECT_EQ(c->http.idle_timeout, std::chrono::seconds(90));
}

struct BadCase {
  const char* text;
  const char* error;
};

const BadCase kBad[] = {
    {"lisen = \"x\"", "f:1:1: unknown key \"lisen\"; did you mean listen?"},
    {"\n[htp]\nconnections_max = 1", "f:2:2: unknown key \"htp\""},
    {"[http]\n  level = \"debug\"", "f:2:3: unknown key \"http.level\"; did you mean log.level?"},
    {"[gateway]\n\"\\u001b[2J\" = 1", "f:2:1: unknown key \"gateway.\\u001b[2J\""},
    {"zzzzzzzzzzzz = 1", "f:1:1: unknown key \"zzzzzzzzzzzz\""},
    {"listen = 7070", "f:1:10: listen: must be a string"},
    {"listen = \"localhost:70\"", "f:1:10: listen: must be a numeric address and a port"},
    {"listen = \"127.0.0.1:65536\"", "listen: must be a numeric address"},
    {"listen = \"::1:80\"", "listen: must be a numeric address"},
    {"listen = \"off\"\nsocket = \"off\"", "f: listen and socket are both off"},
    {"run_dir = \"run\"", "run_dir: must be an absolute path"},
    {"socket_uids = [\"root\"]", "f:1:15: socket_uids: must be a list of whole numbers"},
    {"socket_uids = [-1]", "socket_uids: must be 0 to 4294967294"},
    {"log.level = \"INFO\"", "log.level: must be debug, info, warn or error"},
    {"log = 1", "f:1:1: \"log\" must be a table"},
    {"http.connections_max = 0", "http.connections_max: must be 1 to 1000000"},
    {"http.connections_max = 1.5", "http.connections_max: must be a whole number, 1 to 1000000"},
    {"http.connections_max = true", "must be a whole number"},
    {"http.head_bytes_max = \"64 kb\"", "has an unknown unit; use B, KiB"},
    {"http.head_bytes_max = \"99999999 TiB\"", "is too large"},
    {"http.head_bytes_max = \"-1\"", "is not a size"},
    {"http.head_timeout_s = nan", "http.head_timeout_s: must be 0.1 to 3600"},
    {"http.head_timeout_s = \"1m\"", "must be a number of seconds"},
    {"gateway.localhost = 1", "gateway.localhost: must be a boolean"},
    {"gateway.domain = \"Sb.Example\"", "must be a host name in lower case"},
    {"gateway.domain = \"sb.example:80\"", "must be a host name"},
    {"sandboxes.timeout_max_s = 10", "sandboxes.timeout_default_s is over"},
    {"limits.pids = 70000", "a default in [limits] is over"},
    {"a = ", "f:1:"},
    {"listen = \"127.0.0.1:1\"\nlisten = \"127.0.0.1:2\"", "f:2:"},
    {"listen = \"\xFF\"", "f:1:"},
};

TEST(Config, RefusesWithPlaceAndReason) {
  for (const BadCase& bad : kBad) {
    const Result<Config> c = parse(bad.text, "f");
    ASSERT_FALSE(c) << bad.text;
    EXPECT_EQ(c.error().code(), Errc::kInvalid);
    EXPECT_THAT(c.error().text(), HasSubstr(bad.error)) << bad.text;
  }
}

TEST(Config, ReportsEveryFaultInTheOrderOfTheFile) {
  const Result<Config> c = parse("z1 = 1\nlog.level = 2\nz2 = 3", "f");
  ASSERT_FALSE(c);
  const std::string& text = c.error().text();
  EXPECT_LT(text.find("f:1:1: unknown key \"z1\""), text.find("f:2:13: log.level"));
  EXPECT_LT(text.find("f:2:13: log.level"), text.find("f:3:1: unknown key \"z2\""));
}

TEST(Config, FlagsComeOverTheFile) {
  const std::vector<Setting> settings{{"log.level", "warn"},
                                      {"http.head_bytes_max", "16 KiB"},
                                      {"gateway.localhost", "false"},
                                      {"socket_uids", "[5]"},
                                      {"run_dir", "/tmp/r"}};
  const Result<Config> c = parse("log.level = \"error\"\nlog.form = \"json\"", "f", settings);
  ASSERT_TRUE(c) << c.error().text();
  EXPECT_EQ(c.value().log.level, "warn");
  EXPECT_EQ(c.value().log.form, "json");
  EXPECT_EQ(c.value().http.head_bytes_max, 16384U);
  EXPECT_FALSE(c.value().gateway.localhost);
  EXPECT_EQ(c.value().socket, "/tmp/r/glovebox.sock");
}

TEST(Config, WrongFlagsAreRefused) {
  for (const Setting& bad : std::vector<Setting>{{"log.leve", "warn"},
                                                 {"http.connections_max", "1\nlisten = 2"},
                                                 {"http.connections_max", "many"},
                                                 {"http.connections_max", ""},
                                                 {"", ""}}) {
    EXPECT_FALSE(parse("", "f", std::vector<Setting>{bad})) << bad.key;
  }
}

TEST(Config, EveryKeyHasAHelpfulRow) {
  for (const Key& key : keys()) {
    EXPECT_EQ(find_key(key.name), &key) << key.name << " is listed twice";
    EXPECT_GT(key.help.size(), 20U) << key.name;
    EXPECT_TRUE(key.help.ends_with('.')) << key.name;
    EXPECT_LE(key.min, key.max) << key.name;
  }
}

TEST(Config, TheSampleFileIsTheDefaults) {
  const Result<Config> c = parse(sample_toml(), "sample");
  ASSERT_TRUE(c) << c.error().text();
  EXPECT_EQ(c.value().listen, defaults().listen);
  EXPECT_EQ(c.value().sandboxes.timeout_max, defaults().sandboxes.timeout_max);
}

TEST(Config, AFileThatIsNotThereIsNamed) {
  const Result<Config> c = load("/no/such/glovebox.toml");
  ASSERT_FALSE(c);
  EXPECT_THAT(c.error().text(), HasSubstr("/no/such/glovebox.toml"));
}

TEST(Config, TheReferenceInDocsIsTheTables) {
  const std::string path = GLOVEBOX_SOURCE_DIR "/docs/operations/config.md";
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), reference_markdown())
      << "run: gloveboxd --print-config-reference > docs/operations/config.md";
}

TEST(Address, IsNumericWithAPort) {
  const Result<Address> v6 = parse_address("[fe80::1]:80");
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6.value().host, "fe80::1");
  EXPECT_EQ(v6.value().port, 80);
  for (const char* bad : {"", ":80", "1.2.3.4", "1.2.3.4:", "1.2.3.4:+1", "1.2.3.4:1 ",
                          "[1.2.3.4]:1", "[]:1", "::1:80", "a:1", "1.2.3.4:-1"}) {
    EXPECT_FALSE(parse_address(bad)) << bad;
  }
}

}  // namespace
}  // namespace glovebox::config
