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

// `image_fd` is this sandbox's own image (opened for reading and writing). `scratch_a` and
// `scratch_b` are empty directories of the caller's private mount namespace, used for a moment.
// `uid_base` is what id 0 of `user_ns` is on the host.
Result<BoxMounts> make_box_mounts(int image_fd, int user_ns, uid_t uid_base,
                                  const std::string& scratch_a, const std::string& scratch_b);

}  // namespace glovebox::native
