// RecordStore: the records directory. One file a sandbox, named after its instance.
//
// put() replaces a file by rename, so a reader after kill -9 sees the old record or the new one,
// never half of one. It does not fsync: after a power failure no sandbox is alive, and whatever
// part of a sandbox is on disk then is found by Host::instances() and erased as ownerless.

#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "warden/record.h"

namespace glovebox::warden {

class RecordStore {
 public:
  // Makes <state_dir>/records and <state_dir>/damaged-records, mode 0700.
  static Result<RecordStore> open(const std::string& state_dir);

  struct Damaged {
    std::string instance;  // Empty when the file's name is none.
    std::string why;
  };
  struct Loaded {
    std::vector<Record> records;
    std::vector<Record> ending;  // Those of mark_ending(): to be erased, never adopted.
    std::vector<Damaged> damaged;
  };
  // Reads everything. What cannot be read is moved to damaged-records.
  Result<Loaded> load();

  Result<void> put(const Record& record);
  // Says on disk that the sandbox is being taken down. Needs no free space, as it only renames.
  Result<void> mark_ending(const std::string& instance);
  // Succeeds when there is none.
  Result<void> remove(const std::string& instance);

 private:
  RecordStore(UniqueFd records, UniqueFd damaged)
      : records_(std::move(records)), damaged_(std::move(damaged)) {}
  void load_one(const std::string& file, Loaded& into);

  UniqueFd records_;
  UniqueFd damaged_;
};

}  // namespace glovebox::warden
