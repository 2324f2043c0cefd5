// The mounts of one sandbox, made by the warden and handed to its first process as descriptors.

#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace glovebox::native {

struct BoxMounts {
  UniqueFd root;  // Goes to /
  UniqueFd usr;   // Goes to /usr: the host's, read-only, under this sandbox's own layer.
  UniqueFd dev;   // Goes to /dev
};

struct DiskPlan {
  int image = -1;         // This sandbox's own image, open for reading and writing. Borrowed.
  int user_ns = -1;       // Borrowed.
  uid_t uid_base = 0;     // What id 0 of user_ns is on the host.
  std::string usr_layer;  // Lies over the host's /usr, see template_tree.h.
  // Empty directories of the caller's private mount namespace, used for a moment. Relative to the
  // working directory: a sandbox can read them.
  std::string scratch_image;
  std::string scratch_usr;
  std::string scratch_layer;
};

Result<BoxMounts> make_box_mounts(const DiskPlan& plan);

// Throws away what a file system holds that is not on its disk yet (EXT4_IOC_SHUTDOWN): ending a
// sandbox would otherwise write all of it first. `path` is any directory on it.
void discard_unwritten(const std::string& path) noexcept;

}  // namespace glovebox::native
