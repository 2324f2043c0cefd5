// The key that a fresh installation begins with.

#pragma once

#include <string>

#include "base/result.h"
#include "sandbox/keys.h"

namespace glovebox::daemon {

// Sees to it that the file (mode 0600) holds one API key that works: makes a key when there is no
// file, or when the one in it is not known here or was revoked.
Result<void> ensure_key_file(sandbox::ApiKeys& keys, const std::string& path);

}  // namespace glovebox::daemon
