#include "warden/record_store.h"

#include <fcntl.h>
#include <unistd.h>

#include "os/files.h"
#include "os/sys.h"
#include "warden/names.h"

namespace glovebox::warden {
namespace {

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
  for (const std::string& file : files) load_one(file, loaded);
  return loaded;
}

void RecordStore::load_one(const std::string& file, Loaded& into) {
  const bool named = valid_name(file);
  const Result<std::string> bytes = os::read_file(records_.get(), file);
  if (named && bytes && bytes.value().empty()) {
    ::unlinkat(records_.get(), file.c_str(), 0);
    return;
  }
  Result<Record> record = bytes ? decode_record(bytes.value()) : Result<Record>(bytes.error());
  if (!named) record = Error(Errc::kInvalid, "record: bad file name " + file);
  if (record && record->box.instance != file) {
    record = Error(Errc::kInvalid, "record: of another instance");
  }
  if (record) {
    into.records.push_back(*std::move(record));
    return;
  }
  ::renameat(records_.get(), file.c_str(), damaged_.get(), file.c_str());
  into.damaged.push_back({named ? file : "", record.error().text()});
}

Result<void> RecordStore::put(const Record& record) {
  const std::string& file = record.box.instance;
  const std::string bytes = encode_record(record);
  GB_TRY_ASSIGN(const UniqueFd fd,
                os::openat(records_.get(), file, O_WRONLY | O_CREAT | O_NOFOLLOW, 0600));
  GB_TRY_ASSIGN(const ssize_t n, os::retry("write record", file, [&] {
                  return ::pwrite(fd.get(), bytes.data(), bytes.size(), 0);
                }));
  if (n == static_cast<ssize_t>(bytes.size())) return {};
  return Error(Errc::kExhausted, "write record " + file + ": no space left");
}

Result<void> RecordStore::remove(const std::string& instance) {
  if (::unlinkat(records_.get(), instance.c_str(), 0) == 0 || errno == ENOENT) return {};
  return Error::from_errno(errno, "unlink record " + instance);
}

}  // namespace glovebox::warden
