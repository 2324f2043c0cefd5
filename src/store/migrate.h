// Numbered, forward-only migrations. There is no way back: a program refuses a database that a
// newer one has written.

#pragma once

#include <span>

#include "base/result.h"
#include "store/database.h"

namespace glovebox::store {

struct Migration {
  int number;  // 1, 2, 3, … without a gap.
  const char* name;
  const char* sql;
};

// Applies what is missing, each in its own transaction. kConflict when the database is newer than
// the last of `all`, or belongs to another program.
Result<void> migrate(Database& db, std::span<const Migration> all);

// The number of the last migration applied; 0 for a new file.
Result<int> schema_version(Database& db);

}  // namespace glovebox::store
