// One user namespace a slot, made before it is needed and entered by the sandbox's first process.

#pragma once

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace glovebox::native {

// Ids 0…65535 inside are base…base+65535 outside.
//
// It belongs to host uid `base`, not to root, because the kernel counts inotify instances and
// their like against a namespace's owner: slots owned by root would share one allowance.
// No user namespace can be made within it (user.max_user_namespaces = 0) if `forbid_nested`.
Result<UniqueFd> make_user_namespace(uid_t base, bool forbid_nested);

}  // namespace glovebox::native
