// Small whole-file helpers for /proc, /sys, cgroups and records. Nothing here is for big files but
// copy_sparse().

#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "os/sys.h"

namespace glovebox::os {

// At most 1 MiB; relative paths are beneath dir_fd (AT_FDCWD: the working directory).
Result<std::string> read_file(int dir_fd, const std::string& path);
// Opens for writing (no create) and writes all of `text` in one call, as cgroup files demand.
Result<void> write_file(int dir_fd, const std::string& path, std::string_view text);
// Creates or replaces a plain file.
Result<void> put_file(int dir_fd, const std::string& path, std::string_view text, mode_t mode);

Result<void> mkdir_if_absent(int dir_fd, const std::string& path, mode_t mode);
// All missing parents too, 0755 but for the last.
Result<void> make_dirs(const std::string& path, mode_t mode);
// Names in a directory, without "." and "..".
Result<std::vector<std::string>> list_dir(int dir_fd, const std::string& path);

// Copies a sparse file's data (by reflink where the file system can) and its size.
Result<void> copy_sparse(int from_fd, int to_fd);

}  // namespace glovebox::os
