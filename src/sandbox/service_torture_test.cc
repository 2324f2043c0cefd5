// Everything at once, by chance: what must hold whatever happens in whatever order.

#include <random>

#include "sandbox/test_world.h"

namespace glovebox::sandbox {
namespace {

using Made = Result<Sandbox>;

class Torture {
 public:
  explicit Torture(unsigned seed) : random_(seed), w_(config()) {}

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      step();
      collect();
      check();
    }
    finish();
  }

 private:
  static ServiceConfig config() {
    ServiceConfig c;
    c.workers = 3;
    c.sandboxes_max = kPlaces;
    c.queue_max = 20;
    c.queue_deadline = 2s;
    c.create_timeout = 1s;
    c.operation_timeout = 1s;
    c.reconcile_every = 5s;
    return c;
  }
  int upto(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  bool chance(int percent) { return upto(100) < percent; }
  Call any_call() { return static_cast<Call>(upto(6)); }

  SandboxId any() {
    if (ids_.empty()) return SandboxId("sb-none");
    return ids_[static_cast<std::size_t>(upto(static_cast<int>(ids_.size())))];
  }

  void step() {
    const int what = upto(100);
    if (what < 20) {
      create();
    } else if (what < 30) {
      const SandboxId id = any();
      promised_.erase(id);
      destroys_.emplace_back(id, w_.begin(w_.service->destroy(id)));
    } else if (what < 38) {
      const SandboxId id = any();
      promised_.erase(id);
      others_.push_back(w_.begin(w_.service->pause(id)));
    } else if (what < 46) {
      const SandboxId id = any();
      promised_.erase(id);
      others_.push_back(w_.begin(w_.service->resume(id)));
    } else if (what < 52) {
      const SandboxId id = any();
      // Which of two promises holds is known when the answer comes, which is at once.
      const Made extended = w_.now(w_.service->extend(id, Millis(1000 + upto(20'000))));
      if (extended && promised_.contains(id)) promised_[id] = *extended.value().expires_at;
    } else if (what < 55) {
      const SandboxId id = any();
      promised_.erase(id);
      if (w_.runtime->live.contains(id.str())) w_.runtime->die(id, "by chance");
    } else if (what < 65) {
      FakeRuntime::Plan& plan = w_.runtime->plan(any_call());
      plan.takes = Millis(upto(3) * upto(600));
      plan.failures = upto(3) == 0 ? upto(3) : 0;
      plan.acts_all_the_same = chance(50);
    } else if (what < 67) {
      w_.runtime->set_down(chance(50));
    } else if (what < 69) {
      crash();
    } else {
      w_.time->advance(Millis(upto(chance(10) ? 8000 : 300)));
    }
  }

  void create() {
    CreateSpec spec;
    spec.timeout = Millis(1000 + upto(30'000));
    if (chance(30)) spec.on_timeout = OnTimeout::kPause;
    creates_.push_back(w_.begin(w_.service->create(spec, "")));
  }

  void crash() {
    // What the runtime was asked for may happen after the daemon's death.
    for (const SandboxId& id : w_.runtime->order) {
      const auto row = w_.rows().find(id);
      if (!row) continue;
      const std::optional<Sandbox>& found = row.value();
      if (found && found->state == State::kCreating && chance(50)) w_.runtime->live[id.str()];
    }
    w_.crash(Millis(upto(3000)));
    creates_.clear();
    others_.clear();
    destroys_.clear();
  }

  void collect() {
    std::erase_if(creates_, [&](const Slot<Made>& slot) {
      if (!*slot) return false;
      if (**slot) {
        const Sandbox& s = ***slot;
        ids_.push_back(s.id);
        if (s.on_timeout == OnTimeout::kKill) promised_[s.id] = *s.expires_at;
      }
      return true;
    });
    std::erase_if(destroys_, [&](const auto& d) {
      if (!*d.second) return false;
      if (**d.second) gone_.insert(d.first.str());
      return true;
    });
    std::erase_if(others_, [](const Slot<Made>& slot) { return slot->has_value(); });
  }

  void check() {
    for (const std::string& id : gone_) {
      ASSERT_FALSE(w_.runtime->live.contains(id)) << id << " lives after its delete";
    }
    const Stats stats = w_.service->snapshot();
    ASSERT_LE(stats.capacity_used, kPlaces);
    ASSERT_LE(stats.workers_busy, 3U);
    ASSERT_LE(stats.queue_length, 20U);
    for (const auto& [id, until] : promised_) {
      if (w_.time->wall() >= until) continue;
      ASSERT_TRUE(w_.runtime->live.contains(id.str())) << id.str() << " ended before its time";
      ASSERT_EQ(w_.state(id), State::kRunning) << id.str() << ": " << w_.reason(id);
    }
  }

  void finish() {
    for (int call = 0; call < 6; ++call) w_.runtime->plan(static_cast<Call>(call)) = {};
    w_.runtime->set_down(false);
    w_.time->advance(1min);
    collect();
    check();
    for (const Sandbox& s : w_.all()) EXPECT_TRUE(w_.now(w_.service->destroy(s.id)));
    w_.time->advance(1min);
    EXPECT_TRUE(w_.runtime->live.empty());
    const Stats stats = w_.service->snapshot();
    EXPECT_EQ(stats.capacity_used, 0U);
    EXPECT_EQ(stats.workers_busy, 0U);
    EXPECT_EQ(stats.memory_committed_bytes, 0U);
    for (const Sandbox& s : w_.all()) {
      EXPECT_TRUE(is_terminal(s.state));
      check_history(s);
    }
  }

  // The events of a sandbox are a walk through the table that ends where the sandbox is.
  void check_history(const Sandbox& s) {
    const auto events = w_.rows().events(s.id);
    State state = State::kCreating;
    bool first = true;
    for (const EventRecord& record : events.value()) {
      if (std::exchange(first, false)) {
        EXPECT_EQ(record.event, "create");
        continue;
      }
      if (record.event == "extend") continue;
      bool found = false;
      for (const Event e : kEvents) {
        if (to_string(e) != record.event) continue;
        const std::optional<State> to = next(state, e);
        ASSERT_TRUE(to) << record.event << " of one that is " << to_string(state);
        state = *to;
        found = true;
      }
      ASSERT_TRUE(found) << record.event;
    }
    EXPECT_EQ(state, s.state);
  }

  static constexpr std::uint32_t kPlaces = 12;
  std::mt19937 random_;
  World w_;
  std::vector<Slot<Made>> creates_;
  std::vector<Slot<Made>> others_;
  std::vector<std::pair<SandboxId, Slot<Result<void>>>> destroys_;
  std::vector<SandboxId> ids_;
  std::set<std::string> gone_;              // Deleted, and the client was told so.
  std::map<SandboxId, WallTime> promised_;  // Nobody touched it: it must run until then.
};

class TortureTest : public testing::TestWithParam<unsigned> {};

TEST_P(TortureTest, NoPromiseIsBroken) {
  Torture torture(GetParam());
  torture.run(400);
}

INSTANTIATE_TEST_SUITE_P(Seeds, TortureTest, testing::Range(1U, 31U));

}  // namespace
}  // namespace glovebox::sandbox
