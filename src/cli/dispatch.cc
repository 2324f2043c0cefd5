#include <type_traits>
#include <utility>

#include "async/coro.h"
#include "cli/commands.h"

namespace glovebox::cli {
namespace {

template <class T>
inline constexpr bool kImmediate =
    std::is_same_v<T, DoctorOptions> || std::is_same_v<T, ConfigCheckOptions> ||
    std::is_same_v<T, VersionOptions>;

// The options must have a name while they are awaited: `options` lives in this frame.
template <class T>
Task<Result<int>> run_one(Shell& shell, T options) {
  if constexpr (std::is_same_v<T, CompletionOptions>) {
    co_return Error(Errc::kInternal, "completion needs no daemon");
  } else if constexpr (kImmediate<T>) {
    co_return execute_now(shell, options);
  } else {
    co_return co_await execute(shell, std::move(options));
  }
}

Task<Result<int>> run_any(Shell& shell, Command command) {
  return std::visit(
      [&shell](auto& options) {
        using T = std::remove_reference_t<decltype(options)>;
        return run_one<T>(shell, std::move(options));
      },
      command);
}

// What the daemon could not do for a command that was to run is told apart from what the command
// itself ended with.
bool runs_a_command(const Command& command) {
  return std::holds_alternative<RunOptions>(command) ||
         std::holds_alternative<ExecOptions>(command);
}

}  // namespace

Task<int> dispatch(Shell& shell, Command command) {
  const int failure = runs_a_command(command) ? kExitGlovebox : kExitError;
  Result<int> code = co_await run_any(shell, std::move(command));
  if (code) co_return *code;
  shell.print_error(code.error());
  co_return failure;
}

}  // namespace glovebox::cli
