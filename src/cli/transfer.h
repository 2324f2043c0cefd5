// One file at a time between this machine and a sandbox, in constant memory.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "async/task.h"
#include "base/result.h"
#include "cli/api.h"

namespace glovebox::cli {

// A path inside a sandbox, with the user whose rights count (empty: the default one).
struct RemotePath {
  std::string sandbox;
  std::string path;  // Any bytes but NUL.
  std::string user;
};

// "path=…" or "path_b64=…", and "&user=…".
std::string path_query(const RemotePath& at);

// Told of each piece that has gone through.
using OnBytes = std::function<void(std::size_t)>;

// Reads `fd` (borrowed) to its end. With a size, exactly that many bytes are sent: what a file has
// grown meanwhile is left out, and a file that has shrunk is an error.
Task<Result<void>> upload(Api& api, RemotePath to, int fd, std::optional<std::uint64_t> size,
                          unsigned mode, OnBytes on_bytes);
// From a string.
Task<Result<void>> upload_text(Api& api, RemotePath to, std::string text, unsigned mode);

// Takes each piece of a file as it comes.
using Sink = std::function<Task<Result<void>>(std::string_view)>;
Task<Result<void>> download(Api& api, RemotePath from, Sink sink);

}  // namespace glovebox::cli
