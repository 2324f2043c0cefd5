// Moving a file to another file system, where rename cannot: a copy under a temporary name, the
// rename, and only then the removal. Regular files and links; a directory is refused.

#pragma once

#include "agent/files/tree.h"
#include "base/result.h"

namespace glovebox::agent {

// Needs the caller's rights. Blocks for as long as copying takes.
Result<void> move_across(const Place& from, const Place& to, bool replace);

}  // namespace glovebox::agent
