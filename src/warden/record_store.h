// RecordStore: the records directory. One file a sandbox, named after its instance.
//
// A record is written over in place, in one write(2) within one page. That may only be because a
// torn record does no harm: a client is told of a change after it is written, so a torn one is
// always of a change that nobody was told of, and of a sandbox that may be erased. Replacing by
// rename would cost more than the rest of a claim: ext4 begins to flush a file that replaces
// another (auto_da_alloc), and the next unlink waits for the disk (2.6 ms against 0.02).
//
// Nothing is fsynced: after a power failure no sandbox is alive, and whatever part of one is on
// disk then is found by Host::instances() and erased as ownerless.

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
    std::vector<Damaged> damaged;
  };
  // Reads everything. What cannot be read is moved to damaged-records; empty files, which a crash
  // left at a record's first write, are removed.
  Result<Loaded> load();

  Result<void> put(const Record& record);
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
