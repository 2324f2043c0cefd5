#include <sys/stat.h>

#include <boost/json.hpp>
#include <csignal>
#include <utility>

#include "async/coro.h"
#include "cli/commands.h"
#include "cli/copy.h"
#include "cli/json.h"
#include "cli/path_spec.h"

namespace glovebox::cli {
namespace {

bool is_local_dir(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

Error several_need_a_directory(const std::string& path) {
  return Error(Errc::kInvalid, "'" + path + "' is not a directory, and there are several sources");
}

Task<Result<void>> all_up(CopyContext& context, std::vector<PathSpec> sources, PathSpec to,
                          std::string user) {
  RemotePath base{to.sandbox, to.path, user};
  const bool wants_dir = to.path.ends_with('/');
  const bool dir = co_await is_remote_dir(context.shell.api(), base);
  if (sources.size() > 1 && !dir && !wants_dir) co_return several_need_a_directory(to.path);
  if (wants_dir && !dir) {
    Result<void> made = co_await make_remote_dir(context.shell.api(), base);
    if (!made) co_return made;
  }
  for (const PathSpec& source : sources) {
    RemotePath place = base;
    if (dir || wants_dir) {
      const std::string name = base_name(source.path);
      if (source.kind == PathSpec::Kind::kStandard) {
        co_return Error(Errc::kInvalid, "'-' needs the name of a file to write, not a directory");
      }
      // "cp . ID:dir" copies what is in it.
      if (!name.empty()) place.path = join_path(place.path, name);
    }
    const std::string local = source.kind == PathSpec::Kind::kStandard ? "-" : source.path;
    Result<void> done = co_await copy_up(context, local, std::move(place));
    if (!done) co_return done;
  }
  co_return Result<void>();
}

Task<Result<void>> all_down(CopyContext& context, std::vector<PathSpec> sources, PathSpec to,
                            std::string user) {
  const bool standard = to.kind == PathSpec::Kind::kStandard;
  const bool dir = !standard && is_local_dir(to.path);
  if (!dir && !standard && to.path.ends_with('/')) {
    co_return Error(Errc::kNotFound, "no directory '" + to.path + "' here");
  }
  if (sources.size() > 1 && !dir && !standard) co_return several_need_a_directory(to.path);
  for (const PathSpec& source : sources) {
    std::string local = standard ? "-" : to.path;
    const std::string name = base_name(source.path);
    if (dir && !name.empty()) local = join_path(local, name);
    Result<std::string> id = co_await find_sandbox(context.shell, source.sandbox);
    if (!id) co_return std::move(id).error();
    RemotePath from{std::move(*id), source.path, user};
    Result<void> done = co_await copy_down(context, std::move(from), std::move(local));
    if (!done) co_return done;
  }
  co_return Result<void>();
}

Result<bool> goes_up(const std::vector<PathSpec>& sources, const PathSpec& to) {
  std::size_t remote = 0;
  for (const PathSpec& source : sources) remote += source.remote() ? 1 : 0;
  if (to.remote() && remote == 0) return true;
  if (!to.remote() && remote == sources.size()) return false;
  if (to.remote()) {
    return Error(Errc::kInvalid,
                 "cannot copy from one sandbox to another; go by way of a local file, or: "
                 "glovebox cp A:/file - | glovebox cp - B:/file");
  }
  return Error(Errc::kInvalid, "one side must be in a sandbox: SANDBOX:/path");
}

}  // namespace

Task<Result<int>> execute(Shell& shell, CopyOptions options) {
  std::vector<PathSpec> specs;
  for (const std::string& path : options.paths) {
    GB_CO_TRY_ASSIGN(PathSpec spec, parse_path_spec(path));
    specs.push_back(std::move(spec));
  }
  if (specs.size() < 2) {
    co_return Error(Errc::kInvalid, "cp needs a source and a destination");
  }
  PathSpec to = std::move(specs.back());
  specs.pop_back();
  GB_CO_TRY_ASSIGN(const bool up, goes_up(specs, to));

  const SignalWatch signals(shell.executor(), {SIGINT, SIGTERM, SIGHUP},
                            [&shell](int signal) { shell.interrupt().raise(signal); });
  CopyContext context(shell);
  Result<void> done;
  if (up) {
    Result<std::string> id = co_await find_sandbox(shell, to.sandbox);
    if (!id) co_return std::move(id).error();
    to.sandbox = std::move(*id);
    done = co_await all_up(context, std::move(specs), std::move(to), options.user);
  } else {
    done = co_await all_down(context, std::move(specs), std::move(to), options.user);
  }
  context.progress.clear();
  if (shell.interrupt().signal() != 0) co_return shell.interrupt().exit_code();
  if (!done && done.error().sys_errno() == EPIPE) co_return kExitPipe;
  if (!done) co_return std::move(done).error();
  if (shell.json()) {
    boost::json::object out;
    out["files"] = context.count.files;
    out["bytes"] = context.progress.bytes_total();
    out["skipped"] = context.count.skipped;
    // Standard output may be the file itself.
    if (options.paths.back() != "-") shell.out_json(out);
  }
  co_return kExitOk;
}

}  // namespace glovebox::cli
