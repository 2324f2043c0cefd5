#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <set>

#include "sandbox/test_world.h"

namespace glovebox::sandbox {
namespace {

using Made = Result<Sandbox>;

ServiceConfig with(std::uint32_t workers, std::uint32_t places) {
  ServiceConfig c;
  c.workers = workers;
  c.sandboxes_max = places;
  return c;
}

// A create whose caller can hang up.
struct Caller {
  explicit Caller(World& w, std::string key = "", CreateSpec spec = {}) {
    boost::asio::co_spawn(*w.io, w.service->create(std::move(spec), std::move(key)),
                          boost::asio::bind_cancellation_slot(
                              signal.slot(), [r = result](std::exception_ptr e, Made made) {
                                if (!e) *r = std::move(made);
                              }));
    w.time->settle();
  }
  void hang_up(World& w) {
    signal.emit(boost::asio::cancellation_type::terminal);
    w.time->settle();
  }
  boost::asio::cancellation_signal signal;
  Slot<Made> result = std::make_shared<std::optional<Made>>();
};

TEST(Create, GivesARunningSandboxWithDefaults) {
  World w;
  const Sandbox s = w.make();
  EXPECT_EQ(s.id.str().size(), 23U);
  EXPECT_TRUE(s.id.str().starts_with("sb-"));
  EXPECT_EQ(s.state, State::kRunning);
  EXPECT_EQ(s.runtime, "fake");
  EXPECT_EQ(s.timeout, Millis(300'000));
  EXPECT_EQ(s.expires_at, w.time->wall() + 300s);
  EXPECT_EQ(s.limits.memory_bytes, w.config.limits_default.memory_bytes);
  EXPECT_TRUE(w.runtime->live.contains(s.id.str()));
  EXPECT_EQ(w.service->snapshot().created_total, 1U);
}

TEST(Create, StoresTheRowBeforeTheRuntimeIsAsked) {
  World w;
  w.runtime->plan(Call::kCreate).held = true;
  const auto made = w.begin(w.service->create({}, ""));
  ASSERT_EQ(w.runtime->order.size(), 1U);
  const auto row = w.rows().find(w.runtime->order[0]);
  ASSERT_TRUE(row && row.value().has_value());
  EXPECT_EQ((*row.value()).state, State::kCreating);
  w.runtime->release(Call::kCreate);
  w.time->settle();
  ASSERT_TRUE(*made);
  EXPECT_EQ((***made).state, State::kRunning);
}

TEST(Create, GivesBackWhatWasAsked) {
  World w;
  CreateSpec spec;
  spec.name = "n\u00e4me";
  spec.timeout = 1500ms;
  spec.idle_timeout = 2s;
  spec.on_timeout = OnTimeout::kPause;
  spec.memory_bytes = 64 << 20;
  spec.cpu_millis = 250;
  spec.labels = {{"a", "1"}, {"b", ""}};
  spec.env = {{"X", "y\nz"}};
  const Sandbox s = w.make(spec);
  w.crash();
  const Sandbox again = *w.get(s.id);
  EXPECT_EQ(again.name, spec.name);
  EXPECT_EQ(again.timeout, spec.timeout);
  EXPECT_EQ(again.idle_timeout, spec.idle_timeout);
  EXPECT_EQ(again.on_timeout, OnTimeout::kPause);
  EXPECT_EQ(again.limits.memory_bytes, 64U << 20);
  EXPECT_EQ(again.limits.cpu_millis, 250U);
  EXPECT_EQ(again.labels, spec.labels);
  EXPECT_EQ(*again.env, spec.env);
  EXPECT_EQ(again.expires_at, s.expires_at);
}

TEST(Create, AFailureIsSeenAndLeavesNothing) {
  World w;
  w.runtime->plan(Call::kCreate).failures = 1;
  w.runtime->plan(Call::kCreate).acts_all_the_same = true;
  const Made made = w.now(w.service->create({}, ""));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Errc::kUnavailable);
  EXPECT_TRUE(w.runtime->live.empty());
  const auto rows = w.all();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].state, State::kFailed);
  EXPECT_EQ(rows[0].reason, "create failed: planned failure");
  EXPECT_TRUE(rows[0].ended_at);
  EXPECT_EQ(w.service->snapshot().capacity_used, 0U);
  EXPECT_EQ(w.service->snapshot().workers_busy, 0U);
  EXPECT_EQ(w.service->snapshot().create_failed_total, 1U);
}

TEST(Create, WhatTakesEffectAfterItsDeadlineIsRemoved) {
  World w;
  w.runtime->plan(Call::kCreate).held = true;
  w.runtime->plan(Call::kCreate).acts_all_the_same = true;
  const auto made = w.begin(w.service->create({}, ""));
  w.time->advance(w.config.create_timeout + 1s);
  ASSERT_TRUE(*made);
  EXPECT_EQ((*made)->error().code(), Errc::kTimeout);
  EXPECT_TRUE(w.runtime->live.empty());
  EXPECT_EQ(w.service->snapshot().capacity_used, 0U);
}

TEST(Create, ADeathWhileItIsMadeIsAFailure) {
  World w;
  w.runtime->plan(Call::kCreate).held = true;
  const auto made = w.begin(w.service->create({}, ""));
  w.runtime->die(w.runtime->order[0], "killed by a bug");
  w.runtime->release(Call::kCreate);
  w.time->settle();
  ASSERT_TRUE(*made);
  ASSERT_FALSE(**made);
  EXPECT_NE((*made)->error().text().find("killed by a bug"), std::string::npos);
  EXPECT_TRUE(w.runtime->live.empty());
}

TEST(Create, RefusesARungThatIsNotThere) {
  World w;
  CreateSpec spec;
  spec.isolation = IsolationClass::kVm;
  const Made made = w.now(w.service->create(spec, ""));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Errc::kInvalid);
  EXPECT_EQ(made.error().text(),
            "isolation: vm is not available here; the most is shared-kernel, by fake");
  w.runtime->rung = IsolationClass::kVm;
  spec.isolation = IsolationClass::kUserKernel;
  EXPECT_EQ(w.make(spec).isolation, IsolationClass::kVm);
}

