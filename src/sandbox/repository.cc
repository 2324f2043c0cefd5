#include "sandbox/repository.h"

#include <charconv>
#include <utility>

#include "base/base64.h"
#include "base/digest.h"
#include "base/wire.h"

namespace glovebox::sandbox {
namespace {

using store::Blob;
using store::Rows;
using store::Transaction;
using store::Value;

constexpr int kListMax = 1000;
constexpr int kPurgeBatch = 500;

#define GB_SANDBOX_COLUMNS                                                                   \
  "s.seq, s.id, s.revision, s.name, s.template, s.state, s.ending, s.isolation, s.runtime, " \
  "s.created_at, s.state_since, s.expires_at, s.remaining, s.timeout, s.idle_timeout, "      \
  "s.on_timeout, s.memory_bytes, s.disk_bytes, s.cpu_millis, s.pids, s.reason, s.ended_at, " \
  "s.labels"
constexpr int kEnvColumn = 23;

std::string encode(const std::map<std::string, std::string>& map) {
  wire::Writer out;
  out.number(static_cast<std::uint32_t>(map.size()));
  for (const auto& [key, value] : map) out.string(key).string(value);
  return std::move(out).take();
}

Result<std::map<std::string, std::string>> decode(const std::string& bytes) {
  wire::Reader in(bytes);
  std::map<std::string, std::string> map;
  const auto n = in.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < n && in.ok(); ++i) {
    std::string key = in.string();
    map[std::move(key)] = in.string();
  }
  if (!in.done()) return Error(Errc::kInternal, "a stored map is damaged");
  return map;
}

Error damaged(const Rows& row, std::string_view column) {
  return Error(Errc::kInternal,
               "stored sandbox " + row.text(1) + ": " + std::string(column) + " is damaged");
}

Result<Sandbox> read(const Rows& row) {
  Sandbox s;
  s.id = SandboxId(row.text(1));
  s.revision = row.integer(2);
  s.name = row.text(3);
  s.template_id = row.text(4);
  const auto state = parse_state(row.text(5));
  const auto ending = parse_state(row.text(6));
  const auto isolation = parse_isolation(row.text(7));
  const auto on_timeout = parse_on_timeout(row.text(15));
  if (!state) return damaged(row, "state");
  if (!ending) return damaged(row, "ending");
  if (!isolation) return damaged(row, "isolation");
  if (!on_timeout) return damaged(row, "on_timeout");
  s.state = *state;
  s.ending = *ending;
  s.isolation = *isolation;
  s.runtime = row.text(8);
  s.created_at = row.time(9);
  s.state_since = row.time(10);
  s.expires_at = row.maybe_time(11);
  s.remaining = row.maybe_duration(12);
  s.timeout = row.duration(13);
  s.idle_timeout = row.maybe_duration(14);
  s.on_timeout = *on_timeout;
  s.limits.memory_bytes = static_cast<std::uint64_t>(row.integer(16));
  s.limits.disk_bytes = static_cast<std::uint64_t>(row.integer(17));
  s.limits.cpu_millis = static_cast<std::uint32_t>(row.integer(18));
  s.limits.pids = static_cast<std::uint32_t>(row.integer(19));
  s.reason = row.text(20);
  s.ended_at = row.maybe_time(21);
  GB_TRY_ASSIGN(s.labels, decode(row.text(22)));
  return s;
}

Result<Sandbox> read_with_env(const Rows& row) {
  GB_TRY_ASSIGN(Sandbox s, read(row));
  GB_TRY_ASSIGN(Env env, decode(row.text(kEnvColumn)));
  s.env = std::make_shared<const Env>(std::move(env));
  return s;
}

std::string cursor_of(std::int64_t seq) { return to_base64url("s1:" + std::to_string(seq)); }

Result<std::int64_t> parse_cursor(std::string_view cursor) {
  if (cursor.empty()) return INT64_MAX;
  const Error bad(Errc::kInvalid, "cursor: not one that was given out");
  const auto text = from_base64url(cursor);
  if (!text || !text->starts_with("s1:")) return bad;
  std::int64_t seq = 0;
  const char* const end = text->data() + text->size();
  const auto [at, ec] = std::from_chars(text->data() + 3, end, seq);
  if (ec != std::errc() || at != end || seq < 0) return bad;
  return seq;
}

// One list() has few shapes of SQL: the number of labels (0 to 3, the rest is checked on the rows)
// times the number of states. So the prepared statements stay few.
constexpr std::size_t kLabelsInSql = 3;

std::string list_sql(std::size_t labels, std::size_t states) {
  std::string sql = "SELECT " GB_SANDBOX_COLUMNS " FROM sandboxes s";
  // The first label leads: label_index holds its sandboxes in the order of the page.
  if (labels > 0) {
    sql = "SELECT " GB_SANDBOX_COLUMNS
          " FROM label_index l CROSS JOIN sandboxes s ON s.seq = l.sandbox";
  }
  sql += labels > 0 ? " WHERE l.sandbox < ?1 AND l.key = ?2 AND l.value = ?3" : " WHERE s.seq < ?1";
  std::size_t arg = labels > 0 ? 4 : 2;
  for (std::size_t i = 1; i < labels; ++i) {
    sql += " AND EXISTS (SELECT 1 FROM label_index m WHERE m.sandbox = s.seq AND m.key = ?" +
           std::to_string(arg) + " AND m.value = ?" + std::to_string(arg + 1) + ")";
    arg += 2;
  }
  for (std::size_t i = 0; i < states; ++i) {
    sql += (i == 0 ? " AND s.state IN (?" : ", ?") + std::to_string(arg++);
  }
  if (states > 0) sql += ")";
  sql += labels > 0 ? " ORDER BY l.sandbox DESC" : " ORDER BY s.seq DESC";
  return sql;
}

bool has_labels(const Sandbox& s, const Filter& filter) {
  for (std::size_t i = kLabelsInSql; i < filter.labels.size(); ++i) {
    const auto it = s.labels.find(filter.labels[i].first);
    if (it == s.labels.end() || it->second != filter.labels[i].second) return false;
  }
  return true;
}

}  // namespace

