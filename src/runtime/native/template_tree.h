// What the `host` template's writable layer holds at first.

#pragma once

#include <string>

#include "base/result.h"

namespace glovebox::native {

// Fills an empty, mounted image.
Result<void> fill_template_tree(const std::string& mount);

// Fills `dir`, made anew, with a layer to lie over the host's /usr: the host's public configuration
// that programs there look for in /etc (only what is listed in template_tree.cc, world-readable,
// never a secret). The image's /etc has links to it, so each sandbox's own image stays small.
Result<void> fill_usr_layer(const std::string& dir);

}  // namespace glovebox::native
