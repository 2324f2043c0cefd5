// Ends, pauses and the clock.

#include "sandbox/test_world.h"

namespace glovebox::sandbox {
namespace {

using Made = Result<Sandbox>;

CreateSpec lasting(Millis timeout, OnTimeout on = OnTimeout::kKill) {
  CreateSpec spec;
  spec.timeout = timeout;
  spec.on_timeout = on;
  return spec;
}

// --- delete ---

TEST(Destroy, RemovesAndMayBeRepeated) {
  World w;
  const Sandbox s = w.make();
  EXPECT_TRUE(w.now(w.service->destroy(s.id)));
  EXPECT_TRUE(w.runtime->live.empty());
  EXPECT_TRUE(w.now(w.service->destroy(s.id)));
  const Sandbox gone = *w.get(s.id);
  EXPECT_EQ(gone.state, State::kStopped);
  EXPECT_EQ(gone.reason, "deleted");
  EXPECT_EQ(gone.ended_at, w.time->wall());
  EXPECT_FALSE(gone.remaining);
  EXPECT_EQ(w.now(w.service->destroy(SandboxId("sb-never"))).error().code(), Errc::kNotFound);
}

TEST(Destroy, ConcurrentCallsAllSucceed) {
  World w;
  const Sandbox s = w.make();
  w.runtime->plan(Call::kDestroy).takes = 50ms;
  std::vector<Slot<Result<void>>> calls;
  for (int i = 0; i < 10; ++i) {
    calls.push_back(w.begin(w.service->destroy(s.id)));
    w.time->advance(10ms);
  }
  w.time->advance(1s);
  for (const auto& c : calls) EXPECT_TRUE(*c && **c);
  EXPECT_EQ(w.runtime->calls(Call::kDestroy), 1);
}

TEST(Destroy, WorksInEveryStateThatHasAnEndBeforeIt) {
  World w;
  const Sandbox paused = w.make();
  ASSERT_TRUE(w.now(w.service->pause(paused.id)));
  EXPECT_TRUE(w.now(w.service->destroy(paused.id)));
  const Sandbox dead = w.make();
  w.runtime->die(dead.id, "x");
  w.time->settle();
  EXPECT_EQ(w.state(dead.id), State::kFailed);
  EXPECT_TRUE(w.now(w.service->destroy(dead.id)));
  EXPECT_EQ(w.state(dead.id), State::kFailed) << "history stays as it was";
}

TEST(Destroy, AFailureIsToldAndTriedAgainUntilItWorks) {
  World w;
  const Sandbox s = w.make();
  w.runtime->set_down(true);
  const auto refused = w.now(w.service->destroy(s.id));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Errc::kUnavailable);
  EXPECT_EQ(w.state(s.id), State::kStopping);
  EXPECT_EQ(w.service->snapshot().capacity_used, 1U) << "it is still there";
  w.time->advance(1min);
  w.runtime->set_down(false);
  w.time->advance(6s);
  EXPECT_EQ(w.state(s.id), State::kStopped);
  EXPECT_TRUE(w.runtime->live.empty());
  EXPECT_EQ(w.service->snapshot().capacity_used, 0U);
}

// Case C41: 200 rounds, with offsets of 0 to 199 ms.
TEST(Destroy, WinsOverAResumeAtAnyMoment) {
  World w;
  for (int i = 0; i < 200; ++i) {
    const Sandbox s = w.make();
    ASSERT_TRUE(w.now(w.service->pause(s.id)));
    w.runtime->plan(Call::kThaw).takes = 100ms;
    w.runtime->plan(Call::kDestroy).takes = 30ms;
    const auto resumed = w.begin(w.service->resume(s.id));
    w.time->advance(Millis(i));
    const auto deleted = w.begin(w.service->destroy(s.id));
    for (int step = 0; step < 30; ++step) {
      w.time->advance(10ms);
      if (*deleted) {
        ASSERT_TRUE(**deleted);
        EXPECT_FALSE(w.runtime->live.contains(s.id.str()));
        EXPECT_EQ(w.state(s.id), State::kStopped);
      }
    }
    ASSERT_TRUE(*deleted && *resumed);
    EXPECT_EQ((**resumed).has_value(), i >= 100) << i;
    if (!**resumed) EXPECT_EQ((*resumed)->error().code(), Errc::kConflict);
    w.runtime->plan(Call::kThaw).takes = {};
    w.runtime->plan(Call::kDestroy).takes = {};
  }
}

TEST(Destroy, WinsOverACreateAtAnyMoment) {
  World w;
  w.runtime->plan(Call::kCreate).takes = 100ms;
  for (int i = 0; i < 200; ++i) {
    const auto made = w.begin(w.service->create({}, ""));
    const SandboxId id = w.runtime->order.back();
    w.time->advance(Millis(i));
    const auto deleted = w.begin(w.service->destroy(id));
    w.time->advance(200ms);
    ASSERT_TRUE(*deleted && **deleted);
    ASSERT_TRUE(*made);
    EXPECT_EQ((**made).has_value(), i >= 100) << i;
    EXPECT_TRUE(w.runtime->live.empty());
  }
  EXPECT_EQ(w.service->snapshot().capacity_used, 0U);
}

TEST(Destroy, GoesOnWithoutAStoreThatTakesWrites) {
  World w;
  const Sandbox s = w.make();
  ASSERT_TRUE(w.db->run_script("PRAGMA query_only = ON"));
  EXPECT_TRUE(w.now(w.service->destroy(s.id)));
  EXPECT_TRUE(w.runtime->live.empty());
  EXPECT_EQ(w.service->snapshot().capacity_used, 0U);
  ASSERT_TRUE(w.db->run_script("PRAGMA query_only = OFF"));
  w.time->advance(6s);
  EXPECT_EQ(w.state(s.id), State::kStopped);
  EXPECT_EQ(w.reason(s.id), "deleted");
}

TEST(Destroy, ACrashAfterAnUnstoredEndIsNotAResurrection) {
  World w;
  const Sandbox s = w.make();
  ASSERT_TRUE(w.db->run_script("PRAGMA query_only = ON"));
  ASSERT_TRUE(w.now(w.service->destroy(s.id)));
  w.crash();
  w.time->advance(1s);
  EXPECT_EQ(w.state(s.id), State::kFailed);
  EXPECT_TRUE(w.reason(s.id).starts_with("lost"));
}

TEST(Death, IsAFailureWithItsReason) {
  World w;
  const Sandbox s = w.make();
  w.runtime->die(s.id, std::string(5000, 'x') + "\u00e9");
  w.time->settle();
  EXPECT_EQ(w.state(s.id), State::kFailed);
  EXPECT_TRUE(w.reason(s.id).starts_with("died: xxx"));
  EXPECT_LT(w.reason(s.id).size(), 1010U);
  EXPECT_EQ(w.service->snapshot().capacity_used, 0U);
  EXPECT_EQ(w.service->snapshot().died_total, 1U);
}

// --- expiry ---

TEST(Expiry, IsExactToTheMillisecond) {
  World w;
  const Sandbox s = w.make(lasting(1234ms));
  w.time->advance(1233ms);
  EXPECT_EQ(w.state(s.id), State::kRunning);
  w.time->advance(1ms);
  EXPECT_EQ(w.state(s.id), State::kStopped);
  EXPECT_EQ(w.reason(s.id), "expired: its time was up");
  EXPECT_EQ((*w.get(s.id)).ended_at, s.expires_at);
}

TEST(Expiry, AnExtendThatWasAcknowledgedHolds) {
  World w;
  const Sandbox s = w.make(lasting(10s));
  w.time->advance(9999ms);
  const Made extended = w.now(w.service->extend(s.id, 10s));
  ASSERT_TRUE(extended);
  EXPECT_EQ(extended.value().expires_at, w.time->wall() + 10s);
  w.time->advance(9999ms);
  EXPECT_EQ(w.state(s.id), State::kRunning);
  w.time->advance(1ms);
  EXPECT_EQ(w.state(s.id), State::kStopped);
}

TEST(Expiry, AnExtendAtTheDeadlineIsRefused) {
  World w;
  const Sandbox s = w.make(lasting(10s));
  // The call and the alarm are ready in the same moment; whichever runs first, the time is up.
  Slot<Made> extended;
  const std::unique_ptr<async::Alarm> alarm = w.time->make_alarm();
  const auto at_deadline = [](World& world, async::Alarm& a, SandboxId id) -> Task<Made> {
    co_await a.wait_until(world.time->now() + 10s);
    Made made = co_await world.service->extend(id, 10s);
    co_return made;
  };
  extended = w.begin(at_deadline(w, *alarm, s.id));
  w.time->advance(10s);
  ASSERT_TRUE(*extended);
  ASSERT_FALSE(**extended);
  EXPECT_EQ((*extended)->error().code(), Errc::kConflict);
  EXPECT_NE((*extended)->error().text().find("expired"), std::string::npos);
  EXPECT_EQ(w.state(s.id), State::kStopped);
}

TEST(Expiry, HoldsEvenWhenTheClockIsLate) {
  World w;
  for (int call = 0; call < 4; ++call) {
    const Sandbox s = w.make(lasting(10s));
    w.time->stall(10s);
    if (call == 0) EXPECT_FALSE(w.begin(w.service->extend(s.id, 10s))->value());
    if (call == 1) EXPECT_FALSE(w.begin(w.service->pause(s.id))->value());
    if (call == 2) EXPECT_FALSE(w.service->use(s.id));
    w.time->settle();
    w.time->advance(0s);
    EXPECT_EQ(w.state(s.id), State::kStopped) << call;
    EXPECT_TRUE(w.reason(s.id).starts_with("expired")) << call;
  }
}

TEST(Expiry, MayBeShortenedAndSetToAMoment) {
  World w;
  const Sandbox s = w.make(lasting(1h));
  ASSERT_TRUE(w.now(w.service->extend(s.id, 5s)));
  ASSERT_TRUE(w.now(w.service->extend_until(s.id, w.time->wall() + 3s)));
  w.time->advance(2999ms);
  EXPECT_EQ(w.state(s.id), State::kRunning);
  w.time->advance(1ms);
  EXPECT_EQ(w.state(s.id), State::kStopped);
}

TEST(Expiry, RefusesWhatItCannotHonour) {
  World w;
  const Sandbox s = w.make();
  for (const Millis bad : {Millis(0), Millis(-1), Millis(999), Millis(24h * 30) + 1ms,
                           Millis(std::int64_t{1'000'000'000'000'000})}) {
    EXPECT_EQ(w.now(w.service->extend(s.id, bad)).error().code(), Errc::kInvalid);
    EXPECT_EQ(w.now(w.service->create(lasting(bad), "")).error().code(), Errc::kInvalid);
  }
  EXPECT_EQ(w.now(w.service->extend_until(s.id, w.time->wall())).error().code(), Errc::kInvalid);
  EXPECT_EQ(w.now(w.service->extend(SandboxId("sb-x"), 5s)).error().code(), Errc::kNotFound);
  ASSERT_TRUE(w.now(w.service->destroy(s.id)));
  EXPECT_EQ(w.now(w.service->extend(s.id, 5s)).error().code(), Errc::kConflict);
}

TEST(Expiry, AJumpOfTheWallClockEndsNothing) {
  World w;
  const Sandbox s = w.make(lasting(10s));
  w.time->jump_wall(1h);
  w.time->advance(9999ms);
  EXPECT_EQ(w.state(s.id), State::kRunning);
  w.time->advance(1ms);
  EXPECT_EQ(w.state(s.id), State::kStopped);
}

TEST(Expiry, ThousandsEndInTheirOwnMoment) {
  ServiceConfig c;
  c.sandboxes_max = 5000;
  World w(c);
  std::vector<Sandbox> all;
  all.reserve(all.size() + 3000);
  for (int i = 0; i < 3000; ++i) all.push_back(w.make(lasting(Millis(5000 + i * 7 % 3000))));
  w.time->advance(4999ms);
  EXPECT_EQ(w.runtime->live.size(), 3000U);
  for (int t = 0; t < 3000; ++t) {
    w.time->advance(1ms);
    std::size_t expected = 0;
    for (int i = 0; i < 3000; ++i) expected += static_cast<std::size_t>(i * 7 % 3000 > t);
    ASSERT_EQ(w.runtime->live.size(), expected);
  }
  for (const Sandbox& s : all) EXPECT_EQ((*w.get(s.id)).ended_at, s.expires_at);
}

TEST(Expiry, IsTriedAgainWhenTheRuntimeIsAway) {
  World w;
  const Sandbox s = w.make(lasting(10s));
  w.runtime->set_down(true);
  w.time->advance(15s);
  EXPECT_EQ(w.state(s.id), State::kStopping);
  w.runtime->set_down(false);
  w.time->advance(6s);
  EXPECT_EQ(w.state(s.id), State::kStopped);
}

// --- idle ---

TEST(Idle, EndsWhatNobodyUses) {
  World w;
  CreateSpec spec;
  spec.idle_timeout = 10s;
  const Sandbox s = w.make(spec);
  w.time->advance(9s);
  w.service->touch(s.id);
  w.time->advance(9999ms);
  EXPECT_EQ(w.state(s.id), State::kRunning);
  w.time->advance(1ms);
  EXPECT_EQ(w.state(s.id), State::kStopped);
  EXPECT_EQ(w.reason(s.id), "idle: nobody used it for 10 s");
}

TEST(Idle, AnOpenStreamIsUse) {
  World w;
  CreateSpec spec;
  spec.idle_timeout = 10s;
  spec.timeout = 1h;
  const Sandbox s = w.make(spec);
  {
    auto a = w.service->use(s.id);
    ASSERT_TRUE(a);
    w.time->advance(1min);
    auto b = std::make_optional(w.service->use(s.id));
    EXPECT_EQ(w.service->snapshot().streams_open, 2U);
    w.time->advance(1min);
    b.reset();
    w.time->advance(1min);
    EXPECT_EQ(w.state(s.id), State::kRunning);
  }
  EXPECT_EQ(w.service->snapshot().streams_open, 0U);
  w.time->advance(9999ms);
  EXPECT_EQ(w.state(s.id), State::kRunning);
  w.time->advance(1ms);
  EXPECT_EQ(w.state(s.id), State::kStopped);
}

TEST(Idle, UseIsForRunningOnesOnly) {
  World w;
  CreateSpec spec;
  spec.env = {{"A", "b"}};
  const Sandbox s = w.make(spec);
  auto use = w.service->use(s.id);
  ASSERT_TRUE(use);
  EXPECT_EQ(use->id(), s.id);
  EXPECT_EQ(use->env().at("A"), "b");
  ASSERT_TRUE(w.now(w.service->pause(s.id)));
  EXPECT_EQ(w.service->use(s.id).error().code(), Errc::kConflict);
  ASSERT_TRUE(w.now(w.service->destroy(s.id)));
  const auto ended = w.service->use(s.id);
  EXPECT_EQ(ended.error().code(), Errc::kConflict);
  EXPECT_NE(ended.error().text().find("deleted"), std::string::npos);
  EXPECT_EQ(w.service->use(SandboxId("sb-x")).error().code(), Errc::kNotFound);
  w.service->touch(SandboxId("sb-x"));
}

TEST(Idle, AUseMayOutliveTheService) {
  World w;
  const Sandbox s = w.make();
  auto use = w.service->use(s.id);
  ASSERT_TRUE(use);
  w.service.reset();
  EXPECT_EQ(use->id(), s.id);
}

// --- pause and resume ---

TEST(Pause, StopsTheClock) {  // Case C56.
  World w;
  const Sandbox s = w.make(lasting(60s));
  w.time->advance(10s);
  const Sandbox paused = *w.now(w.service->pause(s.id));
  EXPECT_EQ(paused.state, State::kPaused);
  EXPECT_FALSE(paused.expires_at);
  EXPECT_EQ(paused.remaining, Millis(50s));
  EXPECT_TRUE(w.runtime->live.at(s.id.str()).frozen);
  w.time->advance(2h);
  const Sandbox resumed = *w.now(w.service->resume(s.id));
  EXPECT_EQ(resumed.state, State::kRunning);
  EXPECT_FALSE(w.runtime->live.at(s.id.str()).frozen);
  EXPECT_EQ(resumed.expires_at, w.time->wall() + 50s);
  EXPECT_FALSE(resumed.remaining);
  w.time->advance(50s);
  EXPECT_EQ(w.state(s.id), State::kStopped);
}

TEST(Pause, AtItsTimeoutIfAskedForAndEveryTime) {  // Case C56.
  World w;
  const Sandbox s = w.make(lasting(60s, OnTimeout::kPause));
  for (int i = 0; i < 3; ++i) {
    w.time->advance(59'999ms);
    EXPECT_EQ(w.state(s.id), State::kRunning);
    w.time->advance(1ms);
    EXPECT_EQ(w.state(s.id), State::kPaused);
    w.time->advance(1h);
    const Sandbox resumed = *w.now(w.service->resume(s.id));
    EXPECT_EQ(resumed.on_timeout, OnTimeout::kPause);
    EXPECT_EQ(resumed.expires_at, w.time->wall() + 60s) << "its time was used up: it gets it again";
  }
}

TEST(Pause, WhenIdleIfAskedFor) {
  World w;
  CreateSpec spec = lasting(60s, OnTimeout::kPause);
  spec.idle_timeout = 5s;
  const Sandbox s = w.make(spec);
  w.time->advance(5s);
  EXPECT_EQ(w.state(s.id), State::kPaused);
  EXPECT_EQ((*w.get(s.id)).remaining, Millis(55s));
  ASSERT_TRUE(w.now(w.service->resume(s.id)));
  w.time->advance(4999ms);
  EXPECT_EQ(w.state(s.id), State::kRunning);
  w.time->advance(1ms);
  EXPECT_EQ(w.state(s.id), State::kPaused);
}

TEST(Pause, MayBeRepeatedAndSoMayResume) {
  World w;
  const Sandbox s = w.make();
  ASSERT_TRUE(w.now(w.service->resume(s.id)));
  ASSERT_TRUE(w.now(w.service->pause(s.id)));
  ASSERT_TRUE(w.now(w.service->pause(s.id)));
  EXPECT_EQ(w.runtime->calls(Call::kFreeze), 1);
  ASSERT_TRUE(w.now(w.service->resume(s.id)));
  ASSERT_TRUE(w.now(w.service->resume(s.id)));
  EXPECT_EQ(w.runtime->calls(Call::kThaw), 1);
  ASSERT_TRUE(w.now(w.service->destroy(s.id)));
  EXPECT_EQ(w.now(w.service->pause(s.id)).error().code(), Errc::kConflict);
  EXPECT_EQ(w.now(w.service->resume(s.id)).error().code(), Errc::kConflict);
  EXPECT_EQ(w.now(w.service->resume(SandboxId("sb-x"))).error().code(), Errc::kNotFound);
}

TEST(Pause, AndResumeTakeTurns) {
  World w;
  const Sandbox s = w.make();
  w.runtime->plan(Call::kFreeze).takes = 50ms;
  w.runtime->plan(Call::kThaw).takes = 50ms;
  std::vector<Slot<Made>> calls;
  for (int i = 0; i < 8; ++i) {
    calls.push_back(w.begin(i % 2 == 0 ? w.service->pause(s.id) : w.service->resume(s.id)));
    w.time->advance(5ms);
  }
  w.time->advance(2s);
  for (const auto& c : calls) ASSERT_TRUE(*c);
  const bool frozen = w.runtime->live.at(s.id.str()).frozen;
  EXPECT_EQ(w.state(s.id), frozen ? State::kPaused : State::kRunning);
  EXPECT_TRUE(w.now(w.service->destroy(s.id)));
}

TEST(Pause, AFailedFreezeLosesNothing) {  // Case C55.
  World w;
  const Sandbox s = w.make(lasting(60s));
  w.runtime->plan(Call::kFreeze).failures = 1;
  w.runtime->plan(Call::kFreeze).acts_all_the_same = true;
  w.time->advance(10s);
  const Made paused = w.now(w.service->pause(s.id));
  ASSERT_FALSE(paused);
  EXPECT_EQ(paused.error().code(), Errc::kUnavailable);
  EXPECT_EQ(w.state(s.id), State::kRunning);
  EXPECT_FALSE(w.runtime->live.at(s.id.str()).frozen);
  EXPECT_EQ((*w.get(s.id)).expires_at, s.expires_at);
}

TEST(Pause, AFailedThawLosesNothing) {
  World w;
  const Sandbox s = w.make(lasting(60s));
  ASSERT_TRUE(w.now(w.service->pause(s.id)));
  w.runtime->plan(Call::kThaw).failures = 1;
  const Made resumed = w.now(w.service->resume(s.id));
  ASSERT_FALSE(resumed);
  EXPECT_EQ(w.state(s.id), State::kPaused);
  EXPECT_TRUE(w.runtime->live.at(s.id.str()).frozen);
  EXPECT_EQ((*w.get(s.id)).remaining, Millis(60s));
  ASSERT_TRUE(w.now(w.service->resume(s.id)));
}

TEST(Pause, AtTheTimeoutThatNeverWorksEndsInAKill) {
  World w;
  const Sandbox s = w.make(lasting(60s, OnTimeout::kPause));
  w.runtime->plan(Call::kFreeze).failures = 1000;
  w.time->advance(60s);
  EXPECT_EQ(w.state(s.id), State::kRunning);
  w.time->advance(2min);
  EXPECT_EQ(w.state(s.id), State::kStopped);
  EXPECT_TRUE(w.reason(s.id).starts_with("expired"));
}

TEST(Pause, ExtendSetsWhatIsLeft) {
  World w;
  const Sandbox s = w.make(lasting(60s));
  ASSERT_TRUE(w.now(w.service->pause(s.id)));
  const Sandbox extended = *w.now(w.service->extend(s.id, 5min));
  EXPECT_EQ(extended.remaining, Millis(5min));
  EXPECT_FALSE(extended.expires_at);
  w.time->advance(1h);
  EXPECT_EQ((*w.now(w.service->resume(s.id))).expires_at, w.time->wall() + 5min);
}

TEST(Pause, IsNotForEver) {
  ServiceConfig c;
  c.paused_max = 100s;
  World w(c);
  const Sandbox s = w.make();
  ASSERT_TRUE(w.now(w.service->pause(s.id)));
  w.time->advance(50s);
  w.crash(30s);
  w.time->advance(19'999ms);
  EXPECT_EQ(w.state(s.id), State::kPaused);
  w.time->advance(1ms);
  EXPECT_EQ(w.state(s.id), State::kStopped);
}

TEST(Pause, ADeathWhilePausedIsSeen) {
  World w;
  const Sandbox s = w.make();
  ASSERT_TRUE(w.now(w.service->pause(s.id)));
  w.runtime->die(s.id, "oom");
  w.time->settle();
  EXPECT_EQ(w.state(s.id), State::kFailed);
  EXPECT_EQ(w.now(w.service->resume(s.id)).error().code(), Errc::kConflict);
}

TEST(Pause, AnUnwritableStoreRefusesAndChangesNothing) {
  World w;
  const Sandbox s = w.make();
  ASSERT_TRUE(w.db->run_script("PRAGMA query_only = ON"));
  EXPECT_FALSE(w.now(w.service->pause(s.id)));
  EXPECT_FALSE(w.now(w.service->extend(s.id, 5s)));
  EXPECT_FALSE(w.now(w.service->create({}, "")));
  EXPECT_FALSE(w.runtime->live.at(s.id.str()).frozen);
  EXPECT_EQ(w.runtime->live.size(), 1U);
  ASSERT_TRUE(w.db->run_script("PRAGMA query_only = OFF"));
  EXPECT_EQ((*w.get(s.id)).expires_at, s.expires_at);
  EXPECT_TRUE(w.now(w.service->pause(s.id)));
  EXPECT_EQ(w.service->snapshot().capacity_used, 1U);
}

// --- the rest ---

TEST(Usage, AsksTheRuntime) {
  World w;
  const Sandbox s = w.make();
  EXPECT_EQ((*w.now(w.service->usage(s.id))).pids, 2U);
  ASSERT_TRUE(w.now(w.service->destroy(s.id)));
  EXPECT_EQ(w.now(w.service->usage(s.id)).error().code(), Errc::kConflict);
}

TEST(Close, WaitsForWhatIsUnderWayAndTakesNoMore) {
  World w;
  w.runtime->plan(Call::kCreate).takes = 100ms;
  const auto made = w.begin(w.service->create({}, ""));
  const auto closed = std::make_shared<bool>(false);
  boost::asio::co_spawn(*w.io, w.service->close(w.time->now() + 5s),
                        [closed](std::exception_ptr) { *closed = true; });
  w.time->settle();
  EXPECT_FALSE(*closed);
  EXPECT_EQ(w.now(w.service->create({}, "")).error().code(), Errc::kUnavailable);
  w.time->advance(100ms);
  EXPECT_TRUE(*made && **made);
  EXPECT_TRUE(*closed);
}

TEST(Close, EndsAtItsDeadline) {
  World w;
  const Sandbox s = w.make();
  w.runtime->plan(Call::kDestroy).held = true;
  w.begin(w.service->destroy(s.id));
  const auto closed = std::make_shared<bool>(false);
  boost::asio::co_spawn(*w.io, w.service->close(w.time->now() + 5s),
                        [closed](std::exception_ptr) { *closed = true; });
  w.time->advance(4999ms);
  EXPECT_FALSE(*closed);
  w.time->advance(1ms);
  EXPECT_TRUE(*closed);
}

TEST(Events, AreWrittenWithEveryChange) {
  World w;
  const Sandbox s = w.make();
  ASSERT_TRUE(w.now(w.service->extend(s.id, 10s)));
  ASSERT_TRUE(w.now(w.service->pause(s.id)));
  ASSERT_TRUE(w.now(w.service->resume(s.id)));
  ASSERT_TRUE(w.now(w.service->destroy(s.id)));
  const auto events = w.rows().events(s.id);
  std::string names;
  for (const EventRecord& e : events.value()) names += e.event + " ";
  EXPECT_EQ(names, "create ready extend pause paused resume ready stop gone ");
}

}  // namespace
}  // namespace glovebox::sandbox
