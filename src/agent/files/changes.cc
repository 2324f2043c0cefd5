#include "agent/files/changes.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "agent/files/copy.h"
#include "agent/files/entry.h"
#include "agent/files/fs_error.h"

namespace glovebox::agent {
namespace {

bool is_directory(const Place& place) {
  struct stat st{};
  return ::fstatat(place.dir.get(), place.name.c_str(), &st, 0) == 0 && S_ISDIR(st.st_mode);
}

// chmod of what a path descriptor holds. fchmodat2 came with Linux 6.6; before, only a detour
// over /proc knows no race.
int chmod_path_fd(int fd, mode_t mode) {
  constexpr long kFchmodat2 = 452;
  if (::syscall(kFchmodat2, fd, "", mode, AT_EMPTY_PATH) == 0) return 0;
  if (errno != ENOSYS && errno != EPERM) return errno;
  char path[32];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  return ::chmod(path, mode) == 0 ? 0 : errno;
}

}  // namespace

Result<std::string> make_directory(FileCall& call, Users& users, const std::string& path,
                                   mode_t mode, bool parents) {
  GB_TRY_ASSIGN(const ActingAs rights, call.act());
  if (parents) GB_TRY(call.tree().make_parents(path));
  GB_TRY_ASSIGN(const Place place, call.tree().locate(path));
  if (place.name == ".") return entry_json(users, place);
  if (::mkdirat(place.dir.get(), place.name.c_str(), 0700) != 0) {
    if (errno != EEXIST) return fs_error(errno, place.path);
    if (is_directory(place)) return entry_json(users, place);
    return Error(Errc::kConflict, place.path + ": is there, and no directory");
  }
  // Not by mkdirat: the umask would take bits away.
  UniqueFd made(::openat(place.dir.get(), place.name.c_str(),
                         O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!made || ::fchmod(made.get(), mode) != 0) return fs_error(errno, place.path);
  return entry_json(users, place);
}

Result<std::string> move_file(FileCall& call, Users& users, const std::string& from,
                              const std::string& to, bool replace) {
  GB_TRY_ASSIGN(const ActingAs rights, call.act());
  GB_TRY_ASSIGN(const Place source, call.tree().locate(from));
  GB_TRY_ASSIGN(const Place target, call.tree().locate(to));
  if (source.name == "." || target.name == ".") return fs_error(EBUSY, source.path);
  const unsigned flags = replace ? 0 : RENAME_NOREPLACE;
  if (::syscall(SYS_renameat2, source.dir.get(), source.name.c_str(), target.dir.get(),
                target.name.c_str(), flags) != 0) {
    if (errno == EXDEV) {
      GB_TRY(move_across(source, target, replace));
    } else if (errno == EISDIR || errno == ENOTDIR) {
      return Error(Errc::kConflict,
                   target.path + ": a directory and a file cannot replace each other");
    } else {
      return fs_error(errno, errno == EEXIST || errno == ENOTEMPTY ? target.path : source.path);
    }
  }
  return entry_json(users, target);
}

Result<std::string> change_ownership(FileCall& call, Users& users, const std::string& path,
                                     const Ownership& wanted) {
  GB_TRY_ASSIGN(const ActingAs rights, call.act());
  GB_TRY_ASSIGN(const UniqueFd fd, call.tree().open_file(path, O_PATH));
  // The owner first: changing it takes set-user-id bits away.
  if (wanted.owner || wanted.group) {
    constexpr auto kSame = static_cast<uid_t>(-1);
    if (::fchownat(fd.get(), "", wanted.owner.value_or(kSame), wanted.group.value_or(kSame),
                   AT_EMPTY_PATH) != 0) {
      return fs_error(errno, path);
    }
  }
  if (wanted.mode) {
    const int error = chmod_path_fd(fd.get(), *wanted.mode);
    if (error != 0) return fs_error(error, path);
  }
  struct stat st{};
  if (::fstatat(fd.get(), "", &st, AT_EMPTY_PATH) != 0) return fs_error(errno, path);
  GB_TRY_ASSIGN(const std::string shown, call.tree().absolute(path));
  JsonWriter json;
  write_entry(json, users, shown, st, "");
  return std::move(json).take();
}

}  // namespace glovebox::agent
