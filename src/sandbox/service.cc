#include "sandbox/service.h"

#include <algorithm>
#include <thread>

#include "async/coro.h"
#include "sandbox/service_impl.h"
#include "sandbox/validate.h"

namespace glovebox::sandbox {
namespace {

Admission::Config admission_config(const ServiceConfig& c) {
  const std::uint32_t workers =
      c.workers != 0 ? c.workers : 2 * std::max(1U, std::thread::hardware_concurrency());
  return {.workers = workers,
          .places = c.sandboxes_max,
          .memory_bytes = c.memory_bytes_max,
          .queue_max = c.queue_max};
}

}  // namespace

Error wrong_state(const Sandbox& s, std::string_view wanted) {
  std::string text = "sandbox " + s.id.str() + " is " + std::string(to_string(s.state));
  if (!s.reason.empty()) text += " (" + s.reason + ")";
  return Error(Errc::kConflict, text + "; " + std::string(wanted));
}

Entry::Entry(Sandbox s, const Executor& executor)
    : row(std::move(s)),
      stored_state(row.state),
      stored_revision(row.revision),
      torn(std::make_shared<async::Event>(executor)) {}

SandboxService::Impl::Impl(boost::asio::io_context& io_context, store::Database& db, Runtime& rt,
                           async::TimeSource& ts, log::Logger& logger, ServiceConfig c)
    : io(io_context),
      executor(io_context.get_executor()),
      repository(db),
      runtime(rt),
      time(ts),
      log(logger),
      config(std::move(c)),
      admission(ts, admission_config(config)),
      clock_alarm(ts.make_alarm()),
      reconcile_alarm(ts.make_alarm()),
      purge_alarm(ts.make_alarm()),
      drained(ts.make_alarm()) {}

SandboxService::Impl::Job::~Job() {
  if (impl_ && --impl_->jobs == 0 && impl_->closing) impl_->drained->wake();
}

void SandboxService::Impl::spawn(Task<void> task) {
  boost::asio::co_spawn(executor, std::move(task), [&logger = log](std::exception_ptr e) {
    // Our jobs return errors; what throws here is the library, and it is a bug.
    if (e) logger.error("a job of the sandbox service threw");
  });
}

Task<bool> SandboxService::Impl::back_off(Clock::duration d) {
  if (closing) co_return false;
  const std::unique_ptr<async::Alarm> alarm = time.make_alarm();
  pauses.insert(alarm.get());
  co_await alarm->wait_until(time.now() + d);
  pauses.erase(alarm.get());
  co_return !closing;
}

Result<void> SandboxService::Impl::store(const EntryPtr& entry, Sandbox to,
                                         std::string_view event) {
  to.revision = entry->stored_revision + 1;
  Sandbox from = entry->row;
  from.state = entry->stored_state;
  from.revision = entry->stored_revision;
  GB_TRY(repository.update(from, to, event).context("store " + to.id.str()));
  entry->row = std::move(to);
  entry->stored_state = entry->row.state;
  entry->stored_revision = entry->row.revision;
  follow_wall(*entry);
  schedule(entry);
  return {};
}

Result<void> SandboxService::Impl::move(const EntryPtr& entry, Event event, const Change& change) {
  GB_TRY_ASSIGN(const State to, apply(entry->row.state, event));
  Sandbox next = entry->row;
  next.state = to;
  next.state_since = time.wall();
  if (change) change(next);
  return store(entry, std::move(next), to_string(event));
}

Result<void> SandboxService::Impl::amend(const EntryPtr& entry, std::string_view event,
                                         const Change& change) {
  Sandbox next = entry->row;
  change(next);
  return store(entry, std::move(next), event);
}

EntryPtr SandboxService::Impl::find(const SandboxId& id) const {
  const auto it = entries.find(id.str());
  return it == entries.end() ? nullptr : it->second;
}

Result<EntryPtr> SandboxService::Impl::live(const SandboxId& id) {
  if (EntryPtr entry = find(id)) return entry;
  GB_TRY_ASSIGN(const std::optional<Sandbox> ended, repository.find(id));
  if (!ended) return Error(Errc::kNotFound, "there is no such sandbox");
  return wrong_state(*ended, "it has ended");
}

void SandboxService::Impl::begin_op(Entry& entry) { entry.op = std::make_shared<Op>(executor); }

void SandboxService::Impl::end_op(Entry& entry, Result<Sandbox> result) {
  const std::shared_ptr<Op> op = std::move(entry.op);
  op->result = std::move(result);
  op->done.set();
}

Task<bool> SandboxService::Impl::quiet(EntryPtr entry) {
  while (entry->op) {
    const std::shared_ptr<Op> op = entry->op;
    co_await op->done.wait();
    if (!op->done.is_set()) co_return false;
  }
  co_return true;
}

// --- the public face ---

SandboxService::SandboxService(boost::asio::io_context& io, store::Database& db, Runtime& runtime,
                               async::TimeSource& time, log::Logger& log, ServiceConfig config)
    : impl_(std::make_shared<Impl>(io, db, runtime, time, log, std::move(config))) {}

SandboxService::~SandboxService() = default;

Result<void> SandboxService::start() {
  GB_TRY(impl_->load());
  impl_->runtime.on_exit(
      [weak = std::weak_ptr(impl_)](const SandboxId& id, const std::string& reason) {
        if (const auto impl = weak.lock()) impl->on_exit(id, reason);
      });
  impl_->spawn(Impl::clock_loop(Impl::Job(impl_)));
  impl_->spawn(Impl::reconcile_loop(Impl::Job(impl_)));
  impl_->spawn(Impl::purge_loop(Impl::Job(impl_)));
  return {};
}

Task<void> SandboxService::close(Deadline deadline) {
  const std::shared_ptr<Impl> impl = impl_;
  impl->closing = true;
  impl->not_ready = "closing";
  impl->admission.cancel_all();
  impl->clock_alarm->wake();
  impl->reconcile_alarm->wake();
  impl->purge_alarm->wake();
  for (async::Alarm* alarm : impl->pauses) alarm->wake();
  bool late = false;
  while (impl->jobs > 0 && !late) late = co_await impl->drained->wait_until(deadline);
}

std::optional<std::string> SandboxService::not_ready() const { return impl_->not_ready; }

Task<Result<Sandbox>> SandboxService::create(CreateSpec spec, std::string idempotency_key) {
  return impl_->create(std::move(spec), std::move(idempotency_key));
}

Task<Result<Sandbox>> SandboxService::get(SandboxId id) {
  if (const EntryPtr entry = impl_->find(id)) co_return entry->row;
  GB_CO_TRY_ASSIGN(std::optional<Sandbox> ended, impl_->repository.find(id));
  if (!ended) co_return Error(Errc::kNotFound, "there is no such sandbox");
  co_return std::move(*ended);
}

Task<Result<Page>> SandboxService::list(Filter filter, int limit, std::string cursor) {
  co_return impl_->repository.list(filter, limit, cursor);
}

Task<Result<void>> SandboxService::destroy(SandboxId id) { return impl_->destroy(std::move(id)); }

Task<Result<Sandbox>> SandboxService::extend(SandboxId id, Millis timeout) {
  GB_CO_TRY(check_timeout(timeout, impl_->config));
  co_return impl_->extend(id, timeout);
}

Task<Result<Sandbox>> SandboxService::extend_until(SandboxId id, WallTime expires_at) {
  const Millis timeout = expires_at - impl_->time.wall();
  if (timeout <= Millis(0) || timeout > impl_->config.timeout_max) {
    co_return Error(Errc::kInvalid, "expires_at: must lie ahead, by at most " +
                                        std::to_string(impl_->config.timeout_max.count() / 1000) +
                                        " seconds");
  }
  co_return impl_->extend(id, timeout);
}

Task<Result<Sandbox>> SandboxService::pause(SandboxId id) { return impl_->pause(std::move(id)); }

Task<Result<Sandbox>> SandboxService::resume(SandboxId id) { return impl_->resume(std::move(id)); }

Task<Result<Usage>> SandboxService::usage(SandboxId id) {
  GB_CO_TRY_ASSIGN(const EntryPtr entry, impl_->live(id));
  if (entry->row.state == State::kCreating || entry->row.state == State::kStopping) {
    co_return wrong_state(entry->row, "it cannot be measured");
  }
  const Deadline deadline = impl_->time.now() + impl_->config.operation_timeout;
  co_return co_await impl_->runtime.usage(id, deadline);
}

Task<Result<UniqueFd>> SandboxService::open_agent(SandboxId id, Deadline deadline) {
  return impl_->runtime.open_agent(std::move(id), deadline);
}

Task<Result<UniqueFd>> SandboxService::open_port(SandboxId id, std::uint16_t port,
                                                 Deadline deadline) {
  return impl_->runtime.open_port(std::move(id), port, deadline);
}

// --- use ---

struct SandboxService::Use::Hold {
  std::weak_ptr<Impl> impl;
  EntryPtr entry;
  SandboxId id;
  std::shared_ptr<const Env> env;

