#include "sandbox/validate.h"

#include <gtest/gtest.h>

#include <functional>

namespace glovebox::sandbox {
namespace {

struct Case {
  const char* name;
  std::function<void(CreateSpec&)> change;
  const char* error;  // How it begins; null when it is right.
};

CreateSpec env_of(std::size_t bytes) {
  CreateSpec s;
  s.env["A"] = std::string(bytes, 'x');
  return s;
}

const Case kCases[] = {
    {"Nothing", [](CreateSpec&) {}, nullptr},
    {"UnknownTemplate", [](CreateSpec& s) { s.template_id = "x"; }, "template: there is no such"},
    {"LongName", [](CreateSpec& s) { s.name = std::string(128, 'x'); }, nullptr},
    {"NameTooLong", [](CreateSpec& s) { s.name = std::string(129, 'x'); }, "name: "},
    {"NameNotUtf8", [](CreateSpec& s) { s.name = "\xff"; }, "name: "},
    {"NameWithEscape", [](CreateSpec& s) { s.name = "\x1b[31m"; }, "name: "},
    {"LeastTimeout", [](CreateSpec& s) { s.timeout = Millis(1000); }, nullptr},
    {"ZeroTimeout", [](CreateSpec& s) { s.timeout = Millis(0); },
     "timeout_s: must be 1 to 2592000 seconds"},
    {"NegativeTimeout", [](CreateSpec& s) { s.timeout = Millis(-1); }, "timeout_s: "},
    {"HugeTimeout", [](CreateSpec& s) { s.timeout = Millis::max(); }, "timeout_s: "},
    {"ZeroIdle", [](CreateSpec& s) { s.idle_timeout = Millis(0); }, "idle_timeout_s: "},
    {"LittleMemory", [](CreateSpec& s) { s.memory_bytes = 1; },
     "limits.memory_bytes: must be 16777216 to "},
    {"HugeMemory", [](CreateSpec& s) { s.memory_bytes = UINT64_MAX; }, "limits.memory_bytes: "},
    {"ZeroDisk", [](CreateSpec& s) { s.disk_bytes = 0; }, "limits.disk_bytes: "},
    {"ZeroCpus", [](CreateSpec& s) { s.cpu_millis = 0; }, "limits.cpus: must be 0.01 to 128"},
    {"ZeroPids", [](CreateSpec& s) { s.pids = 0; }, "limits.pids: must be 8 to 65536"},
    {"ManyLabels",
     [](CreateSpec& s) {
       for (int i = 0; i < 64; ++i) s.labels[std::to_string(i)] = "";
     },
     nullptr},
    {"TooManyLabels",
     [](CreateSpec& s) {
       for (int i = 0; i < 65; ++i) s.labels[std::to_string(i)] = "";
     },
     "labels: at most 64"},
    {"EmptyLabelKey", [](CreateSpec& s) { s.labels[""] = "x"; }, "labels: a key"},
    {"LongLabelKey", [](CreateSpec& s) { s.labels[std::string(129, 'x')] = ""; }, "labels: a key"},
    {"LongLabelValue", [](CreateSpec& s) { s.labels["k"] = std::string(1025, 'x'); },
     "labels: a value"},
    {"LabelKeyWithEquals", [](CreateSpec& s) { s.labels["a=b"] = ""; }, "labels: "},
    {"LabelValueWithEquals", [](CreateSpec& s) { s.labels["a"] = "b=c"; }, nullptr},
    {"LabelNotUtf8", [](CreateSpec& s) { s.labels["k"] = "\xc0\x80"; }, "labels: must be UTF-8"},
    {"EnvEmptyName", [](CreateSpec& s) { s.env[""] = "x"; }, "env: a name"},
    {"EnvNameWithEquals", [](CreateSpec& s) { s.env["a=b"] = "x"; }, "env: a name"},
    {"EnvWithNul", [](CreateSpec& s) { s.env["a"] = std::string("x\0y", 3); }, "env: a value"},
    {"EnvWithNewline", [](CreateSpec& s) { s.env["a"] = "x\ny"; }, nullptr},
    {"LargeEnv", [](CreateSpec& s) { s = env_of(36'800); }, nullptr},
    {"EnvTooLarge", [](CreateSpec& s) { s = env_of(36'864); }, "env: must be at most 36 KiB"},
    {"EnvTooLargeWhenEscaped", [](CreateSpec& s) { s.env["A"] = std::string(8'000, '\x01'); },
     "env: must be at most"},
};

class Resolve : public testing::TestWithParam<Case> {};

TEST_P(Resolve, TakesOrRefuses) {
  CreateSpec spec;
  GetParam().change(spec);
  const Result<Sandbox> r = resolve(spec, ServiceConfig());
  if (GetParam().error == nullptr) {
    EXPECT_TRUE(r) << r.error().text();
    return;
  }
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), Errc::kInvalid);
  EXPECT_TRUE(r.error().text().starts_with(GetParam().error)) << r.error().text();
}

INSTANTIATE_TEST_SUITE_P(Cases, Resolve, testing::ValuesIn(kCases),
                         [](const auto& c) { return std::string(c.param.name); });

}  // namespace
}  // namespace glovebox::sandbox
