#include "agent/files/directory.h"

#include <cerrno>

namespace glovebox::agent {

Result<Directory> Directory::adopt(UniqueFd fd) {
  DIR* dir = ::fdopendir(fd.get());
  if (dir == nullptr) return Error::from_errno(errno, "fdopendir");
  [[maybe_unused]] const int owned_by_dir = fd.release();
  return Directory(dir);
}

Directory::~Directory() {
  if (dir_ != nullptr) ::closedir(dir_);
}

std::optional<Directory::Item> Directory::next() {
  for (;;) {
    const dirent* item = ::readdir(dir_);
    if (item == nullptr) return std::nullopt;
    const std::string_view name = item->d_name;
    if (name != "." && name != "..") return Item{name, item->d_type};
  }
}

void Directory::rewind() { ::rewinddir(dir_); }

}  // namespace glovebox::agent
