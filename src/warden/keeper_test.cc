#include "warden/keeper.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "os/files.h"
#include "testing/temp_dir.h"
#include "warden/fake_host.h"

namespace glovebox::warden {
namespace {

CreateRequest request(const std::string& name) {
  const native::Limits l;
  return {name, "host", l.memory_bytes, l.disk_bytes, l.cpu_millis, l.pids};
}

// One life of a warden: what goes away with its process.
struct Life {
  Life(FakeWorld& world, const testing::TempDir& dir, const KeeperConfig& config)
      : host(world),
        records(*RecordStore::open(dir.path())),
        loop(*Loop::make()),
        null(::open("/dev/null", O_WRONLY | O_CLOEXEC)),
        log(null.get(), log::Level::kDebug, log::Form::kJson),
        keeper(config, host, records, loop, log,
               [this](ExitedEvent e) { exits.push_back(std::move(e)); }) {}

  // Until what was killed is dead and nothing is due at once.
  void settle() {
    for (;;) {
      while (keeper.step()) {
      }
      if (keeper.dying() == 0) return;
      see_deaths(after(std::chrono::seconds(5)));
    }
  }
  void see_deaths(Deadline until = Clock::now()) { ASSERT_TRUE(loop.turn(until)); }

  FakeHost host;
  RecordStore records;
  Loop loop;
  UniqueFd null;
  log::Logger log;
  std::vector<ExitedEvent> exits;
  Keeper keeper;
};

class KeeperTest : public ::testing::Test {
 protected:
  KeeperTest() {
    config_.pool_size = 0;
    config_.erase_patience = Clock::duration::zero();
    start();
  }
  // A new warden over the same host and disk, the former one's memory lost.
  void start() {
    life_.reset();
    life_ = std::make_unique<Life>(world_, dir_, config_);
    ASSERT_TRUE(keeper().recover());
  }
  void with_pool(std::uint32_t size) {
    config_.pool_size = size;
    start();
    life_->settle();
    ASSERT_EQ(keeper().warm(), size);
    world_.calls.clear();
  }
  Keeper& keeper() { return life_->keeper; }
  std::vector<std::string> names() {
    std::vector<std::string> all;
    for (const ListEntry& e : keeper().list("").entries) all.push_back(e.name);
    return all;
  }
  std::string instance_of(const std::string& name) {
    for (const ListEntry& e : keeper().list("").entries) {
      if (e.name == name) return e.agent_socket.substr(6, 12);  // /fake/INSTANCE.sock
    }
    return {};
  }
  std::size_t record_count() { return os::list_dir(AT_FDCWD, dir_ / "records")->size(); }
  void expect_nothing_left() {
    life_->settle();
    EXPECT_TRUE(world_.sandboxes.empty());
    EXPECT_TRUE(world_.debris.empty());
    EXPECT_EQ(record_count(), 0U);
  }

