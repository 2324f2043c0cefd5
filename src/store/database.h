// Database: one SQLite file, owned by one thread of one process.
//
// WAL with synchronous=NORMAL: what was committed survives the death of the process at any moment.
// Power loss may take the last commits, never the file's consistency (docs/decisions says why).
//
// SQL lives in repository classes of the domain. A second kind of store (PostgreSQL) is a second
// set of repositories behind the same calls, not another Database.

#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/value.h"

namespace glovebox::store {

enum class Durability : std::uint8_t {
  kProcess,  // Survives the process (synchronous=NORMAL).
  kPower,    // Survives power loss, at the cost of one fsync a commit (synchronous=FULL).
};

struct Options {
  Durability durability = Durability::kProcess;
  std::chrono::milliseconds busy_timeout{5000};
  bool check_integrity = true;  // Reads the whole file once at open.
};

struct StatementImpl;

// The rows of one query. Columns count from 0. Reading a column of another type gives what SQLite
// converts it to; tables are STRICT, so that means a wrong column number.
class Rows {
 public:
  Rows(Rows&& other) noexcept;
  Rows& operator=(Rows&&) = delete;
  ~Rows();

  // False at the end and on failure; done() tells which.
  bool next();
  Result<void> done() const;

  bool is_null(int column) const;
  std::int64_t integer(int column) const;
  std::string text(int column) const;  // Text or bytes.
  WallTime time(int column) const { return from_unix_ms(integer(column)); }
  Millis duration(int column) const { return Millis(integer(column)); }
  std::optional<WallTime> maybe_time(int column) const;
  std::optional<Millis> maybe_duration(int column) const;

 private:
  friend class Database;
  explicit Rows(std::unique_ptr<StatementImpl> statement);
  std::unique_ptr<StatementImpl> statement_;
};

class Database {
 public:
  // Creates the file (mode 0600) when it is not there. kConflict when another process has it open,
  // kInternal when it is damaged; the text says what to do.
  static Result<Database> open(const std::string& path, Options options);

  Database(Database&&) noexcept;
  Database& operator=(Database&&) = delete;
  ~Database();

  // `sql` is one statement with ?1, ?2, …; it is prepared once and kept.
  Result<Rows> query(std::string_view sql, std::span<const Value> args);
  Result<Rows> query(std::string_view sql, std::initializer_list<Value> args = {}) {
    return query(sql, std::span<const Value>(args.begin(), args.size()));
  }
  // Returns how many rows it changed.
  Result<std::int64_t> run(std::string_view sql, std::initializer_list<Value> args = {});
  // Several statements without arguments, for schemas.
  Result<void> run_script(std::string_view sql);
  std::int64_t last_insert_id() const;

  // Reads everything and says what is wrong, if anything.
  Result<void> check_integrity();
  const std::string& path() const noexcept;

 private:
  friend class Transaction;
  friend struct StatementImpl;
  struct Impl;
  explicit Database(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// All or nothing. Never held across a co_await: the connection is shared.
class [[nodiscard]] Transaction {
 public:
  static Result<Transaction> begin(Database& db);
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();  // Rolls back what was not committed.
  Result<void> commit();

 private:
  explicit Transaction(Database& db) : db_(&db) {}
  Database* db_;  // Null when nothing is open.
};

}  // namespace glovebox::store
