// Streams the changes below a directory as server-sent events until the client leaves.

#pragma once

#include <string>

#include "agent/files/file_call.h"
#include "async/task.h"
#include "base/result.h"
#include "net/server.h"

namespace glovebox::agent {

// The reply begins when the watch is in force: what the client does afterwards is reported.
Task<Result<void>> stream_changes(net::Exchange& exchange, FileCall call, std::string path,
                                  bool recursive);

}  // namespace glovebox::agent
