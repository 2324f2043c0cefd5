// Reading a file: whole, a range of it, or only its head (RFC 9110: ranges, conditional requests).

#pragma once

#include <string>

#include "agent/files/file_call.h"
#include "async/task.h"
#include "base/result.h"
#include "net/server.h"

namespace glovebox::agent {

Task<Result<void>> download(net::Exchange& exchange, FileCall call, std::string path);

}  // namespace glovebox::agent
