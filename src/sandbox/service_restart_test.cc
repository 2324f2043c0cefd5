// What a restart and a disagreement between store and runtime lead to.

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

// Case C40.
TEST(Restart, KeepsTheRenewedDeadline) {
  World w;
  const Sandbox s = w.make(lasting(120s));
  ASSERT_TRUE(w.now(w.service->extend(s.id, 300s)));
  w.time->advance(60s);
  w.crash(30s);
  EXPECT_EQ(w.state(s.id), State::kRunning);
  w.time->advance(209'999ms);
  EXPECT_EQ(w.state(s.id), State::kRunning);
  w.time->advance(1ms);
  EXPECT_EQ(w.state(s.id), State::kStopped);
}

TEST(Restart, EndsWhatIsOverdueAtOnce) {
  World w;
  const Sandbox kill = w.make(lasting(60s));
  const Sandbox pause = w.make(lasting(60s, OnTimeout::kPause));
  w.crash(61s);
  EXPECT_EQ(w.state(kill.id), State::kStopped);
  EXPECT_EQ(w.state(pause.id), State::kPaused);
  EXPECT_EQ(w.runtime->live.size(), 1U);
}

TEST(Restart, KeepsWhatAPausedOneHasLeft) {
  World w;
  const Sandbox s = w.make(lasting(60s));
  w.time->advance(10s);
  ASSERT_TRUE(w.now(w.service->pause(s.id)));
  w.crash(24h);
  EXPECT_EQ(w.state(s.id), State::kPaused);
  EXPECT_EQ((*w.now(w.service->resume(s.id))).expires_at, w.time->wall() + 50s);
}

TEST(Restart, AdoptedOnesTakeTheirPlaces) {
  ServiceConfig c;
  c.sandboxes_max = 2;
  World w(c);
  const Sandbox s = w.make();
  w.make();
  w.crash();
  EXPECT_EQ(w.service->snapshot().capacity_used, 2U);
  const auto third = w.begin(w.service->create({}, ""));
  EXPECT_FALSE(*third);
  ASSERT_TRUE(w.now(w.service->destroy(s.id)));
  EXPECT_TRUE(*third && **third);
}

TEST(Restart, WhatWasBeingMadeIsRemoved) {
  World w;
  w.runtime->plan(Call::kCreate).held = true;
  w.begin(w.service->create({}, ""));
  const SandboxId id = w.runtime->order[0];
  w.runtime->live[id.str()];  // The runtime made it; nobody heard.
  w.crash();
  EXPECT_EQ(w.state(id), State::kFailed);
  EXPECT_EQ(w.reason(id), "create failed: the daemon was restarted");
  EXPECT_TRUE(w.runtime->live.empty());
}

TEST(Restart, AStopGoesOn) {
  World w;
  const Sandbox s = w.make();
  w.runtime->plan(Call::kDestroy).held = true;
  w.begin(w.service->destroy(s.id));
  EXPECT_EQ(w.state(s.id), State::kStopping);
  w.crash();
  EXPECT_EQ(w.state(s.id), State::kStopped);
  EXPECT_EQ(w.reason(s.id), "deleted");
  EXPECT_TRUE(w.runtime->live.empty());
}

struct Interrupted {
  const char* name;
  Call call;
  bool happened;
  State state;
};

class RestartInBetween : public testing::TestWithParam<Interrupted> {};

TEST_P(RestartInBetween, AsksTheRuntimeHowItWent) {
  const Interrupted& c = GetParam();
  World w;
  const Sandbox s = w.make(lasting(60s));
  w.time->advance(10s);
  if (c.call == Call::kThaw) ASSERT_TRUE(w.now(w.service->pause(s.id)));
  w.runtime->plan(c.call).held = true;
  if (c.call == Call::kThaw) {
    w.begin(w.service->resume(s.id));
  } else {
    w.begin(w.service->pause(s.id));
  }
  if (c.happened) w.runtime->live[s.id.str()].frozen = c.call == Call::kFreeze;
  w.crash(1h);
  EXPECT_EQ(w.state(s.id), c.state);
  const Sandbox now = *w.get(s.id);
  if (c.state == State::kRunning) {
    EXPECT_EQ(now.expires_at, w.time->wall() + 50s);
  } else {
    EXPECT_EQ(now.remaining, Millis(50s));
  }
}

const Interrupted kInterrupted[] = {
    {"PauseThatHappened", Call::kFreeze, true, State::kPaused},
    {"PauseThatDidNot", Call::kFreeze, false, State::kRunning},
    {"ResumeThatHappened", Call::kThaw, true, State::kRunning},
    {"ResumeThatDidNot", Call::kThaw, false, State::kPaused},
};
INSTANTIATE_TEST_SUITE_P(Cases, RestartInBetween, testing::ValuesIn(kInterrupted),
                         [](const auto& c) { return std::string(c.param.name); });

TEST(Restart, APauseAtTheTimeoutThatWasInterruptedIsMadeUpFor) {
  World w;
  const Sandbox s = w.make(lasting(60s, OnTimeout::kPause));
  w.runtime->plan(Call::kFreeze).held = true;
  w.time->advance(60s);
  EXPECT_EQ(w.state(s.id), State::kPausing);
  w.crash(1h);
  w.time->advance(10ms);
  EXPECT_EQ(w.state(s.id), State::kPaused);
}

TEST(Restart, WaitsForTheRuntimeAndLosesNothingMeanwhile) {
  World w;
  const Sandbox a = w.make(lasting(1h));
  const Sandbox b = w.make(lasting(1h));
  w.start_at_boot = false;
  w.crash();
  w.runtime->set_down(true);
  w.start();
  w.time->advance(5min);
  EXPECT_TRUE(w.service->not_ready());
  EXPECT_EQ(w.state(a.id), State::kRunning);
  EXPECT_TRUE(w.now(w.service->extend(a.id, 2h)));
  EXPECT_EQ(w.now(w.service->destroy(b.id)).error().code(), Errc::kUnavailable);
  w.runtime->set_down(false);
  w.time->advance(6s);
  EXPECT_FALSE(w.service->not_ready());
  EXPECT_EQ(w.state(a.id), State::kRunning);
  EXPECT_EQ(w.state(b.id), State::kStopped);
}

TEST(Reconcile, WhatTheRuntimeLostIsFailed) {
  World w;
  const Sandbox s = w.make();
  const Sandbox kept = w.make();
  w.runtime->live.erase(s.id.str());
  w.time->advance(30s);
  EXPECT_EQ(w.state(s.id), State::kFailed);
  EXPECT_TRUE(w.reason(s.id).starts_with("lost"));
  EXPECT_EQ(w.state(kept.id), State::kRunning);
  EXPECT_EQ(w.service->snapshot().capacity_used, 1U);
  EXPECT_EQ(w.service->snapshot().lost_total, 1U);
}

TEST(Reconcile, WhatNobodyOwnsIsRemoved) {
  World w;
  w.runtime->live["sb-orphan"];
  w.time->advance(30s);
  EXPECT_TRUE(w.runtime->live.empty());
  EXPECT_EQ(w.service->snapshot().orphans_destroyed_total, 1U);
}

TEST(Reconcile, PutsFrozenAndThawedRight) {
  World w;
  const Sandbox running = w.make(lasting(1h));
  const Sandbox paused = w.make(lasting(1h));
  ASSERT_TRUE(w.now(w.service->pause(paused.id)));
  w.runtime->live[running.id.str()].frozen = true;
  w.runtime->live[paused.id.str()].frozen = false;
  w.time->advance(30s);
  EXPECT_FALSE(w.runtime->live[running.id.str()].frozen);
  EXPECT_TRUE(w.runtime->live[paused.id.str()].frozen);
  EXPECT_EQ(w.state(running.id), State::kRunning);
  EXPECT_EQ(w.state(paused.id), State::kPaused);
}

// The fake answers list() with what was true when it was asked.
TEST(Reconcile, IsNotFooledByAnAnswerThatIsOld) {
  World w;
  const Sandbox old = w.make(lasting(1h));
  const Sandbox ends = w.make(lasting(1h));
  const Sandbox pauses = w.make(lasting(1h));
  w.runtime->plan(Call::kList).takes = 5s;
  w.runtime->plan(Call::kCreate).takes = 2s;
  const auto before = w.begin(w.service->create(lasting(1h), ""));
  w.time->advance(29s + 500ms);
  const auto under_way = w.begin(w.service->create(lasting(1h), ""));
  w.time->advance(1s);
  ASSERT_EQ(w.runtime->under_way(Call::kList), 1);
  const auto during = w.begin(w.service->create(lasting(1h), ""));
  ASSERT_TRUE(w.now(w.service->destroy(ends.id)));
  ASSERT_TRUE(w.now(w.service->pause(pauses.id)));
  w.time->advance(6s);
  ASSERT_EQ(w.runtime->under_way(Call::kList), 0);
  ASSERT_TRUE(*before && **before && *under_way && **under_way && *during && **during);
  EXPECT_EQ(w.state((***under_way).id), State::kRunning);
  EXPECT_EQ(w.state((***during).id), State::kRunning);
  EXPECT_EQ(w.state(old.id), State::kRunning);
  EXPECT_EQ(w.state(pauses.id), State::kPaused);
  EXPECT_TRUE(w.runtime->live.at(pauses.id.str()).frozen);
  EXPECT_EQ(w.runtime->calls(Call::kFreeze), 1) << "what was just paused is not put right";
  EXPECT_EQ(w.service->snapshot().orphans_destroyed_total, 0U);
  EXPECT_EQ(w.service->snapshot().lost_total, 0U);
}

TEST(Reconcile, ARuntimeThatIsAwayForAWhileLosesNothing) {
  World w;
  const Sandbox s = w.make(lasting(1h));
  w.runtime->set_down(true);
  w.time->advance(10min);
  EXPECT_EQ(w.state(s.id), State::kRunning);
  EXPECT_FALSE(w.service->not_ready());
  w.runtime->set_down(false);
  w.time->advance(5s);
  EXPECT_EQ(w.state(s.id), State::kRunning);
  EXPECT_GT(w.service->snapshot().reconcile_failed_total, 10U);
}

// --- what is kept ---

TEST(Kept, EndedOnesForAnHour) {
  World w;
  const Sandbox a = w.make();
  ASSERT_TRUE(w.now(w.service->destroy(a.id)));
  w.time->advance(1h - 1s);
  EXPECT_EQ(w.state(a.id), State::kStopped);
  w.time->advance(2min);
  EXPECT_EQ(w.get(a.id).error().code(), Errc::kNotFound);
  EXPECT_EQ(w.now(w.service->destroy(a.id)).error().code(), Errc::kNotFound);
}

TEST(Kept, ManyAreRemovedWithoutALongPause) {
  World w;
  for (int i = 0; i < 1300; ++i) {
    ASSERT_TRUE(w.now(w.service->destroy(w.make().id)));
  }
  w.time->advance(1h + 70s);
  EXPECT_TRUE(w.all().empty());
}

TEST(Kept, EventsAndKeysAreBounded) {
  ServiceConfig c;
  c.events_max = 50;
  c.idempotency_max = 10;
  World w(c);
  for (int i = 0; i < 40; ++i) w.make(lasting(24h), "k" + std::to_string(i));
  w.time->advance(2min);
  const auto count = [&](const char* sql) {
    auto rows = w.db->query(sql);
    EXPECT_TRUE(rows && rows->next());
    return rows->integer(0);
  };
  EXPECT_EQ(count("SELECT count(*) FROM events"), 50);
  EXPECT_EQ(count("SELECT count(*) FROM idempotency"), 10);
}

}  // namespace
}  // namespace glovebox::sandbox
