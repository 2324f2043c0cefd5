// Listing a directory: sorted, some levels deep, a page at a time. Memory is bounded by the page
// and the depth, not by the directory.

#pragma once

#include <string>

#include "agent/common/users.h"
#include "agent/files/file_call.h"
#include "async/task.h"
#include "base/result.h"

namespace glovebox::agent {

inline constexpr std::size_t kListLimitMax = 1000;
inline constexpr std::size_t kListDepthMax = 64;

struct ListOptions {
  std::size_t depth = 1;  // 1: its own entries only.
  std::size_t limit = kListLimitMax;
  std::string cursor;  // From the page before; empty for the first.
};

// {"entries":[Entry…],"next_cursor":"…"|null}. Directories that may not be read are listed, not
// entered. Order: by name in each directory, a directory before what is in it.
Task<Result<std::string>> list_directory(FileCall& call, Users& users, std::string path,
                                         ListOptions options);

}  // namespace glovebox::agent