TEST(Create, WaitsForTheFirstReconcile) {
  World w;
  w.start_at_boot = false;
  w.crash();
  w.runtime->set_down(true);
  w.start();
  EXPECT_TRUE(w.service->not_ready());
  EXPECT_EQ(w.now(w.service->create({}, "")).error().code(), Errc::kUnavailable);
  w.time->advance(10s);
  EXPECT_NE(w.service->not_ready()->find("does not answer"), std::string::npos);
  w.runtime->set_down(false);
  w.time->advance(2s);
  EXPECT_FALSE(w.service->not_ready());
  w.make();
}

// --- the queue ---

TEST(Queue, IsFirstInFirstOut) {
  World w(with(1, 1000));
  w.runtime->plan(Call::kCreate).takes = 100ms;
  std::vector<Slot<Made>> made;
  for (int i = 0; i < 20; ++i) {
    CreateSpec spec;
    spec.name = std::to_string(i);
    made.push_back(w.begin(w.service->create(spec, "")));
  }
  EXPECT_EQ(w.service->snapshot().queue_length, 19U);
  w.time->advance(2s);
  for (std::size_t i = 0; i < made.size(); ++i) {
    ASSERT_TRUE(*made[i] && **made[i]);
    EXPECT_EQ((***made[i]).id, w.runtime->order[i]);
    EXPECT_EQ((***made[i]).name, std::to_string(i));
  }
  EXPECT_EQ(w.runtime->most_at_once(Call::kCreate), 1);
}

TEST(Queue, NeverMakesMoreAtOnceThanItHasWorkers) {
  World w(with(7, 1000));
  w.runtime->plan(Call::kCreate).takes = 10ms;
  std::vector<Slot<Made>> made;
  made.reserve(made.size() + 100);
  for (int i = 0; i < 100; ++i) made.push_back(w.begin(w.service->create({}, "")));
  w.time->advance(1s);
  for (const auto& m : made) EXPECT_TRUE(*m && **m);
  EXPECT_EQ(w.runtime->most_at_once(Call::kCreate), 7);
}