  Hold(const std::shared_ptr<Impl>& i, EntryPtr e)
      : impl(i), entry(std::move(e)), id(entry->row.id), env(entry->row.env) {
    ++entry->uses;
    ++i->streams_open;
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold() {
    if (const auto i = impl.lock()) i->end_use(entry);
  }
};

SandboxService::Use::Use(std::unique_ptr<Hold> hold) : hold_(std::move(hold)) {}
SandboxService::Use::Use(Use&&) noexcept = default;
SandboxService::Use::~Use() = default;
const SandboxId& SandboxService::Use::id() const noexcept { return hold_->id; }
const Env& SandboxService::Use::env() const noexcept { return *hold_->env; }

Result<SandboxService::Use> SandboxService::use(const SandboxId& id) {
  GB_TRY_ASSIGN(EntryPtr entry, impl_->live(id));
  // The clock loop may be a moment late; the deadline is not.
  if (entry->row.state == State::kRunning && impl_->due_of(*entry) <= impl_->time.now()) {
    impl_->on_due(entry);
  }
  if (entry->row.state != State::kRunning) {
    return wrong_state(entry->row, "only a running one can be used");
  }
  return Use(std::make_unique<Use::Hold>(impl_, std::move(entry)));
}

void SandboxService::Impl::end_use(const EntryPtr& entry) {
  --streams_open;
  entry->last_used = time.now();
  if (--entry->uses == 0 && entry->row.idle_timeout) schedule(entry);
}

void SandboxService::touch(const SandboxId& id) {
  // Where it stands in the schedule is now too early; on_due() looks again.
  if (const EntryPtr entry = impl_->find(id)) entry->last_used = impl_->time.now();
}

// --- numbers ---

Stats SandboxService::snapshot() const {
  Stats out = impl_->stats;
  for (const auto& [id, entry] : impl_->entries) {
    ++out.by_state[static_cast<std::size_t>(entry->row.state)];
  }
  const Admission& admission = impl_->admission;
  out.streams_open = impl_->streams_open;
  out.queue_length = admission.queue_length();
  out.workers_busy = admission.workers_busy();
  out.workers = admission.config().workers;
  out.capacity_used = admission.places_used();
  out.capacity = admission.config().places;
  out.memory_committed_bytes = admission.memory_used();
  return out;
}

std::chrono::seconds SandboxService::retry_after() const {
  // When the next sandbox will expire is known; when somebody deletes one is not. So: as long as
  // those in front of a new one need with the workers there are, within 1 to 30 s.
  const Stats& s = impl_->stats;
  const double each =
      s.create.count == 0 ? 0.05 : s.create.sum_s / static_cast<double>(s.create.count);
  const double queue = static_cast<double>(impl_->admission.queue_length()) * each /
                       static_cast<double>(impl_->admission.config().workers);
  return std::chrono::seconds(static_cast<int>(std::clamp(queue, 1.0, 30.0)));
}

}  // namespace glovebox::sandbox
