// Pause and resume. The state on the way (pausing, resuming) is stored before the runtime is asked,
// so that after a crash it is known what to ask about.

#include "async/coro.h"
#include "sandbox/service_impl.h"

namespace glovebox::sandbox {
namespace {

constexpr std::chrono::seconds kStoreRetry(1);
constexpr Millis kRetryAfterFailedPause(10'000);
// Then it is killed: its time is up, and freezing it will not work either.
constexpr int kAutoPausesMax = 6;

Error hung_up() { return Error(Errc::kUnavailable, "the caller stopped waiting"); }

Result<Sandbox> outcome(const Sandbox& now, State wanted, const Result<void>& call) {
  if (now.state == wanted) return now;
  const std::string what = "it did not become " + std::string(to_string(wanted));
  if (!call && now.state != State::kStopping) return Error(call.error()).context(what);
  return wrong_state(now, what);
}

}  // namespace

Task<Result<Sandbox>> SandboxService::Impl::pause(SandboxId id) {
  GB_CO_TRY_ASSIGN(const EntryPtr entry, live(id));
  const bool waited = co_await quiet(entry);
  if (!waited) co_return hung_up();
  if (entry->row.state == State::kRunning && due_of(*entry) <= time.now()) {
    on_due(entry);
    const bool still = co_await quiet(entry);
    if (!still) co_return hung_up();
  }
  if (entry->row.state == State::kPaused) co_return entry->row;
  if (entry->row.state != State::kRunning) {
    co_return wrong_state(entry->row, "only a running one can be paused");
  }
  GB_CO_TRY_ASSIGN(const std::shared_ptr<Op> op, begin_pause(entry));
  co_await op->done.wait();
  if (!op->done.is_set()) co_return hung_up();
  co_return op->result;
}

Result<std::shared_ptr<Op>> SandboxService::Impl::begin_pause(const EntryPtr& entry) {
  if (entry->op) return wrong_state(entry->row, "it is being put right");
  GB_TRY(move(entry, Event::kPause, [&](Sandbox& s) { stop_clock(*entry, s); }));
  begin_op(*entry);
  const std::shared_ptr<Op> op = entry->op;
  spawn(pause_job(Job(shared_from_this()), entry));
  return op;
}

Task<void> SandboxService::Impl::pause_job(Job job, EntryPtr entry) {
  Impl& self = *job.operator->();
  const Clock::duration limit = self.config.operation_timeout;
  const Result<void> frozen = co_await self.runtime.freeze(entry->row.id, self.time.now() + limit);
  if (frozen) {
    co_await self.settle(entry, Event::kPaused);
    entry->auto_pauses_failed = 0;
  } else if (entry->row.state == State::kPausing) {
    self.log.warn("a sandbox could not be paused",
                  {{"sandbox", entry->row.id.str()}, {"error", frozen.error()}});
    // It may have frozen all the same, or do so later; reconcile() looks after the latter.
    const Result<void> thawed = co_await self.runtime.thaw(entry->row.id, self.time.now() + limit);
    static_cast<void>(thawed);
    co_await self.settle(entry, Event::kUndo);
  }
  self.end_op(*entry, outcome(entry->row, State::kPaused, frozen));
}

Task<Result<Sandbox>> SandboxService::Impl::resume(SandboxId id) {
  GB_CO_TRY_ASSIGN(const EntryPtr entry, live(id));
  const bool waited = co_await quiet(entry);
  if (!waited) co_return hung_up();
  if (entry->row.state == State::kRunning) co_return entry->row;
  if (entry->row.state != State::kPaused) {
    co_return wrong_state(entry->row, "only a paused one can be resumed");
  }
  GB_CO_TRY_ASSIGN(const std::shared_ptr<Op> op, begin_resume(entry));
  co_await op->done.wait();
  if (!op->done.is_set()) co_return hung_up();
  co_return op->result;
}

Result<std::shared_ptr<Op>> SandboxService::Impl::begin_resume(const EntryPtr& entry) {
  if (entry->op) return wrong_state(entry->row, "it is being put right");
  GB_TRY(move(entry, Event::kResume));
  begin_op(*entry);
  const std::shared_ptr<Op> op = entry->op;
  spawn(resume_job(Job(shared_from_this()), entry));
  return op;
}

Task<void> SandboxService::Impl::resume_job(Job job, EntryPtr entry) {
  Impl& self = *job.operator->();
  const Clock::duration limit = self.config.operation_timeout;
  const Result<void> thawed = co_await self.runtime.thaw(entry->row.id, self.time.now() + limit);
  if (thawed) {
    co_await self.settle(entry, Event::kReady);
  } else if (entry->row.state == State::kResuming) {
    self.log.warn("a sandbox could not be resumed",
                  {{"sandbox", entry->row.id.str()}, {"error", thawed.error()}});
    const Result<void> frozen =
        co_await self.runtime.freeze(entry->row.id, self.time.now() + limit);
    static_cast<void>(frozen);
    co_await self.settle(entry, Event::kUndo);
  }
  self.end_op(*entry, outcome(entry->row, State::kRunning, thawed));
}

Task<void> SandboxService::Impl::settle(EntryPtr entry, Event event) {
  for (;;) {
    // Meanwhile it may have been told to stop: then nothing is to be stored any more.
    const std::optional<State> to = next(entry->row.state, event);
    if (!to) co_return;
    const bool resumed = *to == State::kRunning;
    const Millis least = event == Event::kUndo ? kRetryAfterFailedPause : Millis(0);
    if (resumed) entry->last_used = time.now();
    const Result<void> stored = move(entry, event, [&](Sandbox& s) {
      if (resumed) start_clock(s, least);
    });
    if (stored) co_return;
    log.error("a state could not be stored; will try again",
              {{"sandbox", entry->row.id.str()}, {"error", stored.error()}});
    const bool again = co_await back_off(kStoreRetry);
    if (!again) co_return;
  }
}

void SandboxService::Impl::time_is_up(const EntryPtr& entry, const std::string& reason) {
  ++stats.expired_total;
  if (entry->row.on_timeout == OnTimeout::kPause && entry->row.state == State::kRunning &&
      ++entry->auto_pauses_failed <= kAutoPausesMax) {
    const auto begun = begin_pause(entry);
    if (begun) return;
    log.warn("a sandbox could not be paused at its timeout",
             {{"sandbox", entry->row.id.str()}, {"error", begun.error()}});
    schedule_at(entry, time.now() + kRetryAfterFailedPause);
    return;
  }
  stop(entry, State::kStopped, reason);
}

Task<void> SandboxService::Impl::repair(Job job, EntryPtr entry) {
  Impl& self = *job.operator->();
  const bool frozen = entry->row.state == State::kPaused;
  self.log.warn("a sandbox is not as it should be; putting it right",
                {{"sandbox", entry->row.id.str()}, {"state", to_string(entry->row.state)}});
  const Deadline deadline = self.time.now() + self.config.operation_timeout;
  Result<void> done;
  if (frozen) {
    done = co_await self.runtime.freeze(entry->row.id, deadline);
  } else {
    done = co_await self.runtime.thaw(entry->row.id, deadline);
  }
  if (!done) {
    self.log.warn("putting it right failed",
                  {{"sandbox", entry->row.id.str()}, {"error", done.error()}});
  }
  self.end_op(*entry, entry->row);
}

}  // namespace glovebox::sandbox