TEST(Queue, RefusesOnlyWhenTheDeadlinePasses) {
  World w(with(4, 2));
  const Sandbox a = w.make();
  w.make();
  const auto third = w.begin(w.service->create({}, ""));
  w.time->advance(w.config.queue_deadline - 1ms);
  EXPECT_FALSE(*third);
  w.time->advance(1ms);
  ASSERT_TRUE(*third);
  EXPECT_EQ((*third)->error().code(), Errc::kExhausted);
  EXPECT_NE((*third)->error().text().find("2 of 2 sandboxes are in use"), std::string::npos);
  EXPECT_GE(w.service->retry_after(), 1s);

  const auto fourth = w.begin(w.service->create({}, ""));
  w.time->advance(w.config.queue_deadline - 1ms);
  ASSERT_TRUE(w.now(w.service->destroy(a.id)));
  ASSERT_TRUE(*fourth && **fourth);
  EXPECT_EQ(w.runtime->live.size(), 2U);
  EXPECT_EQ(w.all().size(), 3U) << "one that waits in vain leaves no row";
}

TEST(Queue, IsBounded) {
  ServiceConfig c = with(1, 1);
  c.queue_max = 3;
  World w(c);
  w.make();
  std::vector<Slot<Made>> waiting;
  waiting.reserve(waiting.size() + 3);
  for (int i = 0; i < 3; ++i) waiting.push_back(w.begin(w.service->create({}, "")));
  const Made more = w.now(w.service->create({}, ""));
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code(), Errc::kExhausted);
  for (const auto& slot : waiting) EXPECT_FALSE(*slot);
}

TEST(Queue, CountsMemoryWhenTold) {
  ServiceConfig c = with(8, 100);
  c.memory_bytes_max = 256 << 20;
  World w(c);
  CreateSpec big;
  big.memory_bytes = 192 << 20;
  CreateSpec small;
  small.memory_bytes = 64 << 20;
  const Sandbox first = w.make(big);
  const auto second = w.begin(w.service->create(big, ""));
  const auto third = w.begin(w.service->create(small, ""));
  EXPECT_FALSE(*third) << "it would fit, but must not overtake";
  ASSERT_TRUE(w.now(w.service->destroy(first.id)));
  EXPECT_TRUE(*second && **second);
  EXPECT_TRUE(*third && **third);
  EXPECT_EQ(w.service->snapshot().memory_committed_bytes, 256U << 20);
  big.memory_bytes = 257 << 20;
  EXPECT_EQ(w.now(w.service->create(big, "")).error().code(), Errc::kInvalid);
}

TEST(Queue, ASmallOneGoesWhenTheBigOneBeforeItGivesUp) {
  ServiceConfig c = with(8, 100);
  c.memory_bytes_max = 256 << 20;
  World w(c);
  CreateSpec big;
  big.memory_bytes = 192 << 20;
  CreateSpec small;
  small.memory_bytes = 64 << 20;
  w.make(big);
  const auto second = w.begin(w.service->create(big, ""));
  w.time->advance(10s);
  const auto third = w.begin(w.service->create(small, ""));
  EXPECT_FALSE(*third);
  w.time->advance(20s);
  ASSERT_TRUE(*second);
  EXPECT_FALSE(**second);
  EXPECT_TRUE(*third && **third);
}

