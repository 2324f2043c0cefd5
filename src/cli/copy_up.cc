#include <fcntl.h>
#include <sys/stat.h>

#include <boost/json.hpp>
#include <utility>

#include "async/coro.h"
#include "base/base64.h"
#include "base/text.h"
#include "cli/copy.h"
#include "cli/display.h"
#include "cli/json.h"
#include "cli/path_spec.h"
#include "net/url.h"
#include "os/files.h"
#include "os/sys.h"

namespace glovebox::cli {
namespace {

namespace json = boost::json;

struct LocalFile {
  UniqueFd fd;
  struct stat status;
};

// Never waits for a FIFO's other end, and never follows a link.
Result<LocalFile> open_entry(int dir_fd, const std::string& name) {
  LocalFile file;
  GB_TRY_ASSIGN(file.fd, os::openat(dir_fd, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0,
                                    os::Resolve::kAnywhere));
  if (::fstat(file.fd.get(), &file.status) != 0) return Error::from_errno(errno, "fstat " + name);
  return file;
}

Task<Result<void>> put_file(CopyContext& context, const LocalFile& file, const RemotePath& to) {
  const auto size = static_cast<std::uint64_t>(file.status.st_size);
  context.progress.begin(to.path, size);
  const OnBytes on_bytes = [&context](std::size_t n) { context.progress.add(n); };
  Result<void> sent = co_await upload(context.shell.api(), to, file.fd.get(), size,
                                      file.status.st_mode & 0777, on_bytes);
  if (!sent) co_return std::move(sent).context("copy to " + to.path).error();
  ++context.count.files;
  co_return Result<void>();
}

Task<Result<void>> put_dir(CopyContext& context, int dir_fd, std::string shown, RemotePath to,
                           int depth) {
  if (depth > kCopyDepthMax) {
    co_return Error(Errc::kInvalid, shown + ": directories are nested too deeply");
  }
  Result<void> made = co_await make_remote_dir(context.shell.api(), to);
  if (!made) co_return made;
  GB_CO_TRY_ASSIGN(const std::vector<std::string> names, os::list_dir(dir_fd, "."));
  for (const std::string& name : names) {
    const std::string path = join_path(shown, name);
    struct stat status{};
    if (::fstatat(dir_fd, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      context.skip(path, "it went away");
      continue;
    }
    if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
      context.skip(path, S_ISLNK(status.st_mode) ? "it is a symbolic link"
                                                 : "it is neither a file nor a directory");
      continue;
    }
    GB_CO_TRY_ASSIGN(const LocalFile file, open_entry(dir_fd, name).context("copy"));
    RemotePath below{to.sandbox, join_path(to.path, name), to.user};
    Result<void> done;
    if (S_ISDIR(file.status.st_mode)) {
      done = co_await put_dir(context, file.fd.get(), path, std::move(below), depth + 1);
    } else if (S_ISREG(file.status.st_mode)) {
      done = co_await put_file(context, file, below);
    }
    if (!done) co_return done;
  }
  co_return Result<void>();
}

}  // namespace

void CopyContext::skip(std::string_view path, std::string_view why) {
  ++count.skipped;
  progress.clear();
  shell.warn("skipped " + safe_text(path) + ": " + std::string(why));
}

Task<Result<void>> make_remote_dir(Api& api, RemotePath at) {
  json::object body;
  if (is_utf8(at.path)) {
    body["path"] = at.path;
  } else {
    body["path_b64"] = to_base64(at.path);
  }
  body["parents"] = true;
  std::string rest = "files/mkdir";
  if (!at.user.empty()) rest += "?user=" + net::percent_encode(at.user);
  Result<std::string> made =
      co_await api.call("POST", sandbox_target(at.sandbox, rest), to_text(body));
  if (!made) co_return std::move(made).context("make directory " + at.path).error();
  co_return Result<void>();
}

Task<bool> is_remote_dir(Api& api, RemotePath at) {
  // "/." asks for what a link leads to.
  at.path = join_path(at.path, ".");
  Result<std::string> reply =
      co_await api.call("GET", sandbox_target(at.sandbox, "files/stat?" + path_query(at)));
  if (!reply) co_return false;
  const Result<json::object> entry = parse_object(*reply);
  co_return entry.has_value() && text_at(*entry, "type") == "dir";
}

Task<Result<void>> copy_up(CopyContext& context, std::string local, RemotePath to) {
  if (local == "-") {
    context.progress.begin("standard input", std::nullopt);
    const OnBytes on_bytes = [&context](std::size_t n) { context.progress.add(n); };
    Result<void> sent = co_await upload(context.shell.api(), to, context.shell.streams().in,
                                        std::nullopt, 0644, on_bytes);
    if (sent) ++context.count.files;
    co_return std::move(sent).context("copy to " + to.path);
  }
  // What was named on the command line may be a link: its user chose it.
  LocalFile file;
  GB_CO_TRY_ASSIGN(file.fd,
                   os::openat(AT_FDCWD, local, O_RDONLY | O_NONBLOCK, 0, os::Resolve::kAnywhere));
  if (::fstat(file.fd.get(), &file.status) != 0) {
    co_return Error::from_errno(errno, "fstat " + local);
  }
  if (S_ISDIR(file.status.st_mode)) {
    co_return co_await put_dir(context, file.fd.get(), std::move(local), std::move(to), 0);
  }
  if (!S_ISREG(file.status.st_mode)) {
    co_return Error(Errc::kInvalid, local + " is neither a file nor a directory");
  }
  co_return co_await put_file(context, file, to);
}

}  // namespace glovebox::cli
