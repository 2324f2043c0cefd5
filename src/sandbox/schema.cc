#include "sandbox/schema.h"

namespace glovebox::sandbox {
namespace {

// Times are milliseconds since 1970 UTC, durations milliseconds. `labels` and `env` are wire
// encoded maps (repository.cc); label_index exists for look-ups and never changes after the insert.
//
// Every index is one more page to write in each change of state, so there are few: what is old is
// found by seq, which grows with time.
constexpr const char* kFirst = R"(
CREATE TABLE sandboxes (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  revision INTEGER NOT NULL,
  name TEXT NOT NULL,
  template TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('creating', 'running', 'pausing', 'paused', 'resuming',
                                       'stopping', 'stopped', 'failed')),
  ending TEXT NOT NULL CHECK (ending IN ('stopped', 'failed')),
  isolation TEXT NOT NULL,
  runtime TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  state_since INTEGER NOT NULL,
  expires_at INTEGER,
  remaining INTEGER,
  timeout INTEGER NOT NULL,
  idle_timeout INTEGER,
  on_timeout TEXT NOT NULL CHECK (on_timeout IN ('kill', 'pause')),
  memory_bytes INTEGER NOT NULL,
  disk_bytes INTEGER NOT NULL,
  cpu_millis INTEGER NOT NULL,
  pids INTEGER NOT NULL,
  reason TEXT NOT NULL,
  ended_at INTEGER,
  idempotency_key TEXT,
  labels BLOB NOT NULL,
  env BLOB NOT NULL,
  CHECK ((ended_at IS NOT NULL) = (state IN ('stopped', 'failed')))
) STRICT;
CREATE INDEX sandboxes_by_state ON sandboxes (state, seq);
CREATE INDEX sandboxes_by_end ON sandboxes (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE label_index (
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  sandbox INTEGER NOT NULL REFERENCES sandboxes (seq) ON DELETE CASCADE,
  PRIMARY KEY (key, value, sandbox)
) STRICT, WITHOUT ROWID;
CREATE INDEX label_index_by_sandbox ON label_index (sandbox);

CREATE TABLE idempotency (
  seq INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  request_hash BLOB NOT NULL,
  sandbox TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE events (
  seq INTEGER PRIMARY KEY,
  sandbox TEXT NOT NULL,
  at INTEGER NOT NULL,
  event TEXT NOT NULL,
  detail TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_sandbox ON events (sandbox);

CREATE TABLE api_keys (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  hash BLOB NOT NULL UNIQUE,
  created_at INTEGER NOT NULL,
  last_used_at INTEGER,
  revoked_at INTEGER
) STRICT;
)";

constexpr store::Migration kMigrations[] = {
    {1, "sandboxes, labels, idempotency keys, events, API keys", kFirst},
};

}  // namespace

std::span<const store::Migration> migrations() { return kMigrations; }

}  // namespace glovebox::sandbox
