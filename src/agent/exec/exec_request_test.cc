#include "agent/exec/exec_request.h"

#include <gtest/gtest.h>

#include "base/base64.h"

namespace glovebox::agent {
namespace {

TEST(ExecRequest, ReadsEveryField) {
  auto request = parse_exec_request(
      R"({"args":["a","b"],"cwd":"/x","user":"root","env":{"A":"1"},"timeout_s":1.5,)"
      R"("stdin":"hi","kill_on_disconnect":true,"background":true,"tag":"t"})");
  ASSERT_TRUE(request) << request.error().text();
  EXPECT_EQ(request->args.size(), 2U);
  EXPECT_EQ(request->cwd, "/x");
  EXPECT_EQ(request->user, "root");
  EXPECT_EQ(request->env[0].second, "1");
  EXPECT_EQ(request->timeout->count(), 1500);
  EXPECT_EQ(request->stdin_mode, StdinMode::kFed);
  EXPECT_EQ(request->stdin_bytes, "hi");
  EXPECT_TRUE(request->kill_on_disconnect);
  EXPECT_TRUE(request->background);
  EXPECT_EQ(request->tag, "t");
}

TEST(ExecRequest, HasTheContractsDefaults) {
  auto request = parse_exec_request(R"({"cmd":"true"})");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->user, "user");
  EXPECT_FALSE(request->timeout);
  EXPECT_EQ(request->stdin_mode, StdinMode::kNone);
  EXPECT_FALSE(request->pty);
  EXPECT_FALSE(request->cwd);
}

TEST(ExecRequest, TakesInputInAllItsForms) {
  EXPECT_EQ(parse_exec_request(R"({"cmd":"x","stdin":true})")->stdin_mode, StdinMode::kOpen);
  EXPECT_EQ(parse_exec_request(R"({"cmd":"x","stdin":false})")->stdin_mode, StdinMode::kNone);
  EXPECT_EQ(parse_exec_request(R"({"cmd":"x","stdin":""})")->stdin_mode, StdinMode::kFed);
  EXPECT_EQ(parse_exec_request(R"({"cmd":"x","stdin_b64":"AP8="})")->stdin_bytes,
            std::string("\0\xff", 2));
}

struct Refusal {
  const char* json;
  const char* names;  // Part of the message.
};

TEST(ExecRequest, RefusesAndNamesTheField) {
  const Refusal cases[] = {
      {R"({})", "\"cmd\" or \"args\""},
      {R"({"cmd":"x","args":["y"]})", "not both"},
      {R"({"cmd":""})", "\"cmd\""},
      {R"({"args":[]})", "\"args\""},
      {R"({"args":[""]})", "\"args\""},
      {R"({"cmd":"a\u0000b"})", "\"cmd\""},
      {R"({"cmd":"x","cwd":""})", "\"cwd\""},
      {R"({"cmd":"x","user":""})", "\"user\""},
      {R"({"cmd":"x","timeout_s":0})", "\"timeout_s\""},
      {R"({"cmd":"x","timeout_s":-1})", "\"timeout_s\""},
      {R"({"cmd":"x","timeout_s":1e12})", "\"timeout_s\""},
      {R"({"cmd":"x","timeout_s":"5"})", "\"timeout_s\""},
      {R"({"cmd":"x","stdin":5})", "\"stdin\""},
      {R"({"cmd":"x","stdin":"a","stdin_b64":""})", "not both"},
      {R"({"cmd":"x","stdin_b64":"!"})", "\"stdin_b64\""},
      {R"({"cmd":"x","env":{"A=B":"1"}})", "\"env\""},
      {R"({"cmd":"x","env":{"":"1"}})", "\"env\""},
      {R"({"cmd":"x","env":{"A":"\u0000"}})", "\"env\""},
      {R"({"cmd":"x","pty":{"cols":0,"rows":0}})", "\"cols\""},
      {R"({"cmd":"x","pty":{"cols":65535,"rows":65535}})", "\"cols\""},
      {R"({"cmd":"x","pty":{"cols":80,"rows":-1}})", "\"rows\""},
      {R"({"cmd":"x","pty":{"cols":1e9,"rows":1}})", "\"cols\""},
      {R"({"cmd":"x","pty":{"x":1}})", "\"x\""},
      {R"({"cmd":"x","pty":{},"stdin":"x"})", "\"stdin\""},
      {R"({"cmd":"x","background":1})", "\"background\""},
      {R"({"cmd":"x","envs":{}})", "\"envs\""},
  };
  for (const Refusal& c : cases) {
    const auto request = parse_exec_request(c.json);
    ASSERT_FALSE(request) << c.json;
    EXPECT_EQ(request.error().code(), Errc::kInvalid);
    EXPECT_NE(request.error().text().find(c.names), std::string::npos)
        << c.json << " -> " << request.error().text();
  }
}

TEST(ExecRequest, BoundsArgumentsAndEnvironment) {
  const auto with_arg = [](std::size_t n) {
    return parse_exec_request(R"({"args":["x",")" + std::string(n, 'a') + "\"]}").has_value();
  };
  EXPECT_TRUE(with_arg((128 << 10) - 1));
  EXPECT_FALSE(with_arg(128 << 10));
  const auto with_env = [](int n) {
    std::string json = R"({"cmd":"x","env":{)";
    for (int i = 0; i < n; ++i) {
      json += (i > 0 ? ",\"V" : "\"V") + std::to_string(i) + "\":\"\"";
    }
    return parse_exec_request(json + "}}").has_value();
  };
  EXPECT_TRUE(with_env(10'000));
  EXPECT_FALSE(with_env(10'001));
  std::string many = R"({"args":["x")";
  for (int i = 0; i < 20; ++i) many += ",\"" + std::string(120'000, 'a') + "\"";
  EXPECT_FALSE(parse_exec_request(many + "]}"));
}

TEST(DefaultEnv, IsBase64OfAnObjectOfStrings) {
  const auto env = parse_default_env(to_base64(R"({"A":"1"})"));
  ASSERT_TRUE(env);
  EXPECT_TRUE(parse_default_env(""));
  for (const char* bad : {"{", "[]", R"({"A":1})", R"({"A=":"x"})", R"({}, "B": {})"}) {
    EXPECT_FALSE(parse_default_env(to_base64(bad))) << bad;
  }
  EXPECT_FALSE(parse_default_env("%%%"));
}

}  // namespace
}  // namespace glovebox::agent
