#include "cli/attach.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cerrno>
#include <utility>

#include "async/coro.h"
#include "base/base64.h"
#include "base/text.h"
#include "cli/json.h"
#include "cli/stdio.h"
#include "cli/units.h"

namespace glovebox::cli {
namespace {

namespace json = boost::json;

constexpr std::size_t kCollectBytesMax = 8 << 20;

struct Collected {
  std::string bytes;
  bool truncated = false;

  void add(std::string_view more) {
    const std::size_t room = kCollectBytesMax - bytes.size();
    if (more.size() > room) truncated = true;
    bytes.append(more.substr(0, room));
  }
  void put(json::object& out, const std::string& name) const {
    if (is_utf8(bytes)) {
      out[name] = bytes;
    } else {
      out[name + "_b64"] = to_base64(bytes);
    }
    out[name + "_truncated"] = truncated;
  }
};

struct Output {
  Output(const Executor& executor, const Streams& streams)
      : out(executor, streams.out, Direction::kWrite),
        err(executor, streams.err, Direction::kWrite) {}
  StandardStream out;
  StandardStream err;
  std::array<Collected, 2> collected;
  bool pipe_closed = false;
};

json::object result_json(const std::string& sandbox, const ExecOutcome& outcome,
                         const std::array<Collected, 2>& collected) {
  json::object out;
  out["sandbox"] = sandbox;
  out["pid"] = outcome.pid;
  out["exit_code"] = outcome.exit_code;
  if (outcome.signal == 0) {
    out["signal"] = nullptr;
  } else {
    out["signal"] = outcome.signal;
  }
  out["timed_out"] = outcome.timed_out;
  out["oom_killed"] = outcome.oom_killed;
  out["duration_ms"] = outcome.duration_ms;
  out["lost_bytes"] = outcome.lost_bytes;
  collected[0].put(out, "stdout");
  collected[1].put(out, "stderr");
  return out;
}

void explain(const Shell& shell, const ExecOutcome& outcome, const ExecRequest& request) {
  if (outcome.lost_bytes > 0) {
    shell.warn(std::to_string(outcome.lost_bytes) +
               " bytes of output were lost: nothing took them for too long");
  }
  if (outcome.timed_out && request.timeout_s) {
    shell.note("glovebox: killed after its timeout of " + format_duration(*request.timeout_s));
  }
  if (outcome.oom_killed) {
    shell.note("glovebox: killed: out of memory (give more with --memory)");
  }
}

}  // namespace

bool stdin_has_content(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return false;
  if (S_ISCHR(status.st_mode)) {
    // /dev/null, by its numbers in the kernel's devices.txt; /dev/zero and the like do have bytes.
    return ::isatty(fd) != 1 && status.st_rdev != ::makedev(1, 3);
  }
  return S_ISFIFO(status.st_mode) || S_ISREG(status.st_mode) || S_ISSOCK(status.st_mode);
}

Task<Result<int>> attach(Shell& shell, std::string sandbox, ExecRequest request, AttachInput input,
                         std::optional<Error>* refused) {
  const Executor executor = shell.executor();
  const auto output = std::make_shared<Output>(executor, shell.streams());
  const bool collect = shell.json();
  AttachOptions options;
  options.output = [output, collect](int stream, std::string_view bytes) -> Task<Result<void>> {
    if (collect) {
      output->collected[stream == 2 ? 1 : 0].add(bytes);
      co_return Result<void>();
    }
    StandardStream& to = stream == 2 ? output->err : output->out;
    Result<void> written = co_await to.write_all(bytes);
    if (!written && written.error().sys_errno() == EPIPE) output->pipe_closed = true;
    co_return written;
  };
  options.forward_signals = input.forward_signals;
  if (input.forward_stdin) options.stdin_fd = shell.streams().in;

  std::optional<RawMode> raw;
  if (input.terminal) {
    options.terminal_fd = shell.streams().in;
    request.pty = window_size(shell.streams().in).value_or(WindowSize{});
    GB_CO_TRY_ASSIGN(RawMode mode, RawMode::enter(shell.streams().in));
    raw.emplace(std::move(mode));
  }
  request.stdin_open = input.forward_stdin;
  const ExecRequest copy = request;
  Interrupt::Hook hook(shell.interrupt(), [output] {
    output->out.cancel();
    output->err.cancel();
  });
  Result<ExecOutcome> outcome =
      co_await exec_attached(shell.api(), sandbox, std::move(request), std::move(options));
  raw.reset();
  if (!outcome) {
    if (output->pipe_closed) co_return kExitPipe;
    if (shell.interrupt().signal() != 0) co_return shell.interrupt().exit_code();
    co_return std::move(outcome).error();
  }
  if (outcome->refused) {
    *refused = outcome->refused;
    co_return exit_code_of(*outcome);
  }
  explain(shell, *outcome, copy);
  if (collect) shell.out_json(result_json(sandbox, *outcome, output->collected));
  const int code = exit_code_of(*outcome);
  // A pipeline that got half of the bytes must not be told that all went well.
  co_return code == 0 && outcome->lost_bytes > 0 ? kExitGlovebox : code;
}

}  // namespace glovebox::cli
