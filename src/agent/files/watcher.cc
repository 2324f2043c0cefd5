#include "agent/files/watcher.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <vector>

#include "agent/files/directory.h"
#include "agent/files/fs_error.h"
#include "agent/files/temporary_name.h"
#include "async/coro.h"

namespace glovebox::agent {
namespace {

constexpr std::uint32_t kMask = IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_DELETE | IN_MOVED_FROM |
                                IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF |
                                IN_EXCL_UNLINK;
constexpr std::size_t kChangesMax = 4096;
constexpr std::size_t kDepthMax = 128;

std::string join(const std::string& dir, std::string_view name) {
  std::string path = dir;
  if (path.back() != '/') path += '/';
  return path.append(name);
}

UniqueFd open_directory(int dir_fd, const char* name) {
  return UniqueFd(
      ::openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
}

}  // namespace

Watcher::Watcher(const Executor& executor, FileCall call, UniqueFd fd, bool recursive)
    : call_(std::move(call)),
      recursive_(recursive),
      inotify_(std::make_unique<AsyncFd>(executor, std::move(fd))) {}

Result<std::unique_ptr<Watcher>> Watcher::open(const Executor& executor, FileCall call,
                                               const std::string& path, bool recursive) {
  UniqueFd inotify(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!inotify) return fs_error(errno, "inotify (fs.inotify.max_user_instances)");
  std::unique_ptr<Watcher> watcher(
      new Watcher(executor, std::move(call), std::move(inotify), recursive));
  GB_TRY_ASSIGN(const ActingAs rights, watcher->call_.act());
  Tree& tree = watcher->call_.tree();
  GB_TRY_ASSIGN(watcher->top_, tree.absolute(path));
  GB_TRY_ASSIGN(const UniqueFd fd, tree.open_file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  GB_TRY(watcher->add(fd.get(), watcher->top_));
  if (recursive) watcher->add_below(fd.get(), watcher->top_, false);
  return watcher;
}

Result<void> Watcher::add(int dir_fd, const std::string& path) {
  if (paths_.size() >= kDirectoriesMax) {
    return Error(Errc::kExhausted,
                 path + ": a watch covers " + std::to_string(kDirectoriesMax) + " directories");
  }
  // By descriptor: the name may mean something else by now.
  char by_fd[32];
  std::snprintf(by_fd, sizeof by_fd, "/proc/self/fd/%d", dir_fd);
  const int wd = ::inotify_add_watch(inotify_->get(), by_fd, kMask);
  if (wd < 0 && errno == ENOSPC) {
    return Error(Errc::kExhausted, path + ": fs.inotify.max_user_watches is used up");
  }
  if (wd < 0) return fs_error(errno, path);
  paths_[wd] = path;
  return {};
}

// Watches every directory below; with `report`, also notes what is there already.
void Watcher::add_below(int dir_fd, const std::string& path, bool report) {
  struct Level {
    Directory dir;
    std::string path;
  };
  std::vector<Level> levels;
  const auto push = [&](UniqueFd fd, std::string at) {
    Result<Directory> dir = Directory::adopt(std::move(fd));
    if (dir && levels.size() < kDepthMax) levels.push_back({std::move(*dir), std::move(at)});
  };
  push(open_directory(dir_fd, "."), path);
  while (!levels.empty()) {
    const std::optional<Directory::Item> item = levels.back().dir.next();
    if (!item) {
      levels.pop_back();
      continue;
    }
    std::string below = join(levels.back().path, item->name);
    if (report && !is_temporary_name(item->name)) note("create", below);
    if (item->type != DT_DIR && item->type != DT_UNKNOWN) continue;
    UniqueFd fd = open_directory(levels.back().dir.fd(), std::string(item->name).c_str());
    if (!fd) {
      if (errno == EACCES) complain(below, fs_error(errno, below));
      continue;
    }
    Result<void> added = add(fd.get(), below);
    if (!added) complain(below, added.error());
    push(std::move(fd), std::move(below));
  }
}

void Watcher::add_new_directory(const std::string& path) {
  Result<ActingAs> rights = call_.act();
  if (!rights) return;
  Result<UniqueFd> fd =
      call_.tree().open_file(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK);
  if (!fd) return;  // Gone again, or not ours to read.
  Result<void> added = add(fd->get(), path);
  if (!added) {
    complain(path, added.error());
    return;
  }
  add_below(fd->get(), path, true);
}

// Once: a limit that is hit is hit thousands of times.
void Watcher::complain(const std::string& path, const Error& error) {
  if (std::exchange(complained_, true)) return;
  note("error", path, error.text());
}

void Watcher::note(std::string type, std::string path, std::string message) {
  if (changes_.size() >= kChangesMax) {
    if (changes_.back().type != "overflow") changes_.push_back({"overflow", "", ""});
    return;
  }
  const bool repeated = !changes_.empty() && type == "modify" && changes_.back().type == type &&
                        changes_.back().path == path;
  if (!repeated) changes_.push_back({std::move(type), std::move(path), std::move(message)});
}

Task<void> Watcher::wait_readable() { co_await inotify_->wait_readable(); }

std::deque<Change> Watcher::take() {
  read_events();
  return std::exchange(changes_, {});
}

void Watcher::close() noexcept { inotify_->close(); }

void Watcher::read_events() {
  alignas(inotify_event) char buffer[16 << 10];
  while (changes_.size() < kChangesMax) {
    const ssize_t n = ::read(inotify_->get(), buffer, sizeof buffer);
    if (n <= 0) return;
    for (const char* at = buffer; at < buffer + n;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      translate(*event);
      at += sizeof(inotify_event) + event->len;
    }
  }
}

void Watcher::translate(const inotify_event& event) {
  if ((event.mask & IN_Q_OVERFLOW) != 0) return note("overflow", "");
  const auto found = paths_.find(event.wd);
  if (found == paths_.end()) return;
  const std::string dir = found->second;
  if ((event.mask & IN_IGNORED) != 0) {
    paths_.erase(found);
    if (dir == top_) ended_ = true;
    return;
  }
  if ((event.mask & (IN_DELETE_SELF | IN_MOVE_SELF)) != 0) {
    // Below the top, the directory above tells the same.
    if (dir != top_) return;
    note((event.mask & IN_DELETE_SELF) != 0 ? "remove" : "rename", dir);
    ended_ = true;
    return;
  }
  const std::string_view name = event.len > 0 ? event.name : "";
  if (is_temporary_name(name)) return;
  const std::string path = name.empty() ? dir : join(dir, name);
  const bool is_dir = (event.mask & IN_ISDIR) != 0;
  if ((event.mask & (IN_CREATE | IN_MOVED_TO)) != 0) {
    note("create", path);
    if (is_dir && recursive_) add_new_directory(path);
  }
  if ((event.mask & (IN_MODIFY | IN_CLOSE_WRITE)) != 0) note("modify", path);
  if ((event.mask & IN_ATTRIB) != 0) note("attrib", path);
  if ((event.mask & IN_DELETE) != 0) note("remove", path);
  if ((event.mask & IN_MOVED_FROM) != 0) {
    note("rename", path);
    if (is_dir && recursive_) forget_below(path);
  }
}

// A directory that was moved away would go on reporting under its old name.
void Watcher::forget_below(const std::string& path) {
  for (auto at = paths_.begin(); at != paths_.end();) {
    const bool below = at->second == path || at->second.starts_with(path + "/");
    if (below) ::inotify_rm_watch(inotify_->get(), at->first);
    at = below ? paths_.erase(at) : std::next(at);
  }
}

}  // namespace glovebox::agent