// Case C142.
TEST(Queue, AThousandAtOnceAgainstAHundredPlaces) {
  World w(with(16, 100));
  w.runtime->plan(Call::kCreate).takes = 20ms;
  std::vector<Slot<Made>> burst;
  burst.reserve(burst.size() + 1000);
  for (int i = 0; i < 1000; ++i) burst.push_back(w.begin(w.service->create({}, "")));
  std::size_t most = 0;
  for (int i = 0; i < 400; ++i) {
    w.time->advance(100ms);
    most = std::max(most, w.runtime->live.size());
  }
  std::vector<SandboxId> ids;
  int refused = 0;
  for (const auto& slot : burst) {
    ASSERT_TRUE(*slot);
    if (**slot) {
      ids.push_back((***slot).id);
    } else {
      ++refused;
      EXPECT_EQ((*slot)->error().code(), Errc::kExhausted);
    }
  }
  EXPECT_EQ(ids.size(), 100U);
  EXPECT_EQ(refused, 900);
  EXPECT_EQ(most, 100U);
  EXPECT_EQ(w.service->snapshot().capacity_used, 100U);

  for (std::size_t i = 0; i < 50; ++i) ASSERT_TRUE(w.now(w.service->destroy(ids[i])));
  std::vector<Slot<Made>> more;
  more.reserve(more.size() + 50);
  for (int i = 0; i < 50; ++i) more.push_back(w.begin(w.service->create({}, "")));
  w.time->advance(1s);
  for (const auto& slot : more) {
    ASSERT_TRUE(*slot && **slot);
    ids.push_back((***slot).id);
  }
  for (std::size_t i = 50; i < 70; ++i) w.runtime->die(ids[i], "crashed");
  w.time->settle();
  EXPECT_EQ(w.service->snapshot().capacity_used, 80U);
  for (const SandboxId& id : ids) EXPECT_TRUE(w.now(w.service->destroy(id)));
  const Stats s = w.service->snapshot();
  EXPECT_EQ(s.capacity_used, 0U);
  EXPECT_EQ(s.workers_busy, 0U);
  EXPECT_EQ(s.memory_committed_bytes, 0U);
  EXPECT_TRUE(w.runtime->live.empty());
}

TEST(Queue, ACallerWhoHangsUpGivesItsTurnAway) {
  World w(with(1, 1));
  const Sandbox a = w.make();
  Caller gone(w);
  const auto next = w.begin(w.service->create({}, ""));
  EXPECT_EQ(w.service->snapshot().queue_length, 2U);
  gone.hang_up(w);
  EXPECT_EQ(w.service->snapshot().queue_length, 1U);
  ASSERT_TRUE(w.now(w.service->destroy(a.id)));
  EXPECT_TRUE(*next && **next);
  EXPECT_EQ(w.runtime->order.size(), 2U);
}

TEST(Create, ACallerWhoHangsUpLeavesNoSandboxThatNobodyKnows) {
  World w;
  w.runtime->plan(Call::kCreate).held = true;
  Caller gone(w);
  gone.hang_up(w);
  w.runtime->release(Call::kCreate);
  w.time->settle();
  EXPECT_TRUE(w.runtime->live.empty());
  ASSERT_EQ(w.all().size(), 1U);
  EXPECT_EQ(w.all()[0].state, State::kFailed);
  EXPECT_EQ(w.service->snapshot().capacity_used, 0U);
}

// --- idempotency keys ---

TEST(Idempotency, TheSameKeyGivesTheSameSandbox) {
  World w;
  const Sandbox a = w.make({}, "k1");
  EXPECT_EQ(w.make({}, "k1").id, a.id);
  EXPECT_NE(w.make({}, "k2").id, a.id);
  EXPECT_NE(w.make({}, "").id, w.make({}, "").id);
  w.crash();
  EXPECT_EQ(w.make({}, "k1").id, a.id);
  ASSERT_TRUE(w.now(w.service->destroy(a.id)));
  EXPECT_EQ(w.make({}, "k1").state, State::kStopped);
}

