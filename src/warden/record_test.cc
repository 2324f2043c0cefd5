#include "warden/record.h"

#include <gtest/gtest.h>

#include "warden/names.h"

namespace glovebox::warden {
namespace {

Record running() {
  Record r;
  r.state = RecordState::kRunning;
  r.name = "sb-1";
  r.box = {"instance1", 3, 42, 4711, {1 << 30, 2 << 20, 1500, 64}};
  return r;
}

TEST(Record, ComesBackAsItWas) {
  const auto got = decode_record(encode_record(running()));
  ASSERT_TRUE(got) << got.error().text();
  EXPECT_EQ(got.value().name, "sb-1");
  EXPECT_EQ(got.value().box.instance, "instance1");
  EXPECT_EQ(got.value().box.slot, 3U);
  EXPECT_EQ(got.value().box.pid, 42);
  EXPECT_EQ(got.value().box.start_time, 4711U);
  EXPECT_EQ(got.value().box.limits.cpu_millis, 1500U);
  EXPECT_EQ(got.value(), running());
}

TEST(Record, HasRoomForTheLongestNames) {
  Record r = running();
  r.name.assign(64, 'a');
  r.box.instance.assign(64, 'b');
  const auto got = decode_record(encode_record(r));
  ASSERT_TRUE(got) << got.error().text();
  EXPECT_EQ(got.value(), r);
}

TEST(Record, EveryTruncationIsRefused) {
  const std::string whole = encode_record(running());
  for (std::size_t n = 0; n < whole.size(); ++n) {
    EXPECT_FALSE(decode_record(whole.substr(0, n))) << n;
  }
  EXPECT_EQ(whole.size(), kRecordBytes);
  EXPECT_FALSE(decode_record(whole + std::string(1, '\0')));
  EXPECT_FALSE(decode_record(std::string(100'000, 'x')));
}

TEST(Record, EveryChangedByteIsRefused) {
  const std::string whole = encode_record(running());
  for (std::size_t n = 0; n < whole.size(); ++n) {
    for (const int bit : {1, 128}) {
      std::string changed = whole;
      changed[n] = static_cast<char>(changed[n] ^ bit);
      EXPECT_FALSE(decode_record(changed)) << n;
    }
  }
}

struct Bad {
  const char* name;
  void (*change)(Record&);
};

class RecordRulesTest : public ::testing::TestWithParam<Bad> {};

TEST_P(RecordRulesTest, AreChecked) {
  Record r = running();
  GetParam().change(r);
  EXPECT_FALSE(decode_record(encode_record(r)));
}

const Bad kBad[] = {
    {"RunningNeedsAName", [](Record& r) { r.name.clear(); }},
    {"RunningNeedsAProcess", [](Record& r) { r.box.pid = 0; }},
    {"RunningNeedsAStartTime", [](Record& r) { r.box.start_time = 0; }},
    {"WarmHasNoName", [](Record& r) { r.state = RecordState::kWarm; }},
    {"PreparingHasNoProcess", [](Record& r) { r.state = RecordState::kPreparing; }},
    {"StatesAreKnown", [](Record& r) { r.state = static_cast<RecordState>(9); }},
    {"NamesHaveNoSlash", [](Record& r) { r.name = "../x"; }},
    {"NamesHaveAnEnd", [](Record& r) { r.name.assign(65, 'a'); }},
    {"InstancesHaveNoSlash", [](Record& r) { r.box.instance = "a/b"; }},
    {"InstancesHaveCharacters", [](Record& r) { r.box.instance.clear(); }},
    {"ProcessIdsArePositive", [](Record& r) { r.box.pid = -1; }},
};

INSTANTIATE_TEST_SUITE_P(Table, RecordRulesTest, ::testing::ValuesIn(kBad),
                         [](const auto& c) { return c.param.name; });

TEST(Names, AreLowerCaseDigitsAndDashes) {
  struct Case {
    std::string name;
    bool ok;
  };
  const Case cases[] = {{"a", true},         {"sb-0", true}, {std::string(64, 'z'), true},
                        {"", false},         {"A", false},   {std::string(65, 'z'), false},
                        {"a_b", false},      {"a.b", false}, {"a/b", false},
                        {"..", false},       {"a b", false}, {std::string("a\0b", 3), false},
                        {"\xc3\xa4", false}, {"a\n", false}};
  for (const Case& c : cases) EXPECT_EQ(valid_name(c.name), c.ok) << c.name;
}

TEST(Names, OfInstancesAreValidAndDiffer) {
  const auto a = make_instance_name();
  const auto b = make_instance_name();
  ASSERT_TRUE(a && b);
  EXPECT_TRUE(valid_name(a.value()));
  EXPECT_EQ(a.value().size(), 12U);
  EXPECT_NE(a.value(), b.value());
}

}  // namespace
}  // namespace glovebox::warden