Result<void> SandboxRepository::add_event(const Sandbox& s, std::string_view event) {
  GB_TRY(db_.run("INSERT INTO events (sandbox, at, event, detail) VALUES (?1, ?2, ?3, ?4)",
                 {s.id.str(), s.state_since, event, s.reason}));
  return {};
}

Result<void> SandboxRepository::insert(const Sandbox& s, const std::optional<IdempotencyKey>& key) {
  GB_TRY_ASSIGN(Transaction transaction, Transaction::begin(db_));
  const std::string labels = encode(s.labels);
  const std::string env = encode(s.env ? *s.env : Env());
  GB_TRY(db_.run(
      "INSERT INTO sandboxes (id, revision, name, template, state, ending, isolation, runtime, "
      "created_at, state_since, expires_at, remaining, timeout, idle_timeout, on_timeout, "
      "memory_bytes, disk_bytes, cpu_millis, pids, reason, ended_at, labels, env, "
      "idempotency_key) VALUES (?1, ?2, "
      "?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, "
      "?22, ?23, ?24)",
      {s.id.str(),
       s.revision,
       s.name,
       s.template_id,
       to_string(s.state),
       to_string(s.ending),
       to_string(s.isolation),
       s.runtime,
       s.created_at,
       s.state_since,
       s.expires_at,
       s.remaining,
       s.timeout,
       s.idle_timeout,
       to_string(s.on_timeout),
       s.limits.memory_bytes,
       s.limits.disk_bytes,
       s.limits.cpu_millis,
       s.limits.pids,
       s.reason,
       s.ended_at,
       Blob{labels},
       Blob{env},
       key ? Value(key->key) : Value(nullptr)}));
  const std::int64_t seq = db_.last_insert_id();
  for (const auto& [k, v] : s.labels) {
    GB_TRY(
        db_.run("INSERT INTO label_index (key, value, sandbox) VALUES (?1, ?2, ?3)", {k, v, seq}));
  }
  if (key) {
    // A key that is older than answered() looks may still be there.
    GB_TRY(
        db_.run("INSERT OR REPLACE INTO idempotency (key, request_hash, sandbox, created_at) "
                "VALUES (?1, ?2, ?3, ?4)",
                {key->key, Blob{key->request_hash}, s.id.str(), s.created_at}));
  }
  GB_TRY(add_event(s, "create"));
  return transaction.commit();
}