  testing::TempDir dir_;
  FakeWorld world_;
  KeeperConfig config_;
  std::unique_ptr<Life> life_;
};

TEST_F(KeeperTest, CreatesListsAndDestroys) {
  auto made = keeper().create(request("a"));
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_TRUE(made->agent_socket.starts_with("/fake/"));
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
  ASSERT_TRUE(keeper().destroy("a"));
  EXPECT_TRUE(names().empty());
  expect_nothing_left();
}

TEST_F(KeeperTest, DestroyKillsBeforeItAnswers) {
  ASSERT_TRUE(keeper().create(request("a")));
  const pid_t pid = world_.sandboxes.at(instance_of("a")).identity.pid;
  ASSERT_TRUE(keeper().destroy("a"));
  siginfo_t info{};
  EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(info.si_status, SIGKILL);
}

TEST_F(KeeperTest, DestroyThawsWhatItKilled) {
  ASSERT_TRUE(keeper().create(request("a")));
  const std::string instance = instance_of("a");
  ASSERT_TRUE(keeper().freeze("a"));
  ASSERT_TRUE(keeper().destroy("a"));
  EXPECT_FALSE(world_.sandboxes.at(instance).frozen);
}

TEST_F(KeeperTest, DestroyingWhatIsNotThereSucceeds) { EXPECT_TRUE(keeper().destroy("nobody")); }

TEST_F(KeeperTest, ANameIsFreeAtOnceButItsSlotIsNot) {
  ASSERT_TRUE(keeper().create(request("a")));
  const std::uint32_t slot = world_.sandboxes.at(instance_of("a")).identity.slot;
  ASSERT_TRUE(keeper().destroy("a"));
  ASSERT_TRUE(keeper().create(request("a")));  // The fake refuses a slot that is in use.
  EXPECT_NE(world_.sandboxes.at(instance_of("a")).identity.slot, slot);
  life_->settle();
  ASSERT_TRUE(keeper().create(request("b")));
  EXPECT_EQ(world_.sandboxes.at(instance_of("b")).identity.slot, slot);
}

TEST_F(KeeperTest, AllOtherCallsNeedASandbox) {
  EXPECT_EQ(keeper().freeze("a").error().code(), Errc::kNotFound);
  EXPECT_EQ(keeper().thaw("a").error().code(), Errc::kNotFound);
  EXPECT_EQ(keeper().usage("a").error().code(), Errc::kNotFound);
  EXPECT_EQ(keeper().sockets({"a", 1, 0}).error().code(), Errc::kNotFound);
}

TEST_F(KeeperTest, FreezeAndThawMayBeRepeated) {
  ASSERT_TRUE(keeper().create(request("a")));
  ASSERT_TRUE(keeper().freeze("a"));
  ASSERT_TRUE(keeper().freeze("a"));
  EXPECT_EQ(keeper().list("").entries[0].frozen, 1);
  ASSERT_TRUE(keeper().thaw("a"));
  ASSERT_TRUE(keeper().thaw("a"));
  EXPECT_EQ(keeper().list("").entries[0].frozen, 0);
}

TEST_F(KeeperTest, UsageTellsTheLimitsThatWereAskedFor) {
  CreateRequest r = request("a");
  r.memory_bytes = 128 << 20;
  r.pids = 99;
  ASSERT_TRUE(keeper().create(r));
  auto usage = keeper().usage("a");
  ASSERT_TRUE(usage);
  EXPECT_EQ(usage->memory_limit_bytes, 128U << 20);
  EXPECT_EQ(usage->pids_limit, 99U);
  EXPECT_EQ(usage->pids, 3U);
}

struct BadCreate {
  const char* name;
  void (*change)(CreateRequest&);
  const char* text;
};

class KeeperRefusalTest : public KeeperTest, public ::testing::WithParamInterface<BadCreate> {};

TEST_P(KeeperRefusalTest, IsInvalidAndMakesNothing) {
  CreateRequest r = request("a");
  GetParam().change(r);
  auto made = keeper().create(r);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Errc::kInvalid);
  EXPECT_NE(made.error().text().find(GetParam().text), std::string::npos) << made.error().text();
  EXPECT_EQ(world_.count("launch"), 0);
  EXPECT_EQ(record_count(), 0U);
}

const BadCreate kBadCreates[] = {
    {"EmptyName", [](CreateRequest& r) { r.name.clear(); }, "name"},
    {"LongName", [](CreateRequest& r) { r.name.assign(65, 'a'); }, "name"},
    {"PathAsName", [](CreateRequest& r) { r.name = "../../etc"; }, "name"},
    {"UnknownTemplate", [](CreateRequest& r) { r.template_id = "debian"; }, "template"},
    {"NoMemory", [](CreateRequest& r) { r.memory_bytes = 0; }, "memory_bytes"},
    {"AllMemory", [](CreateRequest& r) { r.memory_bytes = UINT64_MAX; }, "memory_bytes"},
    {"NoDisk", [](CreateRequest& r) { r.disk_bytes = 0; }, "disk_bytes"},
    {"AllDisk", [](CreateRequest& r) { r.disk_bytes = UINT64_MAX; }, "disk_bytes"},
    {"NoCpu", [](CreateRequest& r) { r.cpu_millis = 0; }, "cpu_millis"},
    {"AllCpu", [](CreateRequest& r) { r.cpu_millis = UINT32_MAX; }, "cpu_millis"},
    {"NoPids", [](CreateRequest& r) { r.pids = 0; }, "pids"},
    {"AllPids", [](CreateRequest& r) { r.pids = UINT32_MAX; }, "pids"},
};

INSTANTIATE_TEST_SUITE_P(Table, KeeperRefusalTest, ::testing::ValuesIn(kBadCreates),
                         [](const auto& c) { return c.param.name; });

TEST_F(KeeperTest, SocketCountsAreBounded) {
  ASSERT_TRUE(keeper().create(request("a")));
  EXPECT_EQ(keeper().sockets({"a", 16, 0})->size(), 16U);
  EXPECT_EQ(keeper().sockets({"a", 0, 0}).error().code(), Errc::kInvalid);
  EXPECT_EQ(keeper().sockets({"a", 17, 0}).error().code(), Errc::kInvalid);
}

TEST_F(KeeperTest, ANameInUseIsAConflict) {
  ASSERT_TRUE(keeper().create(request("a")));
  EXPECT_EQ(keeper().create(request("a")).error().code(), Errc::kConflict);
}

TEST_F(KeeperTest, TheLimitOfSandboxesIsExhaustion) {
  config_.sandboxes_max = 2;
  start();
  ASSERT_TRUE(keeper().create(request("a")));
  ASSERT_TRUE(keeper().create(request("b")));
  EXPECT_EQ(keeper().create(request("c")).error().code(), Errc::kExhausted);
  ASSERT_TRUE(keeper().destroy("a"));
  EXPECT_TRUE(keeper().create(request("c")));
}

TEST_F(KeeperTest, WithoutAFreeSlotItErasesFirst) {
  config_.slots = 1;
  start();
  ASSERT_TRUE(keeper().create(request("a")));
  EXPECT_EQ(keeper().create(request("b")).error().code(), Errc::kExhausted);
  ASSERT_TRUE(keeper().destroy("a"));
  EXPECT_TRUE(keeper().create(request("b")));
}

TEST_F(KeeperTest, WithoutAFreeSlotAWarmOneGivesWay) {
  config_.slots = 1;
  with_pool(1);
  CreateRequest r = request("a");
  r.disk_bytes /= 2;
  EXPECT_TRUE(keeper().create(r));
  EXPECT_EQ(keeper().warm(), 0U);
}

TEST_F(KeeperTest, AFailedLaunchLeavesNothing) {
  world_.launch_error = Error(Errc::kExhausted, "no memory left");
  auto made = keeper().create(request("a"));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Errc::kExhausted);
  EXPECT_EQ(made.error().text(), "create a: no memory left");
  EXPECT_TRUE(names().empty());
  expect_nothing_left();
}

