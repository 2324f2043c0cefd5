// Writing a file: into a temporary one beside it, which takes its name when all has come. A cut
// upload leaves nothing, and a reader sees the old file or the new one, never a part.

#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "agent/common/users.h"
#include "agent/files/file_call.h"
#include "async/task.h"
#include "base/result.h"
#include "net/server.h"

namespace glovebox::agent {

struct UploadOptions {
  std::optional<mode_t> mode;  // Else that of the file which is replaced, else 0644.
  bool parents = false;        // Makes missing directories above.
};

// Through a link the file that it leads to is replaced, and the link stays. Answers with an Entry.
Task<Result<void>> upload(net::Exchange& exchange, Users& users, FileCall call, std::string path,
                          UploadOptions options);

}  // namespace glovebox::agent
