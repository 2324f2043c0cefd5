// A file seen as a block device, freed by the kernel with its last user (LO_FLAGS_AUTOCLEAR).

#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace glovebox::os {

struct LoopDevice {
  UniqueFd fd;       // Holds the device until it is mounted.
  std::string path;  // "/dev/loop7"
};

// Borrows `file_fd`, open for reading and writing. Uses direct I/O where the file system can, so
// that a page is not cached twice.
Result<LoopDevice> attach_loop(int file_fd);

}  // namespace glovebox::os
