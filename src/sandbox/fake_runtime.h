// FakeRuntime: a Runtime whose delays and failures a test commands. For *_test.cc only (also those
// of the API adapters), hence the bodies in a header.

#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "async/coro.h"
#include "async/time_source.h"
#include "sandbox/runtime.h"

namespace glovebox::sandbox {

class FakeRuntime final : public Runtime {
 public:
  enum class Call : std::uint8_t { kCreate, kDestroy, kFreeze, kThaw, kUsage, kList };

  struct Plan {
    Clock::duration takes{};
    bool held = false;  // Until release() or the deadline.
    int failures = 0;   // So many of the next calls fail with `error`.
    Error error{Errc::kUnavailable, "planned failure"};
    bool acts_all_the_same = false;  // A failing call has its effect.
  };

  explicit FakeRuntime(async::TimeSource& time) : time_(time) {}

  Plan& plan(Call call) { return plans_[call]; }
  void release(Call call) {
    plans_[call].held = false;
    for (async::Alarm* alarm : std::set<async::Alarm*>(held_[call])) alarm->wake();
  }
  // Every call fails with kUnavailable.
  void set_down(bool down) { down_ = down; }
  // Its first process ended.
  void die(const SandboxId& id, const std::string& reason) {
    live.erase(id.str());
    if (listener_) listener_(id, reason);
  }
  int calls(Call call) { return calls_[call]; }
  int under_way(Call call) { return under_way_[call]; }
  int most_at_once(Call call) { return most_[call]; }

  struct State {
    bool frozen = false;
  };
  std::map<std::string, State> live;
  std::set<std::string> destroyed;  // Ever; creating one of them again is a test's failure.
  std::vector<SandboxId> order;     // In which create() was called.
  IsolationClass rung = IsolationClass::kSharedKernel;

  std::string_view name() const override { return "fake"; }
  IsolationClass isolation() const override { return rung; }
  void on_exit(ExitListener listener) override { listener_ = std::move(listener); }

  Task<Result<void>> create(LaunchSpec spec, Deadline deadline) override {
    order.push_back(spec.id);
    const std::optional<Error> fault = co_await perform(Call::kCreate, deadline);
    if (fault && !plans_[Call::kCreate].acts_all_the_same) co_return *fault;
    if (!live.emplace(spec.id.str(), State()).second) co_return Error(Errc::kConflict, "exists");
    if (fault) co_return *fault;
    co_return Result<void>();
  }
  Task<Result<void>> destroy(SandboxId id, Deadline deadline) override {
    const std::optional<Error> fault = co_await perform(Call::kDestroy, deadline);
    if (fault) co_return *fault;
    live.erase(id.str());
    destroyed.insert(id.str());
    co_return Result<void>();
  }
  Task<Result<void>> freeze(SandboxId id, Deadline deadline) override {
    const std::optional<Error> fault = co_await perform(Call::kFreeze, deadline);
    co_return set_frozen(id, true, fault, plans_[Call::kFreeze]);
  }
  Task<Result<void>> thaw(SandboxId id, Deadline deadline) override {
    const std::optional<Error> fault = co_await perform(Call::kThaw, deadline);
    co_return set_frozen(id, false, fault, plans_[Call::kThaw]);
  }
  Task<Result<Usage>> usage(SandboxId id, Deadline deadline) override {
    const std::optional<Error> fault = co_await perform(Call::kUsage, deadline);
    if (fault) co_return *fault;
    if (!live.contains(id.str())) co_return Error(Errc::kNotFound, "not live");
    Usage u;
    u.pids = 2;
    co_return u;
  }
  Task<Result<std::vector<Live>>> list(Deadline deadline) override {
    // What was true when it was asked: the answer may be old when it arrives.
    std::vector<Live> all;
    all.reserve(live.size());
    for (const auto& [id, state] : live) all.push_back({SandboxId(id), state.frozen});
    const std::optional<Error> fault = co_await perform(Call::kList, deadline);
    if (fault) co_return *fault;
    co_return all;
  }
  Task<Result<UniqueFd>> open_agent(SandboxId, Deadline) override {
    co_return Error(Errc::kUnavailable, "the fake has no agent");
  }
  Task<Result<UniqueFd>> open_port(SandboxId, std::uint16_t, Deadline) override {
    co_return Error(Errc::kUnavailable, "the fake has no ports");
  }

 private:
  // Counts a call among those under way, also when its frame is destroyed.
  class Under {
   public:
    Under(FakeRuntime& runtime, Call call) : runtime_(runtime), call_(call) {
      ++runtime_.calls_[call];
      const int now = ++runtime_.under_way_[call];
      runtime_.most_[call] = std::max(runtime_.most_[call], now);
    }
    Under(const Under&) = delete;
    Under& operator=(const Under&) = delete;
    ~Under() { --runtime_.under_way_[call_]; }

   private:
    FakeRuntime& runtime_;
    Call call_;
  };

  Task<std::optional<Error>> perform(Call call, Deadline deadline) {
    const Under under(*this, call);
    std::optional<Error> fault;
    Plan& plan = plans_[call];
    if (plan.failures > 0) {
      --plan.failures;
      fault = plan.error;
    }
    if (plan.takes > Clock::duration(0)) {
      const std::unique_ptr<async::Alarm> alarm = time_.make_alarm();
      const Deadline ready = time_.now() + plan.takes;
      co_await alarm->wait_until(std::min(ready, deadline));
      if (ready > deadline) co_return Error(Errc::kTimeout, "planned delay");
    }
    if (plan.held) {
      const std::unique_ptr<async::Alarm> alarm = time_.make_alarm();
      held_[call].insert(alarm.get());
      const bool late = co_await alarm->wait_until(deadline);
      held_[call].erase(alarm.get());
      if (late) co_return Error(Errc::kTimeout, "held by the test");
    }
    if (down_) co_return Error(Errc::kUnavailable, "the runtime is down");
    co_return fault;
  }

  Result<void> set_frozen(const SandboxId& id, bool frozen, const std::optional<Error>& fault,
                          const Plan& plan) {
    const auto it = live.find(id.str());
    if (it == live.end()) return fault.value_or(Error(Errc::kNotFound, "not live"));
    if (!fault || plan.acts_all_the_same) it->second.frozen = frozen;
    if (fault) return *fault;
    return {};
  }

  async::TimeSource& time_;
  std::map<Call, Plan> plans_;
  std::map<Call, std::set<async::Alarm*>> held_;
  std::map<Call, int> calls_, under_way_, most_;
  bool down_ = false;
  ExitListener listener_;
};

}  // namespace glovebox::sandbox
