#include "warden/record_store.h"

#include <fcntl.h>
#include <unistd.h>

#include "os/files.h"
#include "os/sys.h"
#include "warden/names.h"

namespace glovebox::warden {
namespace {

// Neither can be part of an instance's name.
constexpr std::string_view kTemporary = ".tmp";
constexpr std::string_view kEnding = ".ending";

Result<UniqueFd> open_directory(const std::string& path) {
  GB_TRY(os::mkdir_if_absent(AT_FDCWD, path, 0700));
  return os::openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, os::Resolve::kAnywhere);
}

}  // namespace

Result<RecordStore> RecordStore::open(const std::string& state_dir) {
  GB_TRY_ASSIGN(UniqueFd records, open_directory(state_dir + "/records"));
  GB_TRY_ASSIGN(UniqueFd damaged, open_directory(state_dir + "/damaged-records"));
  return RecordStore(std::move(records), std::move(damaged));
}

Result<RecordStore::Loaded> RecordStore::load() {
  GB_TRY_ASSIGN(const std::vector<std::string> files, os::list_dir(records_.get(), "."));
  Loaded loaded;
  for (const std::string& file : files) {
    if (file.ends_with(kTemporary)) {
      // A crash between write and rename: the record it was to replace is still there.
      ::unlinkat(records_.get(), file.c_str(), 0);
    } else {
      load_one(file, loaded);
    }
  }
  return loaded;
}

void RecordStore::load_one(const std::string& file, Loaded& into) {
  std::string instance = file;
  const bool ending = file.ends_with(kEnding);
  if (ending) instance.resize(file.size() - kEnding.size());

  Result<Record> record = Error(Errc::kInvalid, "record: bad file name");
  if (valid_name(instance)) {
    const Result<std::string> bytes = os::read_file(records_.get(), file);
    record = bytes ? decode_record(bytes.value()) : Result<Record>(bytes.error());
    if (record && record->box.instance != instance) {
      record = Error(Errc::kInvalid, "record: of another instance");
    }
  } else {
    instance.clear();
  }
  if (record) {
    (ending ? into.ending : into.records).push_back(*std::move(record));
    return;
  }
  ::renameat(records_.get(), file.c_str(), damaged_.get(), file.c_str());
  into.damaged.push_back({std::move(instance), record.error().text()});
}

Result<void> RecordStore::put(const Record& record) {
  const std::string& file = record.box.instance;
  const std::string temporary = file + std::string(kTemporary);
  Result<void> written = os::put_file(records_.get(), temporary, encode_record(record), 0600);
  if (!written) {
    ::unlinkat(records_.get(), temporary.c_str(), 0);
    return std::move(written).context("write the record of " + file);
  }
  GB_TRY(os::retry("rename", temporary, [&] {
    return ::renameat(records_.get(), temporary.c_str(), records_.get(), file.c_str());
  }));
  return {};
}

Result<void> RecordStore::mark_ending(const std::string& instance) {
  const std::string ending = instance + std::string(kEnding);
  GB_TRY(os::retry("rename", instance, [&] {
    return ::renameat(records_.get(), instance.c_str(), records_.get(), ending.c_str());
  }));
  return {};
}

Result<void> RecordStore::remove(const std::string& instance) {
  for (const std::string& file : {instance + std::string(kEnding), instance}) {
    if (::unlinkat(records_.get(), file.c_str(), 0) != 0 && errno != ENOENT) {
      return Error::from_errno(errno, "unlink " + file);
    }
  }
  return {};
}

}  // namespace glovebox::warden