TEST_F(KeeperTest, AClaimLaunchesNothing) {
  with_pool(2);
  ASSERT_TRUE(keeper().create(request("a")));
  EXPECT_EQ(world_.count("launch"), 0);
  EXPECT_EQ(keeper().warm(), 1U);
  life_->settle();
  EXPECT_EQ(keeper().warm(), 2U);
  EXPECT_EQ(world_.count("launch"), 1);
}

TEST_F(KeeperTest, AClaimSetsTheLimitsAskedFor) {
  with_pool(1);
  CreateRequest r = request("a");
  r.memory_bytes = 64 << 20;
  r.cpu_millis = 250;
  ASSERT_TRUE(keeper().create(r));
  EXPECT_EQ(world_.count("launch"), 0);
  const native::Limits& l = world_.sandboxes.at(instance_of("a")).identity.limits;
  EXPECT_EQ(l.memory_bytes, 64U << 20);
  EXPECT_EQ(l.cpu_millis, 250U);
  EXPECT_EQ(keeper().usage("a")->memory_limit_bytes, 64U << 20);
}

TEST_F(KeeperTest, AnotherDiskSizeIsLaunchedCold) {
  with_pool(1);
  CreateRequest r = request("a");
  r.disk_bytes /= 2;
  ASSERT_TRUE(keeper().create(r));
  EXPECT_EQ(world_.count("launch"), 1);
  EXPECT_EQ(keeper().warm(), 1U);
}

