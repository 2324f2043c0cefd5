// How a sandbox comes to be: idempotency, the queue, the store, the runtime.

#include "async/coro.h"
#include "base/random.h"
#include "sandbox/service_impl.h"
#include "sandbox/validate.h"

namespace glovebox::sandbox {
namespace {

constexpr std::size_t kIdCharacters = 20;

Result<void> check_isolation(const CreateSpec& spec, const Runtime& runtime) {
  if (!spec.isolation || *spec.isolation <= runtime.isolation()) return {};
  return Error(Errc::kInvalid, "isolation: " + std::string(to_string(*spec.isolation)) +
                                   " is not available here; the most is " +
                                   std::string(to_string(runtime.isolation())) + ", by " +
                                   std::string(runtime.name()));
}

Error other_request() {
  return Error(Errc::kConflict, "Idempotency-Key: was used for another request");
}

}  // namespace

// Counts one caller among those who wait, also when its coroutine is destroyed while it does.
class Waiting {
 public:
  using Left = std::function<void(Making&)>;
  Waiting(std::shared_ptr<Making> making, Left left)
      : making_(std::move(making)), left_(std::move(left)) {
    ++making_->waiters;
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() {
    --making_->waiters;
    left_(*making_);
  }

 private:
  std::shared_ptr<Making> making_;
  Left left_;
};

Task<Result<Sandbox>> SandboxService::Impl::create(CreateSpec spec, std::string key) {
  if (not_ready) co_return Error(Errc::kUnavailable, "not ready: " + *not_ready);
  GB_CO_TRY(check_idempotency_key(key));
  GB_CO_TRY_ASSIGN(Sandbox row, resolve(spec, config));
  GB_CO_TRY(check_isolation(spec, runtime));

  std::shared_ptr<Making> making;
  bool first = false;
  const std::string hash = key.empty() ? std::string() : request_hash(spec);
  if (const auto it = by_key.find(key); !key.empty() && it != by_key.end()) {
    if (it->second->request_hash != hash) co_return other_request();
    making = it->second;
  } else {
    GB_CO_TRY_ASSIGN(std::optional<Sandbox> before, answered(key, hash));
    if (before) co_return std::move(*before);
    making = std::make_shared<Making>(executor);
    making->key = key;
    making->request_hash = hash;
    if (!key.empty()) by_key[key] = making;
    first = true;
  }

  const Waiting waiting(making, [self = shared_from_this()](Making& m) { self->left(m); });
  if (first) spawn(make(Job(shared_from_this()), making, std::move(row)));
  co_await making->done.wait();
  if (!making->result) co_return Error(Errc::kUnavailable, "the caller stopped waiting");
  co_return *making->result;
}

Result<std::optional<Sandbox>> SandboxService::Impl::answered(const std::string& key,
                                                              const std::string& hash) {
  if (key.empty()) return std::optional<Sandbox>();
  GB_TRY_ASSIGN(const auto known, repository.answered(key, time.wall() - config.idempotency_kept));
  if (!known) return std::optional<Sandbox>();
  if (known->request_hash != hash) return other_request();
  if (const EntryPtr entry = find(known->sandbox)) return std::optional<Sandbox>(entry->row);
  GB_TRY_ASSIGN(std::optional<Sandbox> ended, repository.find(known->sandbox));
  if (ended) return ended;
  return Error(Errc::kConflict, "Idempotency-Key: its sandbox " + known->sandbox.str() +
                                    " has ended and is no longer kept");
}

void SandboxService::Impl::left(Making& making) {
  if (making.waiters > 0 || making.result || making.admitted) return;
  // The next call with this key must start anew and not join what is being given up.
  by_key.erase(making.key);
  making.ticket->cancel();
}

Task<void> SandboxService::Impl::make(Job job, std::shared_ptr<Making> making, Sandbox row) {
  Impl& self = *job.operator->();
  const Deadline queued = self.time.now();
  Result<Admission::Grant> grant = co_await self.admission.enter(
      row.limits.memory_bytes, queued + self.config.queue_deadline, making->ticket);
  self.stats.queue_wait.add(self.time.now() - queued);

  Result<Sandbox> result = Error(Errc::kUnavailable, "the service is closing");
  if (!grant) {
    Stats& stats = self.stats;
    ++(grant.error().code() == Errc::kExhausted ? stats.create_refused_total
                                                : stats.create_abandoned_total);
    result = grant.error();
  } else if (!self.closing) {
    Admission::Grant granted = std::move(*grant);
    making->admitted = true;
    result = co_await self.make_admitted(making, std::move(row), std::move(granted));
  }
  if (!result && grant) ++self.stats.create_failed_total;
  making->result = std::move(result);
  if (const auto it = self.by_key.find(making->key);
      it != self.by_key.end() && it->second == making) {
    self.by_key.erase(it);
  }
  making->done.set();
}

Task<Result<Sandbox>> SandboxService::Impl::make_admitted(std::shared_ptr<Making> making,
                                                          Sandbox row, Admission::Grant grant) {
  const Deadline begun = time.now();
  row.id = SandboxId("sb-" + random_name(kIdCharacters));
  row.revision = 1;
  row.isolation = runtime.isolation();
  row.runtime = runtime.name();
  row.created_at = row.state_since = time.wall();
  std::optional<IdempotencyKey> key;
  if (!making->key.empty()) key = IdempotencyKey{making->key, making->request_hash};
  // Before the runtime: what it makes must never be without a row.
  GB_CO_TRY(repository.insert(row, key));

  const EntryPtr entry = std::make_shared<Entry>(std::move(row), executor);
  entry->place = std::move(grant.place);
  entry->last_used = begun;
  entries[entry->row.id.str()] = entry;
  begin_op(*entry);
  LaunchSpec launch;
  launch.id = entry->row.id;
  launch.template_id = entry->row.template_id;
  launch.limits = entry->row.limits;
  Result<void> created = co_await runtime.create(std::move(launch), begun + config.create_timeout);
  grant.worker.release();
  Result<Sandbox> result = made(*making, entry, std::move(created));
  end_op(*entry, result);
  if (result) {
    ++stats.created_total;
    stats.create.add(time.now() - begun);
  }
  co_return result;
}

Result<Sandbox> SandboxService::Impl::made(const Making& making, const EntryPtr& entry,
                                           Result<void> created) {
  if (entry->row.state != State::kCreating) {
    return wrong_state(entry->row, "it was told to stop while it was being made");
  }
  std::optional<Error> fault;
  if (!created) fault = std::move(created).error();
  if (!fault && !entry->died.empty()) fault = Error(Errc::kUnavailable, "it died: " + entry->died);
  if (!fault && making.waiters == 0 && making.key.empty()) {
    ++stats.create_abandoned_total;
    fault = Error(Errc::kUnavailable, "nobody waits for it");
  }
  if (!fault) {
    const Result<void> ready =
        move(entry, Event::kReady, [](Sandbox& s) { s.expires_at = s.state_since + s.timeout; });
    if (ready) return entry->row;
    fault = ready.error();
  }
  log.warn("a sandbox could not be made", {{"sandbox", entry->row.id.str()}, {"error", *fault}});
  // Also after a failure: what the runtime began, or does after its deadline, must not stay.
  stop(entry, State::kFailed, "create failed: " + fault->text());
  return *fault;
}

}  // namespace glovebox::sandbox
