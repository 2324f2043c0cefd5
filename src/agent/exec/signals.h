// Signals by their names, as callers write them.

#pragma once

#include "agent/common/json_fields.h"
#include "base/result.h"

namespace glovebox::agent {

// The member "signal": "SIGTERM", "TERM" or 15. kInvalid for what is no signal.
Result<int> parse_signal(JsonFields& json);

}  // namespace glovebox::agent