TEST_F(KeeperTest, ADeadWarmOneIsNeverClaimed) {
  with_pool(2);
  std::string first;
  for (const auto& [instance, sandbox] : world_.sandboxes) {
    first = instance;
    world_.kill(instance);
  }
  ASSERT_TRUE(keeper().create(request("a")));
  EXPECT_EQ(world_.count("launch"), 1);
  EXPECT_NE(instance_of("a"), first);
  EXPECT_TRUE(life_->exits.empty());
}

TEST_F(KeeperTest, AWarmOneWhoseLimitsCannotBeSetIsReplacedByAColdOne) {
  with_pool(1);
  world_.set_limits_error = Error(Errc::kInternal, "cgroup");
  CreateRequest r = request("a");
  r.pids = 100;
  ASSERT_TRUE(keeper().create(r));
  EXPECT_EQ(world_.count("launch"), 1);
  EXPECT_EQ(names().size(), 1U);
}

TEST_F(KeeperTest, DyingWarmOnesAreReplacedMoreAndMoreSlowly) {
  world_.dies_at_once = true;
  config_.pool_size = 1;
  start();
  life_->settle();
  life_->see_deaths();
  life_->settle();
  EXPECT_EQ(world_.count("launch"), 1);  // The next is put off.
  EXPECT_GT(keeper().next_due(), Clock::now());
}

TEST_F(KeeperTest, FailingRefillsAreRepeatedMoreAndMoreSlowly) {
  world_.launch_error = Error(Errc::kInternal, "no");
  config_.pool_size = 4;
  start();
  life_->settle();
  EXPECT_EQ(world_.count("launch"), 1);
  EXPECT_GT(keeper().next_due(), Clock::now());
}

TEST_F(KeeperTest, ADeathIsToldOnceAndErased) {
  ASSERT_TRUE(keeper().create(request("a")));
  const std::string instance = instance_of("a");
  world_.sandboxes.at(instance).exit_reason = "out of memory";
  world_.kill(instance);
  life_->see_deaths();
  life_->see_deaths();
  ASSERT_EQ(life_->exits.size(), 1U);
  EXPECT_EQ(life_->exits[0].name, "a");
  EXPECT_EQ(life_->exits[0].reason, "out of memory");
  EXPECT_TRUE(names().empty());
  expect_nothing_left();
}

TEST_F(KeeperTest, ADestroyIsNotToldAsADeath) {
  ASSERT_TRUE(keeper().create(request("a")));
  ASSERT_TRUE(keeper().destroy("a"));
  life_->settle();
  life_->see_deaths();
  EXPECT_TRUE(life_->exits.empty());
}

TEST_F(KeeperTest, AFailedEraseIsRepeatedAndKeepsItsRecordAndSlot) {
  ASSERT_TRUE(keeper().create(request("a")));
  world_.erase_error = Error(Errc::kConflict, "busy");
  ASSERT_TRUE(keeper().destroy("a"));
  life_->settle();
  EXPECT_EQ(world_.count("erase"), 1);
  EXPECT_EQ(record_count(), 1U);
  EXPECT_EQ(keeper().erasing(), 1U);
  world_.erase_error.reset();
  start();
  expect_nothing_left();
}

TEST_F(KeeperTest, ListsArePagedByName) {
  std::vector<std::string> expected;
  for (int i = 100; i < 140; ++i) {
    expected.push_back("sb-" + std::to_string(i));
    ASSERT_TRUE(keeper().create(request(expected.back())));
  }
  const ListReply all = keeper().list("");
  EXPECT_EQ(all.entries.size(), 40U);
  EXPECT_EQ(all.more, 0);
  const ListReply rest = keeper().list("sb-130");
  ASSERT_EQ(rest.entries.size(), 9U);
  EXPECT_EQ(rest.entries[0].name, "sb-131");
}