Result<void> SandboxRepository::update(const Sandbox& from, const Sandbox& to,
                                       std::string_view event) {
  GB_TRY_ASSIGN(Transaction transaction, Transaction::begin(db_));
  GB_TRY_ASSIGN(
      const std::int64_t changed,
      db_.run("UPDATE sandboxes SET state = ?4, revision = ?5, ending = ?6, state_since = ?7, "
              "expires_at = ?8, remaining = ?9, reason = ?10, ended_at = ?11 "
              "WHERE id = ?1 AND state = ?2 AND revision = ?3",
              {from.id.str(), to_string(from.state), from.revision, to_string(to.state),
               to.revision, to_string(to.ending), to.state_since, to.expires_at, to.remaining,
               to.reason, to.ended_at}));
  if (changed != 1) {
    return Error(Errc::kInternal, "sandbox " + from.id.str() + " is not " +
                                      std::string(to_string(from.state)) + " at revision " +
                                      std::to_string(from.revision) + " in the store");
  }
  if (from.state == State::kCreating && to.state == State::kStopping) {
    GB_TRY(
        db_.run("DELETE FROM idempotency WHERE sandbox = ?1 AND key = "
                "(SELECT idempotency_key FROM sandboxes WHERE id = ?1)",
                {from.id.str()}));
  }
  GB_TRY(add_event(to, event));
  return transaction.commit();
}

Result<std::optional<Sandbox>> SandboxRepository::find(const SandboxId& id) {
  GB_TRY_ASSIGN(Rows rows,
                db_.query("SELECT " GB_SANDBOX_COLUMNS ", s.env FROM sandboxes s WHERE s.id = ?1",
                          {id.str()}));
  if (!rows.next()) {
    GB_TRY(rows.done());
    return std::optional<Sandbox>();
  }
  GB_TRY_ASSIGN(Sandbox s, read_with_env(rows));
  return std::optional<Sandbox>(std::move(s));
}

Result<std::vector<Sandbox>> SandboxRepository::live() {
  GB_TRY_ASSIGN(Rows rows, db_.query("SELECT " GB_SANDBOX_COLUMNS
                                     ", s.env FROM sandboxes s WHERE s.state IN ('creating', "
                                     "'running', 'pausing', 'paused', 'resuming', 'stopping') "
                                     "ORDER BY s.seq"));
  std::vector<Sandbox> all;
  while (rows.next()) {
    GB_TRY_ASSIGN(Sandbox s, read_with_env(rows));
    all.push_back(std::move(s));
  }
  GB_TRY(rows.done());
  return all;
}

Result<Page> SandboxRepository::list(const Filter& filter, int limit, std::string_view cursor) {
  if (limit < 1 || limit > kListMax) {
    return Error(Errc::kInvalid, "limit: must be 1 to " + std::to_string(kListMax));
  }
  if (filter.states.size() > kStates.size()) return Error(Errc::kInvalid, "state: too many");
  GB_TRY_ASSIGN(const std::int64_t before, parse_cursor(cursor));
  const std::size_t labels = std::min(filter.labels.size(), kLabelsInSql);
  std::vector<Value> args{before};
  for (std::size_t i = 0; i < labels; ++i) {
    args.emplace_back(filter.labels[i].first);
    args.emplace_back(filter.labels[i].second);
  }
  for (const State s : filter.states) args.emplace_back(to_string(s));

  GB_TRY_ASSIGN(Rows rows, db_.query(list_sql(labels, filter.states.size()), args));
  Page page;
  std::int64_t last = 0;
  while (rows.next()) {
    GB_TRY_ASSIGN(Sandbox s, read(rows));
    if (!has_labels(s, filter)) continue;
    if (page.sandboxes.size() == static_cast<std::size_t>(limit)) {
      page.next_cursor = cursor_of(last);
      return page;
    }
    page.sandboxes.push_back(std::move(s));
    last = rows.integer(0);
  }
  GB_TRY(rows.done());
  return page;
}

