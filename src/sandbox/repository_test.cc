#include "sandbox/repository.h"

#include <gtest/gtest.h>

#include "sandbox/test_world.h"

namespace glovebox::sandbox {
namespace {

class RepositoryTest : public testing::Test {
 protected:
  RepositoryTest() : db_(open_db(dir_.file("t.db"))), rows_(db_) {}

  Sandbox add(const std::string& id, Labels labels = {}, State state = State::kRunning) {
    Sandbox s;
    s.id = SandboxId(id);
    s.template_id = "host";
    s.revision = 1;
    s.state = state;
    s.labels = std::move(labels);
    s.created_at = s.state_since = from_unix_ms(1000);
    if (is_terminal(state)) s.ended_at = s.created_at;
    EXPECT_TRUE(rows_.insert(s, std::nullopt));
    return s;
  }
  std::string ids(const Filter& filter, int limit = 1000, const std::string& cursor = "") {
    auto page = rows_.list(filter, limit, cursor);
    EXPECT_TRUE(page);
    std::string out;
    for (const Sandbox& s : page->sandboxes) out += s.id.str() + " ";
    next_ = page->next_cursor;
    return out;
  }

  TempDir dir_;
  store::Database db_;
  SandboxRepository rows_;
  std::optional<std::string> next_;
};

TEST_F(RepositoryTest, UpdatesOnlyWhatIsAsExpected) {
  const Sandbox s = add("a");
  Sandbox to = s;
  to.state = State::kStopping;
  to.revision = 2;
  EXPECT_TRUE(rows_.update(s, to, "stop"));
  const auto again = rows_.update(s, to, "stop");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), Errc::kInternal);
  Sandbox wrong_state = to;
  wrong_state.state = State::kPaused;
  EXPECT_FALSE(rows_.update(wrong_state, to, "stop"));
  EXPECT_EQ((**rows_.find(s.id)).revision, 2);
  EXPECT_EQ((*rows_.events(s.id)).size(), 2U) << "a refused update leaves no event";
}

TEST_F(RepositoryTest, TheStoreRefusesAnEndWithoutItsTime) {
  const Sandbox s = add("a");
  Sandbox to = s;
  to.state = State::kStopped;
  to.revision = 2;
  EXPECT_FALSE(rows_.update(s, to, "gone"));
  EXPECT_EQ((**rows_.find(s.id)).state, State::kRunning);
}

TEST_F(RepositoryTest, AnIdIsUsedOnce) {
  const Sandbox s = add("a");
  const auto twice = rows_.insert(s, std::nullopt);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code(), Errc::kConflict);
}

TEST_F(RepositoryTest, FiltersByLabelsAndStates) {
  add("a", {{"app", "x"}, {"env", "prod"}});
  add("b", {{"app", "x"}, {"env", "dev"}}, State::kPaused);
  add("c", {{"app", "y"}, {"env", "prod"}}, State::kStopped);
  add("d");
  EXPECT_EQ(ids({}), "d c b a ");
  EXPECT_EQ(ids({.labels = {{"app", "x"}}, .states = {}}), "b a ");
  EXPECT_EQ(ids({.labels = {{"app", "x"}, {"env", "prod"}}, .states = {}}), "a ");
  EXPECT_EQ(ids({.labels = {{"app", "x"}, {"app", "y"}}, .states = {}}), "");
  EXPECT_EQ(ids({.labels = {{"app", "X"}}, .states = {}}), "");
  EXPECT_EQ(ids({.labels = {{"app' OR 1=1 --", "x"}}, .states = {}}), "");
  EXPECT_EQ(ids({.labels = {}, .states = {State::kPaused}}), "b ");
  EXPECT_EQ(ids({.labels = {}, .states = {State::kPaused, State::kStopped}}), "c b ");
  EXPECT_EQ(ids({.labels = {{"env", "prod"}}, .states = {State::kRunning}}), "a ");
}

TEST_F(RepositoryTest, FiltersByMoreLabelsThanTheSqlHas) {
  Labels labels;
  Filter filter;
  for (int i = 0; i < 10; ++i) {
    labels["k" + std::to_string(i)] = "v";
    filter.labels.emplace_back("k" + std::to_string(i), "v");
  }
  add("a", labels);
  labels["k9"] = "w";
  add("b", labels);
  EXPECT_EQ(ids(filter), "a ");
}

