#include "store/database.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cassert>
#include <cerrno>
#include <unordered_map>
#include <utility>

#include "base/unique_fd.h"
#include "store/checkpointer.h"

namespace glovebox::store {
namespace {

// Distinct statements of a program are few; more than this means that SQL is being built of values.
constexpr std::size_t kStatementsKept = 256;

// Pages of 4 KiB in the WAL, from which on it is to be emptied; and from which on a commit does
// that itself, because the checkpointer does not keep up and the file must not grow without bound.
constexpr int kWalPages = 1000;
constexpr int kWalPagesMax = 64'000;

Errc code_for(int rc) {
  switch (rc & 0xff) {
    case SQLITE_FULL: return Errc::kExhausted;
    case SQLITE_NOMEM: return Errc::kExhausted;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return Errc::kUnavailable;
    case SQLITE_CONSTRAINT: return Errc::kConflict;
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN: return Errc::kDenied;
    case SQLITE_TOOBIG: return Errc::kTooLarge;
    default: return Errc::kInternal;
  }
}

Error error_of(sqlite3* db, int rc, std::string_view what) {
  std::string text(what);
  text.append(": ").append(::sqlite3_errmsg(db));
  return Error(code_for(rc), std::move(text));
}

struct CloseDb {
  void operator()(sqlite3* db) const { ::sqlite3_close_v2(db); }
};
struct Finalize {
  void operator()(sqlite3_stmt* s) const { ::sqlite3_finalize(s); }
};
using StatementPtr = std::unique_ptr<sqlite3_stmt, Finalize>;

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
};

int bind_one(sqlite3_stmt* s, int at, const Value& value) {
  struct Binder {
    sqlite3_stmt* s;
    int at;
    int operator()(std::nullptr_t) const { return ::sqlite3_bind_null(s, at); }
    int operator()(std::int64_t n) const { return ::sqlite3_bind_int64(s, at, n); }
    int operator()(std::string_view t) const {
      // A null pointer would bind NULL, not the empty text.
      return ::sqlite3_bind_text64(s, at, t.empty() ? "" : t.data(), t.size(), SQLITE_TRANSIENT,
                                   SQLITE_UTF8);
    }
    int operator()(Blob b) const {
      if (b.bytes.empty()) return ::sqlite3_bind_zeroblob(s, at, 0);
      return ::sqlite3_bind_blob64(s, at, b.bytes.data(), b.bytes.size(), SQLITE_TRANSIENT);
    }
  };
  return std::visit(Binder{s, at}, value.get());
}

// Two daemons over one file would each believe its memory. SQLite's own locks are per transaction.
Result<UniqueFd> lock_beside(const std::string& path) {
  const std::string name = path + ".lock";
  UniqueFd fd(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return Error::from_errno(errno, "open " + name);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno == EWOULDBLOCK) {
    return Error(Errc::kConflict, path + " is in use by another process; stop it first");
  }
  return Error::from_errno(errno, "lock " + name);
}

// SQLite creates files with 0644; ours hold hashes of keys, so they are made before it looks.
Result<void> make_private(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return Error::from_errno(errno, "open " + path);
  return {};
}

}  // namespace

struct Database::Impl {
  std::string path;
  UniqueFd lock;
  std::unique_ptr<sqlite3, CloseDb> db;
  // Declared after db: statements go before the connection.
  std::unordered_map<std::string, StatementPtr, TextHash, std::equal_to<>> kept;
  bool in_transaction = false;
  std::unique_ptr<Checkpointer> checkpointer;

  int wal_pages = 0;  // After the last commit.
  int request_at = kWalPages;

  static int on_commit(void* context, sqlite3* db, const char* name, int pages) {
    Impl& self = *static_cast<Impl*>(context);
    if (pages < self.wal_pages) self.request_at = kWalPages;  // It started anew.
    self.wal_pages = pages;
    if (pages >= self.request_at) {
      self.checkpointer->request();
      self.request_at = pages + kWalPages;
    }
    if (pages >= kWalPagesMax) {
      ::sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
    }
    return SQLITE_OK;
  }

