// The inside of SandboxService. Included by service*.cc only.
//
// How it stays right without locks: one thread, and no decision spans a co_await. A state is
// changed by move() alone, in the store first. While a runtime call for a sandbox is under way its
// Entry has an Op, and nobody else makes one; only stop() may barge in, and its teardown waits for
// the call to end before it destroys. So a create or resume that comes back late finds `stopping`
// and leaves it alone.

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "async/event.h"
#include "sandbox/admission.h"
#include "sandbox/repository.h"
#include "sandbox/service.h"

namespace glovebox::sandbox {

// A runtime call under way for one sandbox, and what came of it.
struct Op {
  explicit Op(const Executor& executor) : done(executor) {}
  async::Event done;
  Result<Sandbox> result;
};

// One sandbox that has not ended.
struct Entry {
  Entry(Sandbox s, const Executor& executor);

  Sandbox row;
  // What the store has. Behind `row` only while a sandbox stops and the store takes no writes.
  State stored_state;
  std::int64_t stored_revision;
  Admission::Place place;

  Deadline expires = Deadline::max();  // row.expires_at on the monotonic clock.
  Deadline last_used{};
  int uses = 0;
  Deadline due = Deadline::max();  // Where it stands in the schedule.

  std::shared_ptr<Op> op;  // Null when no runtime call is under way: then it is not busy.
  std::shared_ptr<async::Event> torn;  // Set after each attempt to remove it.
  bool removed = false;                // Nothing is left of it in the runtime.
  std::optional<Error> tear_error;     // What the last attempt said.
  std::string died;                    // Its exit, told while it was being made.
  int auto_pauses_failed = 0;
};
using EntryPtr = std::shared_ptr<Entry>;

// One create on its way, and those who wait for it.
struct Making {
  explicit Making(const Executor& executor) : done(executor) {}
  std::string key;  // Empty without one.
  std::string request_hash;
  std::shared_ptr<Admission::Ticket> ticket = std::make_shared<Admission::Ticket>();
  int waiters = 0;
  bool admitted = false;  // Out of the queue; from here on it is not given up.
  std::optional<Result<Sandbox>> result;
  async::Event done;
};

struct SandboxService::Impl : std::enable_shared_from_this<SandboxService::Impl> {
  Impl(boost::asio::io_context& io_context, store::Database& db, Runtime& rt, async::TimeSource& ts,
       log::Logger& logger, ServiceConfig c);

  // What a detached coroutine holds: the service's inside, and its place in the count that close()
  // waits for.
  class Job {
   public:
    explicit Job(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) { ++impl_->jobs; }
    Job(Job&&) noexcept = default;
    Job& operator=(Job&&) = delete;
    ~Job();
    Impl* operator->() const { return impl_.get(); }

   private:
    std::shared_ptr<Impl> impl_;
  };
  void spawn(Task<void> task);

  // service_create.cc
  Task<Result<Sandbox>> create(CreateSpec spec, std::string key);
  Result<std::optional<Sandbox>> answered(const std::string& key, const std::string& hash);
  static Task<void> make(Job job, std::shared_ptr<Making> making, Sandbox row);
  Task<Result<Sandbox>> make_admitted(std::shared_ptr<Making> making, Sandbox row,
                                      Admission::Grant grant);
  Result<Sandbox> made(const Making& making, const EntryPtr& entry, Result<void> created);
  void left(Making& making);  // One who waited went away.

  // service_end.cc
  // Cannot fail: a full disk must not keep alive what should end (and what perhaps fills it). If
  // the store refuses and the daemon then dies, it finds a running row and nothing alive: "lost".
  void stop(const EntryPtr& entry, State ending, std::string reason);
  static Task<void> tear_down(Job job, EntryPtr entry);
  Task<bool> remove(EntryPtr entry);
  Task<void> store_end(EntryPtr entry);
  Task<Result<void>> destroy(SandboxId id);
  void on_exit(const SandboxId& id, const std::string& reason);