TEST_F(RepositoryTest, PagesStandStillWhileSandboxesCome) {
  for (int i = 0; i < 5; ++i) add("s" + std::to_string(i), {{"l", "v"}});
  EXPECT_EQ(ids({}, 2), "s4 s3 ");
  ASSERT_TRUE(next_);
  add("new", {{"l", "v"}});
  const std::string cursor = *next_;
  EXPECT_EQ(ids({}, 2, cursor), "s2 s1 ");
  EXPECT_EQ(ids({.labels = {{"l", "v"}}, .states = {}}, 2, cursor), "s2 s1 ");
  EXPECT_EQ(ids({}, 2, *next_), "s0 ");
  EXPECT_FALSE(next_);
  EXPECT_EQ(ids({}, 6), "new s4 s3 s2 s1 s0 ");
  EXPECT_FALSE(next_) << "a full last page is the last";
}

TEST_F(RepositoryTest, RefusesOddLimitsAndCursors) {
  for (const int limit : {0, -1, 1001}) EXPECT_FALSE(rows_.list({}, limit, ""));
  for (const char* cursor :
       {"x", "1", "czE6", "czE6LTE", "czE6MTI5OTk5OTk5OTk5OTk5OTk5OTk5OTk", "\xff"}) {
    const auto page = rows_.list({}, 10, cursor);
    ASSERT_FALSE(page) << cursor;
    EXPECT_EQ(page.error().code(), Errc::kInvalid);
  }
}

TEST_F(RepositoryTest, LabelsGoWithTheirSandbox) {
  add("a", {{"x", "y"}}, State::kStopped);
  SandboxRepository::Keep keep;
  keep.ended_after = from_unix_ms(2000);
  keep.keys_max = keep.events_max = 1000;
  ASSERT_TRUE(rows_.purge(keep));
  auto rows = db_.query("SELECT count(*) FROM label_index");
  ASSERT_TRUE(rows && rows->next());
  EXPECT_EQ(rows->integer(0), 0);
}

TEST_F(RepositoryTest, ADamagedRowIsAnErrorAndNoCrash) {
  add("a");
  for (const char* damage :
       {"UPDATE sandboxes SET isolation = 'x'",
        "UPDATE sandboxes SET isolation = 'vm', labels = x'ff'",
        "UPDATE sandboxes SET labels = x'00000000', env = x'01000000ffffffff'"}) {
    ASSERT_TRUE(db_.run(damage));
    const auto found = rows_.find(SandboxId("a"));
    ASSERT_FALSE(found) << damage;
    EXPECT_EQ(found.error().code(), Errc::kInternal);
    EXPECT_FALSE(rows_.live());
  }
}

TEST(RequestHash, DiffersInEveryField) {
  std::set<std::string> hashes{request_hash({})};
  const auto differs = [&](auto change) {
    CreateSpec spec;
    change(spec);
    EXPECT_TRUE(hashes.insert(request_hash(spec)).second);
  };
  differs([](CreateSpec& s) { s.template_id = "x"; });
  differs([](CreateSpec& s) { s.name = "x"; });
  differs([](CreateSpec& s) { s.timeout = 0ms; });
  differs([](CreateSpec& s) { s.idle_timeout = 0ms; });
  differs([](CreateSpec& s) { s.memory_bytes = 0; });
  differs([](CreateSpec& s) { s.disk_bytes = 0; });
  differs([](CreateSpec& s) { s.cpu_millis = 0; });
  differs([](CreateSpec& s) { s.pids = 0; });
  differs([](CreateSpec& s) { s.env = {{"a", "b"}}; });
  differs([](CreateSpec& s) { s.env = {{"ab", ""}}; });
  differs([](CreateSpec& s) { s.labels = {{"a", "b"}}; });
  differs([](CreateSpec& s) { s.isolation = IsolationClass::kSharedKernel; });
  differs([](CreateSpec& s) { s.on_timeout = OnTimeout::kPause; });
}

}  // namespace
}  // namespace glovebox::sandbox
