#include "agent/files/copy.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "agent/files/fs_error.h"
#include "agent/files/temporary_name.h"

namespace glovebox::agent {
namespace {

constexpr std::size_t kStepBytes = 1 << 20;

Result<void> copy_link(const Place& from, int to_dir, const std::string& name) {
  char target[PATH_MAX];
  const ssize_t n = ::readlinkat(from.dir.get(), from.name.c_str(), target, sizeof target - 1);
  if (n < 0) return fs_error(errno, from.path);
  target[n] = '\0';
  if (::symlinkat(target, to_dir, name.c_str()) != 0) return fs_error(errno, from.path);
  return {};
}

Result<void> copy_bytes(int from, int to, const std::string& path) {
  for (;;) {
    const ssize_t n = ::sendfile(to, from, nullptr, kStepBytes);
    if (n == 0) return {};
    if (n < 0 && errno != EINTR) return fs_error(errno, path);
  }
}

Result<void> copy_regular(const Place& from, const struct stat& st, int to_dir,
                          const std::string& name) {
  UniqueFd source(
      ::openat(from.dir.get(), from.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!source) return fs_error(errno, from.path);
  UniqueFd target(
      ::openat(to_dir, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!target) return fs_error(errno, from.path);
  GB_TRY(copy_bytes(source.get(), target.get(), from.path));
  // As mv does: the owner where one may, the times and the mode always.
  [[maybe_unused]] const int owned = ::fchown(target.get(), st.st_uid, st.st_gid);
  const struct timespec times[2] = {st.st_atim, st.st_mtim};
  if (::fchmod(target.get(), st.st_mode & 07777) != 0 || ::futimens(target.get(), times) != 0) {
    return fs_error(errno, from.path);
  }
  return {};
}

Result<void> put_in_place(const Place& from, const Place& to, const std::string& temporary,
                          bool replace) {
  if (::syscall(SYS_renameat2, to.dir.get(), temporary.c_str(), to.dir.get(), to.name.c_str(),
                replace ? 0 : RENAME_NOREPLACE) != 0) {
    return fs_error(errno, to.path);
  }
  if (::unlinkat(from.dir.get(), from.name.c_str(), 0) != 0) return fs_error(errno, from.path);
  return {};
}

}  // namespace

Result<void> move_across(const Place& from, const Place& to, bool replace) {
  struct stat st{};
  if (::fstatat(from.dir.get(), from.name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
    return fs_error(errno, from.path);
  }
  if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)) {
    return Error(Errc::kInvalid,
                 from.path + ": only files and links can be moved to another file system");
  }
  const std::string temporary = temporary_name();
  Result<void> copied = S_ISLNK(st.st_mode) ? copy_link(from, to.dir.get(), temporary)
                                            : copy_regular(from, st, to.dir.get(), temporary);
  if (copied) copied = put_in_place(from, to, temporary, replace);
  if (!copied) ::unlinkat(to.dir.get(), temporary.c_str(), 0);
  return copied;
}

}  // namespace glovebox::agent
