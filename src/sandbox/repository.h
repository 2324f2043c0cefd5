// SandboxRepository: the SQL of sandboxes. Every change of state writes its event in the same
// transaction, so the event log cannot disagree with the state.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sandbox/sandbox.h"
#include "store/database.h"

namespace glovebox::sandbox {

struct IdempotencyKey {
  std::string key;
  std::string request_hash;  // SHA-256 of what was asked for.
};

struct EventRecord {
  std::int64_t seq = 0;
  SandboxId sandbox;
  WallTime at{};
  std::string event;
  std::string detail;
};

class SandboxRepository {
 public:
  // Borrows `db`, which must be migrated.
  explicit SandboxRepository(store::Database& db) : db_(db) {}

  // Stores a new sandbox, its labels, its first event and, when given, the key that it answers.
  Result<void> insert(const Sandbox& sandbox, const std::optional<IdempotencyKey>& key);

  // Compare-and-set: replaces `from` by `to` (whose revision is one higher) if the store still has
  // `from`'s state and revision; kInternal if not, since this process is the only writer. What a
  // client chose at create (name, labels, limits, env) never changes.
  // A sandbox that stops before it was ready gives its idempotency key back: nobody was told of it.
  Result<void> update(const Sandbox& from, const Sandbox& to, std::string_view event);

  Result<std::optional<Sandbox>> find(const SandboxId& id);
  // All that have not ended, oldest first.
  Result<std::vector<Sandbox>> live();
  // limit 1 to 1000. kInvalid for a cursor that list() did not give.
  Result<Page> list(const Filter& filter, int limit, std::string_view cursor);

  struct Answered {
    SandboxId sandbox;
    std::string request_hash;
  };
  Result<std::optional<Answered>> answered(std::string_view key, WallTime not_before);

  // The events of one sandbox, oldest first.
  Result<std::vector<EventRecord>> events(const SandboxId& id);

  struct Keep {
    WallTime ended_after{};
    WallTime keys_after{};
    std::int64_t keys_max = 0;
    WallTime events_after{};
    std::int64_t events_max = 0;
  };
  // Removes what is older, at most some hundred rows of each kind a call, so that it never blocks
  // for long. Returns true when there is more to remove.
  Result<bool> purge(const Keep& keep);

 private:
  Result<void> add_event(const Sandbox& sandbox, std::string_view event);
  store::Database& db_;
};

// The hash under which an idempotency key remembers a request.
std::string request_hash(const CreateSpec& spec);

}  // namespace glovebox::sandbox
