// SandboxService: everything that can be done with sandboxes. Every API is an adapter over it.
//
// Single-threaded: call it from the io_context's thread only. Work that was begun goes on when the
// caller stops waiting (a client hung up), so nothing is left half-made:
//   create   without an idempotency key ends by removing what it made, since nobody knows its id;
//            with one, the sandbox stays and the next call with that key gets it.
//   others   run to their end.
// A queued create that nobody waits for leaves the queue.
//
// Errors: kNotFound for an unknown id; kConflict when the state forbids it, naming the state;
// kInvalid names the field; kUnavailable while the runtime or the store cannot be reached.
// Store calls block for some 50 us on this thread.

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/task.h"
#include "async/time_source.h"
#include "base/deadline.h"
#include "base/log.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "sandbox/runtime.h"
#include "sandbox/sandbox.h"
#include "sandbox/stats.h"
#include "store/database.h"

namespace glovebox::sandbox {

struct ServiceConfig {
  std::uint32_t workers = 0;  // Creates at the same time; 0: twice the processors.
  std::uint32_t sandboxes_max = 1000;
  std::uint64_t memory_bytes_max = 0;  // For the sum of all memory limits; 0: not counted.
  std::uint32_t queue_max = 10'000;    // Creates that may wait.
  std::chrono::seconds queue_deadline{30};
  std::chrono::seconds create_timeout{30};
  std::chrono::seconds operation_timeout{15};  // For one freeze, thaw or destroy.

  Millis timeout_default{std::chrono::seconds(300)};
  Millis timeout_max{std::chrono::hours(24 * 30)};
  Limits limits_default;
  Limits limits_max{
      .memory_bytes = 64ULL << 30, .disk_bytes = 1ULL << 40, .cpu_millis = 128'000, .pids = 65'536};
  std::vector<std::string> templates{"host"};

  std::chrono::seconds paused_max{std::chrono::hours(24 * 30)};  // Longer, and it is stopped.
  std::chrono::seconds ended_kept{std::chrono::hours(1)};
  std::chrono::seconds idempotency_kept{std::chrono::hours(24)};
  std::uint32_t idempotency_max = 100'000;
  std::chrono::seconds events_kept{std::chrono::hours(24 * 7)};
  std::uint32_t events_max = 1'000'000;
  std::chrono::seconds reconcile_every{30};
};

class SandboxService {
  struct Impl;

 public:
  // A stream to or from a sandbox that is open. While one exists the sandbox is not idle.
  // May outlive the service, not the io_context.
  class Use {
   public:
    Use(Use&&) noexcept;
    Use& operator=(Use&&) = delete;
    ~Use();
    const SandboxId& id() const noexcept;
    const Env& env() const noexcept;

   private:
    friend class SandboxService;
    struct Hold;
    explicit Use(std::unique_ptr<Hold> hold);
    std::unique_ptr<Hold> hold_;
  };

  // All are borrowed. `db` must be migrated with migrations() of sandbox/schema.h. End it by
  // close(), or destroy the io_context before anything borrowed and run nothing on it in between.
  SandboxService(boost::asio::io_context& io, store::Database& db, Runtime& runtime,
                 async::TimeSource& time, log::Logger& log, ServiceConfig config);
  ~SandboxService();

  // Reads what the store knows and begins to reconcile it with the runtime. Call it once.
  Result<void> start();
  // Takes no more work, waits for what is under way until the deadline. Sandboxes stay as they are.
  Task<void> close(Deadline deadline);
  // Empty once the store and the runtime agree; until then why not, and create() is kUnavailable.
  std::optional<std::string> not_ready() const;

  // Returns a running sandbox. `idempotency_key` is 1 to 255 bytes or empty; the same key with
  // another spec is kConflict. kExhausted after the queue's deadline, with retry_after().
  // kInvalid when no runtime here gives spec.isolation.
  Task<Result<Sandbox>> create(CreateSpec spec, std::string idempotency_key);
  Task<Result<Sandbox>> get(SandboxId id);
  // limit 1 to 1000; an empty cursor starts at the newest.
  Task<Result<Page>> list(Filter filter, int limit, std::string cursor);
  // When it returns success nothing is left, and no create, pause or resume under way brings it
  // back. Repeating it succeeds. kUnavailable or kTimeout: it will still be removed, later.
  Task<Result<void>> destroy(SandboxId id);
  // From now; may shorten. Of a paused one it sets what is left.
  Task<Result<Sandbox>> extend(SandboxId id, Millis timeout);
  Task<Result<Sandbox>> extend_until(SandboxId id, WallTime expires_at);
  // Pausing a paused sandbox and resuming a running one succeed without doing anything.
  Task<Result<Sandbox>> pause(SandboxId id);
  // Gives it the time it had left; if it was paused because that was used up, its timeout again.
  Task<Result<Sandbox>> resume(SandboxId id);

  Task<Result<Usage>> usage(SandboxId id);

  // From memory, for every request that goes to a sandbox. kConflict unless it is running.
  Result<Use> use(const SandboxId& id);
  // One request came and went: the idle clock starts again. Does nothing for an unknown id.
  void touch(const SandboxId& id);
  // The caller holds a Use.
  Task<Result<UniqueFd>> open_agent(SandboxId id, Deadline deadline);
  Task<Result<UniqueFd>> open_port(SandboxId id, std::uint16_t port, Deadline deadline);

  Stats snapshot() const;
  // A guess at when a create that was refused may find a place; at least 1 s.
  std::chrono::seconds retry_after() const;

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace glovebox::sandbox
