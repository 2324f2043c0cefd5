// What the `host` template's writable layer holds at first.

#pragma once

#include <string>

#include "base/result.h"

namespace glovebox::native {

// Fills an empty, mounted image. From the host it takes only what is listed in template_tree.cc:
// public configuration that programs under /usr look for, world-readable, and never a secret.
Result<void> fill_template_tree(const std::string& mount);

}  // namespace glovebox::native