  Result<StatementPtr> prepare(std::string_view sql) {
    if (const auto it = kept.find(sql); it != kept.end()) {
      StatementPtr s = std::move(it->second);
      kept.erase(it);
      return s;
    }
    sqlite3_stmt* raw = nullptr;
    const char* tail = nullptr;
    const int rc = ::sqlite3_prepare_v3(db.get(), sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &raw, &tail);
    StatementPtr s(raw);
    if (rc != SQLITE_OK) return error_of(db.get(), rc, sql);
    if (raw == nullptr || tail != sql.data() + sql.size()) {
      return Error(Errc::kInternal, "not one statement: " + std::string(sql));
    }
    return s;
  }
  void keep(std::string_view sql, StatementPtr s) {
    ::sqlite3_reset(s.get());
    ::sqlite3_clear_bindings(s.get());
    if (kept.size() < kStatementsKept) kept.try_emplace(std::string(sql), std::move(s));
  }
};

struct StatementImpl {
  // Not the Database: that one may be moved while rows are read.
  Database::Impl* owner = nullptr;
  StatementPtr statement;
  std::string sql;
  int rc = SQLITE_ROW;

  ~StatementImpl() {
    if (owner != nullptr && statement) owner->keep(sql, std::move(statement));
  }
  static Result<std::unique_ptr<StatementImpl>> make(Database::Impl& owner, std::string_view sql,
                                                     std::span<const Value> args) {
    GB_TRY_ASSIGN(StatementPtr s, owner.prepare(sql));
    auto out = std::make_unique<StatementImpl>();
    out->owner = &owner;
    out->statement = std::move(s);
    out->sql = sql;
    int at = 0;
    for (const Value& value : args) {
      const int rc = bind_one(out->statement.get(), ++at, value);
      if (rc != SQLITE_OK) return error_of(owner.db.get(), rc, sql);
    }
    return out;
  }
};

Rows::Rows(std::unique_ptr<StatementImpl> statement) : statement_(std::move(statement)) {}
Rows::Rows(Rows&& other) noexcept = default;
Rows::~Rows() = default;

bool Rows::next() {
  if (statement_->rc != SQLITE_ROW) return false;
  statement_->rc = ::sqlite3_step(statement_->statement.get());
  return statement_->rc == SQLITE_ROW;
}

Result<void> Rows::done() const {
  if (statement_->rc == SQLITE_ROW || statement_->rc == SQLITE_DONE) return {};
  return error_of(statement_->owner->db.get(), statement_->rc, statement_->sql);
}

bool Rows::is_null(int column) const {
  return ::sqlite3_column_type(statement_->statement.get(), column) == SQLITE_NULL;
}

std::int64_t Rows::integer(int column) const {
  return ::sqlite3_column_int64(statement_->statement.get(), column);
}

std::string Rows::text(int column) const {
  // Bytes, not text: it converts nothing, and embedded NUL bytes come through.
  const void* bytes = ::sqlite3_column_blob(statement_->statement.get(), column);
  const int size = ::sqlite3_column_bytes(statement_->statement.get(), column);
  if (bytes == nullptr) return {};
  return std::string(static_cast<const char*>(bytes), static_cast<std::size_t>(size));
}

std::optional<WallTime> Rows::maybe_time(int column) const {
  if (is_null(column)) return std::nullopt;
  return time(column);
}

std::optional<Millis> Rows::maybe_duration(int column) const {
  if (is_null(column)) return std::nullopt;
  return duration(column);
}

