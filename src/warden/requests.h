// What the warden takes from a client, checked before anything is done.

#pragma once

#include <string>

#include "base/result.h"
#include "runtime/native/host.h"
#include "warden/protocol/messages.h"

namespace glovebox::warden {

// kInvalid for a name that is not [a-z0-9-]{1,64}.
Result<void> check_name(const std::string& name);
// The limits asked for; kInvalid for what is out of range, naming the field and its range.
Result<native::Limits> check_create(const CreateRequest& request);
Result<void> check_sockets(const SocketsRequest& request);

}  // namespace glovebox::warden
