// What a client may ask for, in one place. Errors are kInvalid and begin with the field's name as
// in the API ("labels: ...").

#pragma once

#include "base/result.h"
#include "sandbox/sandbox.h"
#include "sandbox/service.h"

namespace glovebox::sandbox {

// A sandbox as `spec` wants it, defaults filled in; without id, runtime, times and state.
Result<Sandbox> resolve(const CreateSpec& spec, const ServiceConfig& config);

Result<void> check_timeout(Millis timeout, const ServiceConfig& config);
Result<void> check_idempotency_key(const std::string& key);

}  // namespace glovebox::sandbox
