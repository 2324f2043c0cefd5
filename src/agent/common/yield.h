// Lets other coroutines run in the middle of long work.

#pragma once

#include "async/task.h"

namespace glovebox::agent {

Task<void> yield_to_others();

}  // namespace glovebox::agent