TEST_F(KeeperTest, ARestartTakesBackWhatLives) {
  CreateRequest r = request("a");
  r.pids = 77;
  ASSERT_TRUE(keeper().create(r));
  ASSERT_TRUE(keeper().create(request("b")));
  ASSERT_TRUE(keeper().freeze("b"));
  const std::string instance = instance_of("a");
  start();
  life_->settle();
  EXPECT_EQ(names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(instance_of("a"), instance);
  EXPECT_EQ(keeper().usage("a")->pids_limit, 77U);
  EXPECT_EQ(keeper().list("").entries[1].frozen, 1);
  EXPECT_TRUE(life_->exits.empty());
  world_.kill(instance);
  life_->see_deaths();
  EXPECT_EQ(life_->exits.size(), 1U);
}

TEST_F(KeeperTest, ARestartKeepsAClaimedOne) {
  with_pool(1);
  ASSERT_TRUE(keeper().create(request("a")));
  const std::string instance = instance_of("a");
  start();
  EXPECT_EQ(instance_of("a"), instance);
}

TEST_F(KeeperTest, ARestartTellsAndErasesWhatDiedMeanwhile) {
  ASSERT_TRUE(keeper().create(request("a")));
  world_.kill(instance_of("a"));
  start();
  ASSERT_EQ(life_->exits.size(), 1U);
  EXPECT_EQ(life_->exits[0].name, "a");
  expect_nothing_left();
}

TEST_F(KeeperTest, ARestartErasesWarmOnes) {
  with_pool(3);
  config_.pool_size = 0;
  start();
  expect_nothing_left();
  EXPECT_TRUE(life_->exits.empty());
}

TEST_F(KeeperTest, ARestartGoesOnWithDestroys) {
  ASSERT_TRUE(keeper().create(request("a")));
  world_.erase_error = Error(Errc::kConflict, "busy");
  ASSERT_TRUE(keeper().destroy("a"));
  world_.erase_error.reset();
  start();
  EXPECT_TRUE(names().empty());
  EXPECT_TRUE(life_->exits.empty());
  expect_nothing_left();
}

TEST_F(KeeperTest, ARestartErasesWhatWasBeingPrepared) {
  Record r;
  r.name = "a";
  r.box.instance = "halfway";
  ASSERT_TRUE(life_->records.put(r));
  world_.debris.insert("halfway");
  start();
  EXPECT_TRUE(names().empty());
  expect_nothing_left();
}

TEST_F(KeeperTest, ARestartErasesWhatHasADamagedRecord) {
  ASSERT_TRUE(keeper().create(request("a")));
  const std::string instance = instance_of("a");
  ASSERT_TRUE(os::put_file(AT_FDCWD, dir_ / ("records/" + instance), "rubbish", 0600));
  start();
  // At once and not later: its slot is not known.
  EXPECT_TRUE(world_.sandboxes.empty());
  EXPECT_TRUE(keeper().create(request("a")));
}

TEST_F(KeeperTest, WhatCannotBeTakenBackNowKeepsItsName) {
  ASSERT_TRUE(keeper().create(request("a")));
  world_.adopt_error = Error(Errc::kExhausted, "too many open files");
  start();
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
  EXPECT_EQ(keeper().usage("a").error().code(), Errc::kUnavailable);
  EXPECT_EQ(keeper().create(request("a")).error().code(), Errc::kConflict);
  EXPECT_EQ(world_.sandboxes.size(), 1U);

  world_.adopt_error.reset();
  EXPECT_EQ(keeper().sweep(), 0);
  EXPECT_TRUE(keeper().usage("a"));
}

TEST_F(KeeperTest, WhatCannotBeTakenBackCanBeDestroyed) {
  ASSERT_TRUE(keeper().create(request("a")));
  world_.adopt_error = Error(Errc::kExhausted, "too many open files");
  start();
  ASSERT_TRUE(keeper().destroy("a"));
  expect_nothing_left();
}

TEST_F(KeeperTest, SlotsOfLivingOnesStayTakenAfterARestart) {
  ASSERT_TRUE(keeper().create(request("a")));
  ASSERT_TRUE(keeper().create(request("b")));
  ASSERT_TRUE(keeper().destroy("a"));
  life_->settle();
  start();
  ASSERT_TRUE(keeper().create(request("c")));  // The fake refuses a slot that is in use.
  ASSERT_TRUE(keeper().create(request("d")));
}

TEST_F(KeeperTest, TheSweeperErasesOnlyWhatHasNoOwner) {
  config_.pool_size = 1;
  start();
  life_->settle();
  ASSERT_TRUE(keeper().create(request("a")));
  ASSERT_TRUE(keeper().create(request("b")));
  ASSERT_TRUE(keeper().destroy("b"));
  world_.debris = {"stray-1", "stray-2"};
  EXPECT_EQ(keeper().sweep(), 2);
  EXPECT_TRUE(world_.debris.empty());
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
  EXPECT_TRUE(keeper().usage("a"));
}

TEST_F(KeeperTest, TheSweeperRunsOnItsTimer) {
  config_.sweep_every = Clock::duration::zero();
  start();
  world_.debris.insert("stray");
  EXPECT_LE(keeper().next_due(), Clock::now());
  EXPECT_TRUE(keeper().step());
  EXPECT_TRUE(world_.debris.empty());
}

TEST_F(KeeperTest, ShuttingDownErasesWarmOnesAndLeavesTheRest) {
  with_pool(2);
  ASSERT_TRUE(keeper().create(request("a")));
  ASSERT_TRUE(keeper().create(request("b")));
  ASSERT_TRUE(keeper().destroy("b"));
  keeper().shut_down(after(std::chrono::seconds(5)));
  EXPECT_EQ(world_.sandboxes.size(), 1U);
  EXPECT_EQ(record_count(), 1U);
  config_.pool_size = 0;
  start();
  EXPECT_EQ(names(), std::vector<std::string>{"a"});
}

TEST_F(KeeperTest, WhatIsNotDeadIsNotErasedYet) {
  world_.pidfd.reset(::eventfd(0, EFD_CLOEXEC));
  ASSERT_TRUE(keeper().create(request("a")));
  ASSERT_TRUE(keeper().destroy("a"));
  EXPECT_EQ(keeper().dying(), 1U);
  EXPECT_FALSE(keeper().step());
  EXPECT_EQ(world_.count("erase"), 0);

  const std::uint64_t one = 1;
  ASSERT_EQ(::write(world_.pidfd.get(), &one, sizeof one), 8);
  life_->see_deaths();
  EXPECT_EQ(keeper().dying(), 0U);
  EXPECT_TRUE(keeper().step());
  EXPECT_EQ(world_.count("erase"), 1);
}

TEST_F(KeeperTest, WhatDoesNotDieIsErasedAnywayInTheEnd) {
  config_.death_patience = Clock::duration::zero();
  start();
  world_.pidfd.reset(::eventfd(0, EFD_CLOEXEC));
  ASSERT_TRUE(keeper().create(request("a")));
  ASSERT_TRUE(keeper().destroy("a"));
  EXPECT_TRUE(keeper().step());
  EXPECT_EQ(world_.count("erase"), 1);
}

TEST_F(KeeperTest, PatienceIsForErasesOnly) {
  config_.erase_patience = std::chrono::hours(1);
  start();
  ASSERT_TRUE(keeper().create(request("a")));
  ASSERT_TRUE(keeper().destroy("a"));
  life_->settle();
  EXPECT_EQ(world_.count("erase"), 0);
  EXPECT_FALSE(keeper().behind());
}

TEST_F(KeeperTest, ALongListToEraseIsNotPutOff) {
  config_.erasing_max = 2;
  start();
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(keeper().create(request(name)));
    ASSERT_TRUE(keeper().destroy(name));
  }
  while (keeper().dying() > 0) life_->see_deaths(after(std::chrono::seconds(5)));
  EXPECT_TRUE(keeper().behind());
  EXPECT_TRUE(keeper().step());
  EXPECT_FALSE(keeper().behind());
}

}  // namespace
}  // namespace glovebox::warden
