// How a sandbox ends: by a client, by its own death, or because making it failed.

#include <algorithm>

#include "async/coro.h"
#include "sandbox/service_impl.h"

namespace glovebox::sandbox {
namespace {

constexpr Millis kFirstRetry(100);
constexpr Millis kLastRetry(5000);
constexpr std::size_t kReasonMax = 1000;

// Reasons quote the runtime, which quotes the kernel or a sandbox.
std::string clipped(std::string text) {
  if (text.size() <= kReasonMax) return text;
  std::size_t end = kReasonMax;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  text.resize(end);
  return text + "...";
}

}  // namespace

void SandboxService::Impl::stop(const EntryPtr& entry, State ending, std::string reason) {
  if (!next(entry->row.state, Event::kStop)) return;  // It is stopping already.
  reason = clipped(std::move(reason));
  const auto change = [&](Sandbox& s) {
    s.ending = ending;
    s.reason = reason;
    s.remaining.reset();
  };
  if (const Result<void> stored = move(entry, Event::kStop, change); !stored) {
    log.error("a stop could not be stored; going on",
              {{"sandbox", entry->row.id.str()}, {"error", stored.error()}});
    entry->row.state = State::kStopping;
    entry->row.state_since = time.wall();
    change(entry->row);
    schedule(entry);
  }
  log.info("sandbox stops", {{"sandbox", entry->row.id.str()}, {"reason", entry->row.reason}});
  spawn(tear_down(Job(shared_from_this()), entry));
}

Task<void> SandboxService::Impl::tear_down(Job job, EntryPtr entry) {
  Impl& self = *job.operator->();
  const Deadline begun = self.time.now();
  // A create, freeze or thaw under way could otherwise bring it back.
  co_await quiet(entry);
  const bool removed = co_await self.remove(entry);
  if (!removed) co_return;  // Closing. The row says "stopping"; the next start goes on.
  self.stats.destroy.add(self.time.now() - begun);
  co_await self.store_end(entry);
}

Task<bool> SandboxService::Impl::remove(EntryPtr entry) {
  for (Millis wait = kFirstRetry;; wait = std::min(wait * 2, kLastRetry)) {
    const Deadline deadline = time.now() + config.operation_timeout;
    const Result<void> gone = co_await runtime.destroy(entry->row.id, deadline);
    entry->removed = gone || gone.error().code() == Errc::kNotFound;
    if (entry->removed) co_return true;
    log.warn("a sandbox could not be removed; will try again",
             {{"sandbox", entry->row.id.str()}, {"error", gone.error()}});
    entry->tear_error = gone.error();
    std::exchange(entry->torn, std::make_shared<async::Event>(executor))->set();
    const bool again = co_await back_off(wait);
    if (!again) co_return false;
  }
}

Task<void> SandboxService::Impl::store_end(EntryPtr entry) {
  const Event event = entry->row.ending == State::kFailed ? Event::kFail : Event::kGone;
  bool again = true;
  while (again) {
    const Result<void> stored = move(entry, event, [](Sandbox& s) { s.ended_at = s.state_since; });
    if (stored) break;
    log.error("the end of a sandbox could not be stored; will try again",
              {{"sandbox", entry->row.id.str()}, {"error", stored.error()}});
    entry->place.release();
    entry->torn->set();
    again = co_await back_off(kLastRetry);
  }
  unschedule(entry);
  entries.erase(entry->row.id.str());
  entry->place.release();
  entry->torn->set();
}

Task<Result<void>> SandboxService::Impl::destroy(SandboxId id) {
  const EntryPtr entry = find(id);
  if (!entry) {
    GB_CO_TRY_ASSIGN(const std::optional<Sandbox> ended, repository.find(id));
    if (!ended) co_return Error(Errc::kNotFound, "there is no such sandbox");
    co_return Result<void>();
  }
  const std::shared_ptr<async::Event> torn = entry->torn;
  stop(entry, State::kStopped, "deleted");
  co_await torn->wait();
  if (entry->removed) co_return Result<void>();
  if (!torn->is_set()) co_return Error(Errc::kUnavailable, "the caller stopped waiting");
  Error why = entry->tear_error.value_or(Error(Errc::kInternal, "no reason given"));
  co_return std::move(why).context("it is being removed, which takes longer");
}

void SandboxService::Impl::on_exit(const SandboxId& id, const std::string& reason) {
  const EntryPtr entry = find(id);
  if (!entry) return;
  if (entry->row.state == State::kCreating) {
    entry->died = reason.empty() ? "its first process ended" : reason;
    return;
  }
  if (entry->row.state == State::kStopping) return;
  ++stats.died_total;
  stop(entry, State::kFailed, "died: " + reason);
}

}  // namespace glovebox::sandbox
