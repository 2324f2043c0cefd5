// Time: when a sandbox's is up, and what holds the clock.
//
// Deadlines are stored in wall time and waited for in monotonic time; they are converted when they
// are set and when the daemon starts. So a jump of the wall clock ends nothing, and a restart keeps
// the moment that the client was told.

#include <algorithm>

#include "async/coro.h"
#include "sandbox/service_impl.h"

namespace glovebox::sandbox {
namespace {

std::string seconds(Millis d) { return std::to_string(d.count() / 1000) + " s"; }

bool idle_counts(const Entry& entry) {
  return entry.row.idle_timeout && entry.uses == 0 && entry.row.state == State::kRunning;
}

}  // namespace

Deadline SandboxService::Impl::due_of(const Entry& entry) const {
  if (entry.row.state == State::kPaused) return entry.expires;
  if (entry.row.state != State::kRunning) return Deadline::max();
  if (!idle_counts(entry)) return entry.expires;
  return std::min<Deadline>(entry.expires, entry.last_used + *entry.row.idle_timeout);
}

void SandboxService::Impl::follow_wall(Entry& entry) const {
  entry.expires = Deadline::max();
  if (entry.row.state == State::kRunning && entry.row.expires_at) {
    entry.expires = time.now() + (*entry.row.expires_at - time.wall());
  }
  if (entry.row.state == State::kPaused) {
    entry.expires = time.now() + (entry.row.state_since + config.paused_max - time.wall());
  }
}

void SandboxService::Impl::schedule(const EntryPtr& entry) { schedule_at(entry, due_of(*entry)); }

void SandboxService::Impl::schedule_at(const EntryPtr& entry, Deadline at) {
  if (entry->due == at) return;
  unschedule(entry);
  entry->due = at;
  if (at == Deadline::max()) return;
  due.insert({at, entry});
  if (due.begin()->second == entry) clock_alarm->wake();
}

void SandboxService::Impl::unschedule(const EntryPtr& entry) {
  if (entry->due != Deadline::max()) due.erase({entry->due, entry});
  entry->due = Deadline::max();
}

void SandboxService::Impl::on_due(const EntryPtr& entry) {
  const Deadline now = time.now();
  // It was touched or used since it was put there.
  if (due_of(*entry) > now) return schedule(entry);
  unschedule(entry);
  if (entry->row.state == State::kPaused) {
    stop(entry, State::kStopped, "expired: it was paused for " + seconds(config.paused_max));
  } else if (entry->expires <= now) {
    time_is_up(entry, "expired: its time was up");
  } else {
    time_is_up(entry, "idle: nobody used it for " + seconds(*entry->row.idle_timeout));
  }
}

Task<void> SandboxService::Impl::clock_loop(Job job) {
  Impl& self = *job.operator->();
  while (!self.closing) {
    const Deadline now = self.time.now();
    while (!self.due.empty() && self.due.begin()->first <= now) {
      const EntryPtr entry = self.due.begin()->second;
      self.on_due(entry);
    }
    const Deadline next = self.due.empty() ? Deadline::max() : self.due.begin()->first;
    co_await self.clock_alarm->wait_until(next);
  }
}

void SandboxService::Impl::stop_clock(const Entry& entry, Sandbox& row) const {
  const Clock::duration left = std::max(entry.expires - time.now(), Clock::duration(0));
  row.remaining = std::chrono::floor<Millis>(left);
  row.expires_at.reset();
}

void SandboxService::Impl::start_clock(Sandbox& row, Millis least) const {
  Millis left = row.remaining.value_or(Millis(0));
  if (least == Millis(0) && left == Millis(0)) left = row.timeout;  // It had used up all of it.
  row.expires_at = row.state_since + std::max(left, least);
  row.remaining.reset();
}

Result<Sandbox> SandboxService::Impl::extend(const SandboxId& id, Millis timeout) {
  GB_TRY_ASSIGN(const EntryPtr entry, live(id));
  if (entry->row.state == State::kRunning && due_of(*entry) <= time.now()) on_due(entry);
  switch (entry->row.state) {
    case State::kRunning:
      GB_TRY(amend(entry, "extend", [&](Sandbox& s) { s.expires_at = time.wall() + timeout; }));
      return entry->row;
    case State::kPausing:
    case State::kPaused:
    case State::kResuming:
      GB_TRY(amend(entry, "extend", [&](Sandbox& s) { s.remaining = timeout; }));
      return entry->row;
    case State::kCreating:
    case State::kStopping:
    case State::kStopped:
    case State::kFailed: break;
  }
  return wrong_state(entry->row, "it cannot be extended");
}

}  // namespace glovebox::sandbox
