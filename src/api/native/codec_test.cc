#include "api/native/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace glovebox::api::native {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(DecodeCreate, EverythingIsOptional) {
  for (const char* body : {"", "{}", " {} "}) {
    const auto spec = decode_create(body);
    ASSERT_TRUE(spec) << body;
    EXPECT_EQ(spec.value().template_id, "host");
    EXPECT_FALSE(spec.value().timeout);
    EXPECT_FALSE(spec.value().isolation);
  }
}

TEST(DecodeCreate, ReadsEveryField) {
  auto spec = decode_create(R"({"template":"host","timeout_s":1.5,"idle_timeout_s":60,
    "limits":{"memory_bytes":1048576,"disk_bytes":2097152,"cpus":0.25,"pids":32},
    "env":{"A":"1"},"labels":{"k":"v"},"name":"n","isolation":"vm","on_timeout":"pause"})");
  ASSERT_TRUE(spec) << spec.error().text();
  EXPECT_EQ(spec->timeout, Millis(1500));
  EXPECT_EQ(spec->idle_timeout, Millis(60'000));
  EXPECT_EQ(spec->memory_bytes, 1048576U);
  EXPECT_EQ(spec->disk_bytes, 2097152U);
  EXPECT_EQ(spec->cpu_millis, 250U);
  EXPECT_EQ(spec->pids, 32U);
  EXPECT_THAT(spec->env, ElementsAre(Pair("A", "1")));
  EXPECT_THAT(spec->labels, ElementsAre(Pair("k", "v")));
  EXPECT_EQ(spec->name, "n");
  EXPECT_EQ(spec->isolation, sandbox::IsolationClass::kVm);
  EXPECT_EQ(spec->on_timeout, sandbox::OnTimeout::kPause);
}

struct BadCase {
  const char* body;
  const char* error;
};

const BadCase kBadCreates[] = {
    {"[]", "body: must be an object"},
    {R"({"timeout":5})", "timeout: is not a known field"},
    {R"({"timeout_s":"5"})", "timeout_s: must be a number"},
    {R"({"limits":{"cpu":1}})", "limits.cpu: is not a known field"},
    {R"({"limits":[]})", "limits: must be an object"},
    {R"({"limits":{"cpus":0}})", "limits.cpus: must be more than 0"},
    {R"({"limits":{"cpus":1e9}})", "limits.cpus: must be more than 0"},
    {R"({"limits":{"pids":4294967296}})", "limits.pids: is too large"},
    {R"({"limits":{"memory_bytes":1.5}})", "limits.memory_bytes: must be a whole number"},
    {R"({"isolation":"strong"})", "isolation: must be one of shared-kernel, user-kernel, vm"},
    {R"({"on_timeout":"stop"})", "on_timeout: must be one of kill, pause"},
    {R"({"env":{"A":1}})", "env.A: must be a string"},
};

TEST(DecodeCreate, NamesWhatIsWrong) {
  for (const BadCase& bad : kBadCreates) {
    const auto spec = decode_create(bad.body);
    ASSERT_FALSE(spec) << bad.body;
    EXPECT_EQ(spec.error().code(), Errc::kInvalid);
    EXPECT_THAT(spec.error().text(), HasSubstr(bad.error)) << bad.body;
  }
}

TEST(DecodeExtend, TakesEitherADurationOrATime) {
  EXPECT_EQ(std::get<Millis>(decode_extend(R"({"timeout_s":2})").value()), Millis(2000));
  EXPECT_EQ(std::get<WallTime>(decode_extend(R"({"expires_at":"1970-01-01T00:00:01Z"})").value()),
            from_unix_ms(1000));
  for (const char* bad : {"", "{}", R"({"timeout_s":2,"expires_at":"1970-01-01T00:00:01Z"})",
                          R"({"expires_at":"tomorrow"})", R"({"expires_at":5})"}) {
    EXPECT_FALSE(decode_extend(bad)) << bad;
  }
}

TEST(DecodeNothing, TakesNothing) {
  EXPECT_TRUE(decode_nothing(""));
  EXPECT_TRUE(decode_nothing("{}"));
  EXPECT_FALSE(decode_nothing(R"({"a":1})"));
  EXPECT_FALSE(decode_nothing("x"));
}

TEST(DecodeList, ReadsFilters) {
  auto query = decode_list({{"label", "a=b=c"},
                            {"label", "d="},
                            {"state", "running,paused"},
                            {"limit", "7"},
                            {"cursor", "x"}});
  ASSERT_TRUE(query) << query.error().text();
  EXPECT_THAT(query->filter.labels, ElementsAre(Pair("a", "b=c"), Pair("d", "")));
  EXPECT_THAT(query->filter.states, ElementsAre(sandbox::State::kRunning, sandbox::State::kPaused));
  EXPECT_EQ(query->limit, 7);
  EXPECT_EQ(query->cursor, "x");
  EXPECT_EQ(decode_list({}).value().limit, 100);
}

TEST(DecodeList, RefusesWhatItDoesNotKnow) {
  const Params bad[] = {{{"label", "a"}},
                        {{"label", "=a"}},
                        {{"state", "up"}},
                        {{"state", ""}},
                        {{"state", "running,"}},
                        {{"limit", "0"}},
                        {{"limit", "1001"}},
                        {{"limit", "1x"}},
                        {{"limit", "-1"}},
                        {{"limit", ""}},
                        {{"lable", "a=b"}},
                        {{"limit", "1"}, {"limit", "1"}},
                        {{"cursor", "a"}, {"cursor", "a"}}};
  for (const Params& params : bad) {
    EXPECT_FALSE(decode_list(params)) << params[0].first << "=" << params[0].second;
  }
}

TEST(Encode, ASandboxHasEveryFieldOfTheContract) {
  sandbox::Sandbox s;
  s.id = SandboxId("sb-0123456789abcdefghij");
  s.name = "n";
  s.template_id = "host";
  s.state = sandbox::State::kRunning;
  s.runtime = "native";
  s.created_at = from_unix_ms(0);
  s.expires_at = from_unix_ms(300'000);
  s.limits.cpu_millis = 500;
  EXPECT_EQ(
      encode(s),
      R"({"id":"sb-0123456789abcdefghij","name":"n","template":"host","state":"running",)"
      R"("isolation":"shared-kernel","runtime":"native","created_at":"1970-01-01T00:00:00.000Z",)"
      R"("expires_at":"1970-01-01T00:05:00.000Z","remaining_s":null,"idle_timeout_s":null,)"
      R"("on_timeout":"kill","labels":{},"limits":{"memory_bytes":536870912,"disk_bytes":2147483648,)"
      R"("cpus":0.5,"pids":512},"reason":null,"ended_at":null})"
      "\n");
}

}  // namespace
}  // namespace glovebox::api::native
