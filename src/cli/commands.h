// One function a command. Each returns the exit code, or an error that the caller prints.

#pragma once

#include "async/task.h"
#include "base/result.h"
#include "cli/options.h"
#include "cli/shell.h"

namespace glovebox::cli {

Task<Result<int>> execute(Shell& shell, RunOptions options);
Task<Result<int>> execute(Shell& shell, CreateOptions options);
Task<Result<int>> execute(Shell& shell, ListOptions options);
Task<Result<int>> execute(Shell& shell, InfoOptions options);
Task<Result<int>> execute(Shell& shell, ExecOptions options);
Task<Result<int>> execute(Shell& shell, CopyOptions options);
Task<Result<int>> execute(Shell& shell, LogsOptions options);
Task<Result<int>> execute(Shell& shell, PsOptions options);
Task<Result<int>> execute(Shell& shell, KillOptions options);
Task<Result<int>> execute(Shell& shell, RemoveOptions options);
Task<Result<int>> execute(Shell& shell, StateOptions options);
Task<Result<int>> execute(Shell& shell, ExtendOptions options);
Task<Result<int>> execute(Shell& shell, TopOptions options);
Task<Result<int>> execute(Shell& shell, UpOptions options);

// These wait for nothing.
Result<int> execute_now(Shell& shell, const DoctorOptions& options);
Result<int> execute_now(Shell& shell, const ConfigCheckOptions& options);
Result<int> execute_now(Shell& shell, const VersionOptions& options);

// Runs any of them but CompletionOptions, prints what it could not do, and returns the exit code.
Task<int> dispatch(Shell& shell, Command command);

}  // namespace glovebox::cli
