// Removing a file or a whole tree, never through a link, with a stack that does not grow with the
// tree's depth in descriptors.

#pragma once

#include "agent/files/file_call.h"
#include "agent/files/tree.h"
#include "async/task.h"
#include "base/result.h"

namespace glovebox::agent {

enum class Recursive : bool { kNo, kYes };

// kConflict for a directory that is not empty, unless kYes. On failure a part may be gone.
// Lets others run in between.
Task<Result<void>> remove(FileCall& call, Place place, Recursive recursive);

}  // namespace glovebox::agent