TEST(Idempotency, AnotherRequestUnderTheSameKeyIsRefused) {
  World w;
  w.make({}, "k");
  for (int field = 0; field < 5; ++field) {
    CreateSpec other;
    if (field == 0) other.name = "x";
    if (field == 1) other.env = {{"a", "b"}};
    if (field == 2) other.labels = {{"a", "b"}};
    if (field == 3) other.timeout = Millis(300'000);
    if (field == 4) other.on_timeout = OnTimeout::kPause;
    const Made made = w.now(w.service->create(other, "k"));
    ASSERT_FALSE(made) << field;
    EXPECT_EQ(made.error().code(), Errc::kConflict);
  }
  EXPECT_EQ(w.runtime->live.size(), 1U);
}

TEST(Idempotency, ConcurrentCallsMakeOneSandbox) {
  World w;
  w.runtime->plan(Call::kCreate).held = true;
  const auto a = w.begin(w.service->create({}, "k"));
  const auto b = w.begin(w.service->create({}, "k"));
  CreateSpec other;
  other.name = "other";
  EXPECT_EQ(w.now(w.service->create(other, "k")).error().code(), Errc::kConflict);
  w.runtime->release(Call::kCreate);
  w.time->settle();
  ASSERT_TRUE(*a && **a && *b && **b);
  EXPECT_EQ((***a).id, (***b).id);
  EXPECT_EQ(w.runtime->order.size(), 1U);
}

TEST(Idempotency, AFailedCreateGivesItsKeyBack) {
  World w;
  w.runtime->plan(Call::kCreate).failures = 1;
  EXPECT_FALSE(w.now(w.service->create({}, "k")));
  EXPECT_EQ(w.make({}, "k").state, State::kRunning);
}

TEST(Idempotency, ARestartWhileItIsMadeGivesTheKeyBack) {
  World w;
  w.runtime->plan(Call::kCreate).held = true;
  w.begin(w.service->create({}, "k"));
  w.crash();
  EXPECT_EQ(w.make({}, "k").state, State::kRunning);
  EXPECT_EQ(w.runtime->live.size(), 1U);
}

TEST(Idempotency, ACallerWhoHangsUpGetsItsSandboxByAskingAgain) {
  World w;
  w.runtime->plan(Call::kCreate).held = true;
  Caller gone(w, "k");
  gone.hang_up(w);
  const auto again = w.begin(w.service->create({}, "k"));
  w.runtime->release(Call::kCreate);
  w.time->settle();
  ASSERT_TRUE(*again && **again);
  EXPECT_EQ(w.runtime->order.size(), 1U);
  EXPECT_EQ(w.make({}, "k").id, (***again).id);
}

TEST(Idempotency, ACallerWhoHungUpInTheQueueDoesNotSpoilTheNext) {
  World w(with(1, 1));
  const Sandbox a = w.make();
  Caller gone(w, "k");
  gone.hang_up(w);
  const auto again = w.begin(w.service->create({}, "k"));
  EXPECT_FALSE(*again);
  ASSERT_TRUE(w.now(w.service->destroy(a.id)));
  EXPECT_TRUE(*again && **again);
}

TEST(Idempotency, KeysAreKeptForADay) {
  World w;
  CreateSpec spec;
  spec.timeout = 48h;
  const Sandbox a = w.make(spec, "k");
  w.time->advance(24h - 1s);
  EXPECT_EQ(w.make(spec, "k").id, a.id);
  w.time->advance(2s);
  EXPECT_NE(w.make(spec, "k").id, a.id);
}

TEST(Idempotency, AKeyWhoseSandboxIsForgottenSaysSo) {
  World w;
  const Sandbox a = w.make({}, "k");
  ASSERT_TRUE(w.now(w.service->destroy(a.id)));
  w.time->advance(2h);
  EXPECT_EQ(w.get(a.id).error().code(), Errc::kNotFound);
  EXPECT_EQ(w.now(w.service->create({}, "k")).error().code(), Errc::kConflict);
}

TEST(Idempotency, RefusesOddKeys) {
  World w;
  for (const std::string& key : {std::string(256, 'k'), std::string("a b"), std::string("a\n"),
                                 std::string("\xc3\xa4"), std::string("a\0b", 3)}) {
    EXPECT_EQ(w.now(w.service->create({}, key)).error().code(), Errc::kInvalid);
  }
}

}  // namespace
}  // namespace glovebox::sandbox
