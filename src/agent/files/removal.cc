#include "agent/files/removal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "agent/common/yield.h"
#include "agent/files/directory.h"
#include "agent/files/fs_error.h"
#include "async/coro.h"

namespace glovebox::agent {
namespace {

constexpr int kStepsInARowMax = 256;
constexpr std::size_t kDepthMax = 100'000;

// Walks down and, by "..", up again. Only the present directory is open: that ".." leads where we
// came from is checked, since a directory may be moved while we are in it.
class Remover {
 public:
  Remover(FileCall& call, const Place& place) : call_(call), place_(place) {}

  // One slice of work; true when all is gone.
  Result<bool> work() {
    GB_TRY_ASSIGN(const ActingAs rights, call_.act());
    for (int i = 0; i < kStepsInARowMax; ++i) {
      GB_TRY_ASSIGN(const bool done, step());
      if (done) return true;
    }
    return false;
  }

 private:
  struct Level {
    std::string name;  // In the level above.
    dev_t dev;
    ino_t ino;
  };

  Result<bool> step() {
    if (!dir_) {
      GB_TRY(enter(place_.dir.get(), place_.name));
      return false;
    }
    const std::optional<Directory::Item> item = dir_->next();
    if (!item) return leave();
    const std::string name(item->name);
    if (::unlinkat(dir_->fd(), name.c_str(), 0) == 0 || errno == ENOENT) return false;
    // Linux says EISDIR for a directory, POSIX allows EPERM.
    if (errno != EISDIR && errno != EPERM) return fs_error(errno, place_.path + "/…/" + name);
    const int why = errno;
    if (::unlinkat(dir_->fd(), name.c_str(), AT_REMOVEDIR) == 0) return false;
    if (errno == ENOTDIR) return fs_error(why, place_.path + "/…/" + name);
    if (errno != ENOTEMPTY && errno != EEXIST) return fs_error(errno, place_.path + "/…/" + name);
    GB_TRY(enter(dir_->fd(), name));
    return false;
  }

  Result<void> enter(int parent_fd, const std::string& name) {
    if (levels_.size() >= kDepthMax) return fs_error(ELOOP, place_.path);
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    UniqueFd fd(::openat(parent_fd, name.c_str(), kFlags));
    struct stat st{};
    if (!fd || ::fstat(fd.get(), &st) != 0) return fs_error(errno, place_.path + "/…/" + name);
    levels_.push_back({name, st.st_dev, st.st_ino});
    GB_TRY_ASSIGN(Directory dir, Directory::adopt(std::move(fd)));
    dir_ = std::move(dir);
    return {};
  }

  // The present directory has been read to its end.
  Result<bool> leave() {
    const Level level = levels_.back();
    levels_.pop_back();
    int parent_fd = place_.dir.get();
    std::optional<Directory> parent;
    if (!levels_.empty()) {
      constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC;
      UniqueFd fd(::openat(dir_->fd(), "..", kFlags));
      struct stat st{};
      if (!fd || ::fstat(fd.get(), &st) != 0) return fs_error(errno, place_.path);
      if (st.st_dev != levels_.back().dev || st.st_ino != levels_.back().ino) {
        return Error(Errc::kConflict, place_.path + ": was moved while it was being removed");
      }
      GB_TRY_ASSIGN(parent, Directory::adopt(std::move(fd)));
      parent_fd = parent->fd();
    }
    const int removed = ::unlinkat(parent_fd, level.name.c_str(), AT_REMOVEDIR);
    if (removed != 0 && errno != ENOENT) {
      // Something new may have come in meanwhile: who makes files faster than they are removed
      // gets a conflict.
      return fs_error(errno, place_.path);
    }
    dir_ = std::move(parent);
    return levels_.empty();
  }

  FileCall& call_;
  const Place& place_;
  std::optional<Directory> dir_;
  std::vector<Level> levels_;
};

// True when it is gone; false for a directory that is not empty.
Result<bool> remove_one(FileCall& call, const Place& place) {
  GB_TRY_ASSIGN(const ActingAs rights, call.act());
  if (place.name == ".") return fs_error(EBUSY, place.path);
  if (::unlinkat(place.dir.get(), place.name.c_str(), 0) == 0) return true;
  if (errno != EISDIR && errno != EPERM) return fs_error(errno, place.path);
  const int why = errno;
  if (::unlinkat(place.dir.get(), place.name.c_str(), AT_REMOVEDIR) == 0) return true;
  if (errno == ENOTDIR) return fs_error(why, place.path);
  if (errno != ENOTEMPTY && errno != EEXIST) return fs_error(errno, place.path);
  return false;
}

}  // namespace

Task<Result<void>> remove(FileCall& call, Place place, Recursive recursive) {
  GB_CO_TRY_ASSIGN(const bool gone, remove_one(call, place));
  if (gone) co_return Result<void>();
  if (recursive == Recursive::kNo) {
    co_return Error(Errc::kConflict, place.path + ": is not empty; recursive=1 removes it all");
  }
  Remover remover(call, place);
  for (;;) {
    GB_CO_TRY_ASSIGN(const bool done, remover.work());
    if (done) co_return Result<void>();
    co_await yield_to_others();
  }
}

}  // namespace glovebox::agent
