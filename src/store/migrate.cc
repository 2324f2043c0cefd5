#include "store/migrate.h"

#include <cassert>
#include <string>

namespace glovebox::store {
namespace {

// "GBox": marks the file as ours, so that a wrong path in a configuration destroys nothing.
constexpr std::int64_t kApplicationId = 0x47426f78;

Result<std::int64_t> pragma(Database& db, std::string_view sql) {
  GB_TRY_ASSIGN(Rows rows, db.query(sql));
  const std::int64_t value = rows.next() ? rows.integer(0) : 0;
  GB_TRY(rows.done());
  return value;
}

Result<bool> is_empty(Database& db) {
  GB_TRY_ASSIGN(const std::int64_t n, pragma(db, "SELECT count(*) FROM sqlite_master"));
  return n == 0;
}

Result<void> check_ours(Database& db) {
  GB_TRY_ASSIGN(const std::int64_t id, pragma(db, "PRAGMA application_id"));
  if (id == kApplicationId) return {};
  GB_TRY_ASSIGN(const bool empty, is_empty(db));
  if (id == 0 && empty) return {};
  return Error(Errc::kConflict, db.path() + " is the database of another program");
}

Result<void> apply(Database& db, const Migration& m) {
  GB_TRY_ASSIGN(Transaction transaction, Transaction::begin(db));
  GB_TRY(db.run_script(m.sql));
  // Pragmas take no arguments.
  GB_TRY(db.run_script("PRAGMA application_id = " + std::to_string(kApplicationId) +
                       "; PRAGMA user_version = " + std::to_string(m.number) + ";"));
  return transaction.commit();
}

}  // namespace

Result<int> schema_version(Database& db) {
  GB_TRY_ASSIGN(const std::int64_t version, pragma(db, "PRAGMA user_version"));
  return static_cast<int>(version);
}

Result<void> migrate(Database& db, std::span<const Migration> all) {
  GB_TRY(check_ours(db));
  GB_TRY_ASSIGN(const int have, schema_version(db));
  const int newest = static_cast<int>(all.size());
  if (have > newest) {
    return Error(Errc::kConflict, db.path() + " has schema " + std::to_string(have) +
                                      ", this program knows up to " + std::to_string(newest) +
                                      ": use the newer program");
  }
  int number = 0;
  for (const Migration& m : all) {
    assert(m.number == number + 1 && "migrations are numbered without a gap");
    number = m.number;
    if (number <= have) continue;
    GB_TRY(apply(db, m).context("migrate " + db.path() + " to " + std::to_string(number) + " (" +
                                m.name + ")"));
  }
  return {};
}

}  // namespace glovebox::store