Result<std::optional<SandboxRepository::Answered>> SandboxRepository::answered(
    std::string_view key, WallTime not_before) {
  GB_TRY_ASSIGN(Rows rows, db_.query("SELECT sandbox, request_hash FROM idempotency "
                                     "WHERE key = ?1 AND created_at >= ?2",
                                     {key, not_before}));
  std::optional<Answered> found;
  if (rows.next()) found = Answered{SandboxId(rows.text(0)), rows.text(1)};
  GB_TRY(rows.done());
  return found;
}

Result<std::vector<EventRecord>> SandboxRepository::events(const SandboxId& id) {
  GB_TRY_ASSIGN(Rows rows, db_.query("SELECT seq, at, event, detail FROM events "
                                     "WHERE sandbox = ?1 ORDER BY seq",
                                     {id.str()}));
  std::vector<EventRecord> all;
  while (rows.next()) {
    all.push_back({rows.integer(0), id, rows.time(1), rows.text(2), rows.text(3)});
  }
  GB_TRY(rows.done());
  return all;
}

Result<bool> SandboxRepository::purge(const Keep& keep) {
  struct Batch {
    const char* sql;
    Value oldest;
  };
  // seq grows with time, so the oldest are the first; `max - n` bounds the number of rows.
  const Batch batches[] = {
      {"DELETE FROM sandboxes WHERE seq IN (SELECT seq FROM sandboxes WHERE ended_at < ?1 LIMIT "
       "?2)",
       keep.ended_after},
      {"DELETE FROM idempotency WHERE seq IN (SELECT seq FROM (SELECT seq, created_at FROM "
       "idempotency ORDER BY seq LIMIT ?2) WHERE created_at < ?1)",
       keep.keys_after},
      {"DELETE FROM idempotency WHERE seq IN (SELECT seq FROM idempotency WHERE seq <= (SELECT "
       "max(seq) FROM idempotency) - ?1 LIMIT ?2)",
       keep.keys_max},
      {"DELETE FROM events WHERE seq IN (SELECT seq FROM (SELECT seq, at FROM events ORDER BY seq "
       "LIMIT ?2) WHERE at < ?1)",
       keep.events_after},
      {"DELETE FROM events WHERE seq IN (SELECT seq FROM events WHERE seq <= (SELECT max(seq) "
       "FROM events) - ?1 LIMIT ?2)",
       keep.events_max},
  };
  GB_TRY_ASSIGN(Transaction transaction, Transaction::begin(db_));
  bool more = false;
  for (const Batch& batch : batches) {
    GB_TRY_ASSIGN(const std::int64_t n, db_.run(batch.sql, {batch.oldest, kPurgeBatch}));
    more = more || n == kPurgeBatch;
  }
  GB_TRY(transaction.commit());
  return more;
}

std::string request_hash(const CreateSpec& spec) {
  wire::Writer out;
  const auto maybe = [&out](const auto& value, auto number) {
    out.number(static_cast<std::uint8_t>(value.has_value()));
    out.number(value ? number(*value) : std::int64_t{0});
  };
  const auto plain = [](auto n) { return static_cast<std::int64_t>(n); };
  const auto count = [](Millis d) { return static_cast<std::int64_t>(d.count()); };
  out.string(spec.template_id).string(spec.name);
  maybe(spec.timeout, count);
  maybe(spec.idle_timeout, count);
  maybe(spec.memory_bytes, plain);
  maybe(spec.disk_bytes, plain);
  maybe(spec.cpu_millis, plain);
  maybe(spec.pids, plain);
  out.string(encode(spec.env)).string(encode(spec.labels));
  maybe(spec.isolation, plain);
  out.number(static_cast<std::uint8_t>(spec.on_timeout));
  return sha256(out.bytes());
}

}  // namespace glovebox::sandbox
