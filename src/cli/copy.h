// Copies of files and whole directories, both ways. Symbolic links and special files are skipped
// with a warning: a link's target means one thing here and another thing in the sandbox.

#pragma once

#include <cstdint>
#include <string>

#include "async/task.h"
#include "base/result.h"
#include "cli/progress_printer.h"
#include "cli/shell.h"
#include "cli/transfer.h"

namespace glovebox::cli {

struct CopyCount {
  std::uint64_t files = 0;
  std::uint64_t skipped = 0;
};

struct CopyContext {
  Shell& shell;
  ProgressPrinter progress;
  CopyCount count;

  explicit CopyContext(Shell& s) : shell(s), progress(s) {}
  void skip(std::string_view path, std::string_view why);
};

inline constexpr int kCopyDepthMax = 100;

// True when `at` is a directory, also through a link.
Task<bool> is_remote_dir(Api& api, RemotePath at);

// With its parents; fine when it is there.
Task<Result<void>> make_remote_dir(Api& api, RemotePath at);

// `local` is a file or directory, or "-" for standard input. `to` is the final place.
Task<Result<void>> copy_up(CopyContext& context, std::string local, RemotePath to);

// `from` is a file or directory. `local` is the final place; "-" is standard output (files only).
// Nothing outside of `local` is written, whatever names the sandbox gives: every entry is opened
// by its one plain name, in a directory held open, and never through a link.
Task<Result<void>> copy_down(CopyContext& context, RemotePath from, std::string local);

}  // namespace glovebox::cli
