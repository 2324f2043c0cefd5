// The body of POST /api/v1/sandboxes, from options.

#pragma once

#include <string>

#include "base/result.h"
#include "cli/options.h"

namespace glovebox::cli {

// kInvalid when a text is not UTF-8.
Result<std::string> create_request_json(const SandboxOptions& options);

}  // namespace glovebox::cli
