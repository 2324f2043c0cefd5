// How run and exec show a command: live on the standard streams, or collected for --json.

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "async/task.h"
#include "base/result.h"
#include "cli/exec_stream.h"
#include "cli/shell.h"

namespace glovebox::cli {

struct AttachInput {
  bool forward_stdin = false;
  bool terminal = false;
  bool forward_signals = false;
};

// True when standard input holds something for a command: a pipe, a file or a socket, but neither
// a terminal nor /dev/null.
bool stdin_has_content(int fd);

// Runs to the end, prints what it prints and returns the exit code. With --json: collects up to
// 8 MiB a stream and prints an ExecResult with the sandbox's id.
// When the sandbox refused to start it, `refused` gets the reason and nothing is printed.
Task<Result<int>> attach(Shell& shell, std::string sandbox, ExecRequest request, AttachInput input,
                         std::optional<Error>* refused);

}  // namespace glovebox::cli
