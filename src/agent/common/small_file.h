// Reads a small file that a sandboxed program may have made: never hangs on a FIFO, never reads
// more than `bytes_max`.

#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace glovebox::agent {

// `dir_fd` is borrowed; AT_FDCWD for absolute paths.
Result<std::string> read_small_file(int dir_fd, const char* path, std::size_t bytes_max);
// Writes `text` in one call, as kernel interface files want it.
Result<void> write_kernel_file(int dir_fd, const char* path, std::string_view text);

}  // namespace glovebox::agent