  // service_pause.cc
  Task<Result<Sandbox>> pause(SandboxId id);
  Task<Result<Sandbox>> resume(SandboxId id);
  Result<std::shared_ptr<Op>> begin_pause(const EntryPtr& entry);
  Result<std::shared_ptr<Op>> begin_resume(const EntryPtr& entry);
  static Task<void> pause_job(Job job, EntryPtr entry);
  static Task<void> resume_job(Job job, EntryPtr entry);
  static Task<void> repair(Job job, EntryPtr entry);
  // Stores the outcome of a pause or resume, however often that must be tried.
  Task<void> settle(EntryPtr entry, Event event);

  // service_clock.cc
  Deadline due_of(const Entry& entry) const;
  void schedule(const EntryPtr& entry);
  void schedule_at(const EntryPtr& entry, Deadline at);
  void unschedule(const EntryPtr& entry);
  void on_due(const EntryPtr& entry);
  void time_is_up(const EntryPtr& entry, const std::string& reason);
  Result<Sandbox> extend(const SandboxId& id, Millis timeout);
  void stop_clock(const Entry& entry, Sandbox& row) const;  // On the way into a pause.
  void start_clock(Sandbox& row, Millis least) const;       // Out of it.
  void follow_wall(Entry& entry) const;                     // Sets `expires` from the row.
  static Task<void> clock_loop(Job job);

  // service_reconcile.cc
  Result<void> load();
  Task<Result<void>> reconcile();
  void compare(const EntryPtr& entry, const Live* live);
  Task<void> destroy_orphans(std::vector<SandboxId> orphans);
  static Task<void> reconcile_loop(Job job);
  static Task<void> purge_loop(Job job);

  // The one writer. Stores the sandbox in its next state, changed by `change`; only then does
  // anything in memory follow.
  using Change = std::function<void(Sandbox&)>;
  Result<void> move(const EntryPtr& entry, Event event, const Change& change = {});
  // The same for a change that keeps the state.
  Result<void> amend(const EntryPtr& entry, std::string_view event, const Change& change);
  Result<void> store(const EntryPtr& entry, Sandbox to, std::string_view event);

  EntryPtr find(const SandboxId& id) const;
  // An entry, or why there is none: kNotFound, or kConflict when it has ended.
  Result<EntryPtr> live(const SandboxId& id);
  void begin_op(Entry& entry);
  void end_op(Entry& entry, Result<Sandbox> result);
  // Waits until no runtime call is under way. False when the caller was cancelled.
  static Task<bool> quiet(EntryPtr entry);
  void end_use(const EntryPtr& entry);

  boost::asio::io_context& io;
  Executor executor;
  SandboxRepository repository;
  Runtime& runtime;
  async::TimeSource& time;
  log::Logger& log;
  ServiceConfig config;
  Admission admission;

  std::unordered_map<std::string, EntryPtr> entries;
  std::map<std::string, std::shared_ptr<Making>> by_key;  // Creates on their way.
  std::set<std::pair<Deadline, EntryPtr>> due;

  std::optional<std::string> not_ready = "starting";
  bool closing = false;
  int jobs = 0;
  std::unique_ptr<async::Alarm> clock_alarm;
  std::unique_ptr<async::Alarm> reconcile_alarm;
  std::unique_ptr<async::Alarm> purge_alarm;
  std::unique_ptr<async::Alarm> drained;
  std::set<async::Alarm*> pauses;  // Alarms of jobs that wait to try again.
  Stats stats;
  std::uint32_t streams_open = 0;

  // Waits, unless the service closes. False when it does.
  Task<bool> back_off(Clock::duration d);
};

// "sandbox sb-1 is stopped (expired: ...)".
Error wrong_state(const Sandbox& sandbox, std::string_view wanted);

}  // namespace glovebox::sandbox