Database::Database(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Database::Database(Database&&) noexcept = default;
Database::~Database() = default;

Result<Database> Database::open(const std::string& path, Options options) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  const std::string what = "open database " + path;
  GB_TRY_ASSIGN(impl->lock, lock_beside(path).context(what));
  GB_TRY(make_private(path).context(what));

  sqlite3* raw = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int rc = ::sqlite3_open_v2(path.c_str(), &raw, flags, nullptr);
  impl->db.reset(raw);
  if (rc != SQLITE_OK) return error_of(raw, rc, what);
  ::sqlite3_busy_timeout(raw, static_cast<int>(options.busy_timeout.count()));
  // A hostile file must not run functions or read past its cells through its schema.
  ::sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  ::sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);

  Database db(std::move(impl));
  const char* sync = options.durability == Durability::kPower ? "FULL" : "NORMAL";
  const Result<void> set = db.run_script(std::string("PRAGMA cell_size_check = ON;"
                                                     "PRAGMA foreign_keys = ON;"
                                                     "PRAGMA temp_store = MEMORY;"
                                                     "PRAGMA journal_mode = WAL;"
                                                     "PRAGMA journal_size_limit = 134217728;"
                                                     "PRAGMA synchronous = ") +
                                         sync + ";");
  if (!set) return Error(set.error()).context(what);
  GB_TRY_ASSIGN(db.impl_->checkpointer, Checkpointer::start(path).context(what));
  ::sqlite3_wal_hook(raw, &Impl::on_commit, db.impl_.get());
  if (options.check_integrity) {
    Result<void> sound = db.check_integrity();
    if (!sound) return std::move(sound).error().context(what);
  }
  return db;
}

Result<Rows> Database::query(std::string_view sql, std::span<const Value> args) {
  GB_TRY_ASSIGN(auto statement, StatementImpl::make(*impl_, sql, args));
  return Rows(std::move(statement));
}

Result<std::int64_t> Database::run(std::string_view sql, std::initializer_list<Value> args) {
  GB_TRY_ASSIGN(Rows rows, query(sql, args));
  while (rows.next()) {
  }
  GB_TRY(rows.done());
  return static_cast<std::int64_t>(::sqlite3_changes64(impl_->db.get()));
}

Result<void> Database::run_script(std::string_view sql) {
  const int rc =
      ::sqlite3_exec(impl_->db.get(), std::string(sql).c_str(), nullptr, nullptr, nullptr);
  if (rc != SQLITE_OK) return error_of(impl_->db.get(), rc, "run script");
  return {};
}

std::int64_t Database::last_insert_id() const {
  return ::sqlite3_last_insert_rowid(impl_->db.get());
}

Result<void> Database::check_integrity() {
  GB_TRY_ASSIGN(Rows rows, query("PRAGMA quick_check(1)"));
  std::string found;
  while (rows.next()) found = rows.text(0);
  GB_TRY(rows.done());
  if (found == "ok") return {};
  return Error(Errc::kInternal, "the file is damaged (" + found +
                                    "); move it away and restore a copy, or start anew");
}

const std::string& Database::path() const noexcept { return impl_->path; }

Result<Transaction> Transaction::begin(Database& db) {
  assert(!db.impl_->in_transaction && "transactions do not nest");
  // IMMEDIATE: a transaction that reads first could otherwise fail when it comes to write.
  GB_TRY_ASSIGN([[maybe_unused]] const std::int64_t n, db.run("BEGIN IMMEDIATE"));
  db.impl_->in_transaction = true;
  return Transaction(db);
}

Transaction::Transaction(Transaction&& other) noexcept : db_(std::exchange(other.db_, nullptr)) {}

Transaction::~Transaction() {
  if (db_ == nullptr) return;
  db_->impl_->in_transaction = false;
  // Fails only when SQLite has rolled back by itself, as it does on a full disk.
  const Result<std::int64_t> undone = db_->run("ROLLBACK");
  static_cast<void>(undone);
}

Result<void> Transaction::commit() {
  GB_TRY_ASSIGN([[maybe_unused]] const std::int64_t n, db_->run("COMMIT"));
  db_->impl_->in_transaction = false;
  db_ = nullptr;
  return {};
}

}  // namespace glovebox::store
