// Reading a directory's names, from a descriptor, in the kernel's order.

#pragma once

#include <dirent.h>

#include <optional>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace glovebox::agent {

class Directory {
 public:
  struct Item {
    std::string_view name;   // Valid until the next call.
    unsigned char type = 0;  // DT_DIR and so on; DT_UNKNOWN where the file system does not say.
  };

  // `fd` is open for reading.
  static Result<Directory> adopt(UniqueFd fd);
  Directory(Directory&& other) noexcept : dir_(std::exchange(other.dir_, nullptr)) {}
  Directory& operator=(Directory&& other) noexcept {
    std::swap(dir_, other.dir_);
    return *this;
  }
  ~Directory();

  // The next but "." and "..". Nothing at the end, also when the rest cannot be read.
  std::optional<Item> next();
  void rewind();
  int fd() const noexcept { return ::dirfd(dir_); }

 private:
  explicit Directory(DIR* dir) : dir_(dir) {}
  DIR* dir_;
};

}  // namespace glovebox::agent
