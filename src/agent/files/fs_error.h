// errno of a file call as an Error for the caller: which of "is not there", "may not", "cannot be
// so" it is, with the path as it was given.

#pragma once

#include <string_view>

#include "base/error.h"

namespace glovebox::agent {

Error fs_error(int err, std::string_view path);

}  // namespace glovebox::agent
