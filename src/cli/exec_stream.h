// A command in a sandbox, attached: its output as it comes, our input, its end.

#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "async/task.h"
#include "base/result.h"
#include "cli/api.h"
#include "cli/options.h"
#include "cli/terminal.h"

namespace glovebox::cli {

struct ExecRequest {
  std::vector<std::string> args;
  std::string shell_line;  // Used when `args` is empty.
  std::string cwd;
  std::string user;
  Pairs env;
  std::optional<double> timeout_s;
  std::optional<WindowSize> pty;
  bool stdin_open = false;
  bool kill_on_disconnect = true;
  bool background = false;
};

// kInvalid when an argument or a variable is not UTF-8, which JSON cannot carry.
Result<std::string> exec_request_json(const ExecRequest& request);

struct ExecOutcome {
  std::int64_t pid = 0;
  int exit_code = 0;
  int signal = 0;  // That ended it, or 0.
  bool timed_out = false;
  bool oom_killed = false;
  double duration_ms = 0;
  std::uint64_t lost_bytes = 0;
  // Set when the sandbox did not start the command at all: kNotFound, kDenied, kInvalid, …
  std::optional<Error> refused;
};

// Takes output of stream 1 or 2; an error ends the attachment and kills the command.
using OutputSink = std::function<Task<Result<void>>(int stream, std::string_view bytes)>;

struct AttachOptions {
  OutputSink output;
  int stdin_fd = -1;             // Forwarded until its end when not negative. Borrowed.
  int terminal_fd = -1;          // With a PTY: whose size the PTY follows. Borrowed.
  bool forward_signals = false;  // SIGINT goes to the command once; the second one hangs up.
};

// Returns as soon as the command has ended, whatever our standard input does. An interrupted
// attachment is an error, and the command is killed then.
Task<Result<ExecOutcome>> exec_attached(Api& api, std::string sandbox, ExecRequest request,
                                        AttachOptions options);

// What the shell would have made of it: 124, 126, 127, 128+n or the command's own.
int exit_code_of(const ExecOutcome& outcome) noexcept;

}  // namespace glovebox::cli
