// After a restart, and now and then: what the store says and what the runtime has are made to
// agree.

#include <algorithm>
#include <unordered_set>

#include "async/coro.h"
#include "sandbox/service_impl.h"

namespace glovebox::sandbox {
namespace {

constexpr Millis kFirstRetry(100);
constexpr Millis kLastRetry(2000);
constexpr std::chrono::seconds kPurgeEvery(60);
constexpr std::chrono::seconds kPurgeMore(1);

}  // namespace

Result<void> SandboxService::Impl::load() {
  GB_TRY_ASSIGN(std::vector<Sandbox> rows, repository.live());
  for (Sandbox& row : rows) {
    const EntryPtr entry = std::make_shared<Entry>(std::move(row), executor);
    entry->place = admission.adopt(entry->row.limits.memory_bytes);
    entry->last_used = time.now();  // When it was last used is not stored: idleness begins anew.
    follow_wall(*entry);
    entries[entry->row.id.str()] = entry;
    if (entry->row.state == State::kCreating) {
      stop(entry, State::kFailed, "create failed: the daemon was restarted");
    } else if (entry->row.state == State::kStopping) {
      spawn(tear_down(Job(shared_from_this()), entry));
    } else {
      schedule(entry);  // Overdue ones are first in the queue of the clock.
    }
  }
  not_ready = "comparing the store with the runtime";
  return {};
}

Task<Result<void>> SandboxService::Impl::reconcile() {
  // Only what stands still while list() is under way can be judged by its answer.
  std::vector<std::pair<EntryPtr, std::int64_t>> still;
  std::unordered_set<std::string> known;
  for (const auto& [id, entry] : entries) {
    known.insert(id);
    const State s = entry->row.state;
    if (!entry->op && s != State::kCreating && s != State::kStopping) {
      still.emplace_back(entry, entry->row.revision);
    }
  }
  const Deadline deadline = time.now() + config.operation_timeout;
  GB_CO_TRY_ASSIGN(const std::vector<Live> all, co_await runtime.list(deadline));

  std::unordered_map<std::string, const Live*> by_id;
  std::vector<SandboxId> orphans;
  for (const Live& l : all) {
    by_id[l.id.str()] = &l;
    if (!known.contains(l.id.str()) && !find(l.id)) orphans.push_back(l.id);
  }
  for (const auto& [entry, revision] : still) {
    if (entry->op || entry->row.revision != revision) continue;
    const auto it = by_id.find(entry->row.id.str());
    compare(entry, it == by_id.end() ? nullptr : it->second);
  }
  co_await destroy_orphans(std::move(orphans));
  co_return Result<void>();
}

void SandboxService::Impl::compare(const EntryPtr& entry, const Live* l) {
  const State state = entry->row.state;
  if (!next(state, Event::kStop)) return;
  if (l == nullptr) {
    ++stats.lost_total;
    return stop(entry, State::kFailed, "lost: the runtime does not have it any more");
  }
  const bool frozen = l->frozen;
  if (state == State::kPausing || state == State::kResuming) {
    // Interrupted by a restart: whichever way it went is how it is now.
    const bool pausing = state == State::kPausing;
    const Event event = pausing ? (frozen ? Event::kPaused : Event::kUndo)
                                : (frozen ? Event::kUndo : Event::kReady);
    const Result<void> moved = move(entry, event, [&](Sandbox& s) {
      // What was being paused keeps what it had left; nothing, if that was why.
      if (!frozen) start_clock(s, pausing ? Millis(1) : Millis(0));
    });
    if (!moved) log.error("reconcile", {{"error", moved.error()}});
    return;
  }
  if (frozen != (state == State::kPaused)) {
    begin_op(*entry);
    spawn(repair(Job(shared_from_this()), entry));
  }
}

Task<void> SandboxService::Impl::destroy_orphans(std::vector<SandboxId> orphans) {
  for (const SandboxId& id : orphans) {
    log.warn("a sandbox without an owner is removed", {{"sandbox", id.str()}});
    const Deadline deadline = time.now() + config.operation_timeout;
    const Result<void> gone = co_await runtime.destroy(id, deadline);
    if (gone) ++stats.orphans_destroyed_total;
    if (closing) co_return;
  }
}

Task<void> SandboxService::Impl::reconcile_loop(Job job) {
  Impl& self = *job.operator->();
  Millis retry = kFirstRetry;
  while (!self.closing) {
    const Result<void> done = co_await self.reconcile();
    if (self.closing) co_return;
    Clock::duration wait = self.config.reconcile_every;
    ++(done ? self.stats.reconcile_total : self.stats.reconcile_failed_total);
    if (done) {
      self.not_ready.reset();
      retry = kFirstRetry;
    } else {
      // A runtime that is away for a moment must not stop creates that it may serve the next;
      // before the first time, nobody knows what runs here.
      if (self.not_ready) self.not_ready = "the runtime does not answer: " + done.error().text();
      self.log.warn("reconcile failed; will try again", {{"error", done.error()}});
      wait = retry;
      retry = std::min(retry * 2, kLastRetry);
    }
    co_await self.reconcile_alarm->wait_until(self.time.now() + wait);
  }
}

Task<void> SandboxService::Impl::purge_loop(Job job) {
  Impl& self = *job.operator->();
  while (!self.closing) {
    const WallTime now = self.time.wall();
    SandboxRepository::Keep keep;
    keep.ended_after = now - self.config.ended_kept;
    keep.keys_after = now - self.config.idempotency_kept;
    keep.keys_max = self.config.idempotency_max;
    keep.events_after = now - self.config.events_kept;
    keep.events_max = self.config.events_max;
    const Result<bool> more = self.repository.purge(keep);
    if (!more) self.log.error("old rows could not be removed", {{"error", more.error()}});
    const bool soon = more && more.value();
    co_await self.purge_alarm->wait_until(self.time.now() + (soon ? kPurgeMore : kPurgeEvery));
  }
}

}  // namespace glovebox::sandbox
