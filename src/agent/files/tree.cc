#include "agent/files/tree.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "agent/files/fs_error.h"

namespace glovebox::agent {
namespace {

constexpr int kLinksMax = 40;  // As the kernel's own limit.
constexpr int kTriesMax = 32;

Result<UniqueFd> open_at(int dir_fd, const std::string& path, int flags, std::uint64_t resolve,
                         const std::string& shown) {
  ::open_how how{};
  how.flags = static_cast<std::uint64_t>(flags) | O_CLOEXEC;
  how.resolve = resolve | RESOLVE_NO_MAGICLINKS;
  for (int i = 0;; ++i) {
    const long fd = ::syscall(SYS_openat2, dir_fd, path.c_str(), &how, sizeof how);
    if (fd >= 0) return UniqueFd(static_cast<int>(fd));
    // EAGAIN: something was renamed meanwhile and the kernel cannot tell that ".." stayed beneath.
    if (errno == EINTR || (errno == EAGAIN && i < kTriesMax)) continue;
    return fs_error(errno, shown);
  }
}

void strip_slashes(std::string& path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
}

Result<void> check(std::string_view path) {
  if (path.empty()) return Error(Errc::kInvalid, "\"path\" must not be empty");
  if (path.size() >= PATH_MAX) return Error(Errc::kInvalid, "\"path\" is longer than 4095 bytes");
  if (path.find('\0') != std::string_view::npos) {
    return Error(Errc::kInvalid, "\"path\" must not contain NUL");
  }
  return {};
}

std::string join(std::string_view dir, std::string_view name) {
  std::string path(dir);
  if (!path.empty() && path.back() != '/') path += '/';
  return path.append(name);
}

}  // namespace

Result<Tree> Tree::open(const User& user, const std::optional<std::string>& root) {
  Tree tree;
  tree.home_ = user.home;
  if (!root) return tree;
  GB_TRY(check(*root));
  std::string path = root->starts_with('/') ? *root : join(user.home, *root);
  strip_slashes(path);
  GB_TRY_ASSIGN(tree.root_, open_at(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0, path));
  tree.root_path_ = std::move(path);
  return tree;
}

// What the kernel is to be asked: relative to root_ if there is one, else absolute.
Result<std::string> Tree::inside(std::string_view path) const {
  GB_TRY(check(path));
  std::string text(path);
  if (root_path_.empty()) {
    if (!text.starts_with('/')) text = join(home_, text);
    strip_slashes(text);
    return text;
  }
  if (text.starts_with('/')) {
    // An absolute path is taken if it says itself that it is beneath.
    const std::string prefix = root_path_ == "/" ? root_path_ : root_path_ + "/";
    if (text != root_path_ && !text.starts_with(prefix)) return fs_error(EXDEV, path);
    text.erase(0, std::min(text.size(), prefix.size()));
  }
  while (text.starts_with('/')) text.erase(0, 1);
  strip_slashes(text);
  return text.empty() ? "." : text;
}

std::string Tree::shown(const std::string& path) const {
  if (root_path_.empty()) return path;
  return path == "." ? root_path_ : join(root_path_, path);
}

Result<std::string> Tree::absolute(std::string_view path) const {
  GB_TRY_ASSIGN(const std::string text, inside(path));
  return shown(text);
}

Result<UniqueFd> Tree::open_inside(const std::string& path, int flags) const {
  if (root_path_.empty()) return open_at(AT_FDCWD, path, flags, 0, path);
  return open_at(root_.get(), path, flags, RESOLVE_BENEATH, shown(path));
}

Result<UniqueFd> Tree::open_file(const std::string& path, int flags) const {
  GB_TRY_ASSIGN(const std::string text, inside(path));
  return open_inside(text, flags);
}

Result<Place> Tree::locate_inside(const std::string& path) const {
  Place place;
  place.path = shown(path);
  const std::size_t slash = path.rfind('/');
  std::string parent = slash == std::string::npos ? "." : path.substr(0, slash);
  if (slash == 0) parent = "/";
  place.name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (place.name.empty() || place.name == "." || place.name == "..") {
    parent = path;
    place.name = ".";
  }
  GB_TRY_ASSIGN(place.dir, open_inside(parent, O_PATH | O_DIRECTORY));
  return place;
}

Result<Place> Tree::locate(const std::string& path) const {
  GB_TRY_ASSIGN(const std::string text, inside(path));
  return locate_inside(text);
}

Result<Place> Tree::locate_target(const std::string& path) const {
  GB_TRY_ASSIGN(std::string text, inside(path));
  for (int i = 0; i < kLinksMax; ++i) {
    GB_TRY_ASSIGN(Place place, locate_inside(text));
    char target[PATH_MAX];
    const ssize_t n = ::readlinkat(place.dir.get(), place.name.c_str(), target, sizeof target);
    if (n < 0) return place;  // Not a link, or not there.
    // On by its text, from the top, so that each step is walked under the same rules.
    const std::string_view link(target, static_cast<std::size_t>(n));
    if (link.starts_with('/')) {
      if (!root_path_.empty()) return fs_error(EXDEV, place.path);
      text = link;
    } else {
      const std::size_t slash = text.rfind('/');
      const std::string dir = slash == std::string::npos ? "" : text.substr(0, slash + 1);
      text = dir + std::string(link);
    }
    if (text.size() >= PATH_MAX) return fs_error(ENAMETOOLONG, place.path);
    strip_slashes(text);
  }
  return fs_error(ELOOP, shown(text));
}

Result<void> Tree::make_parents(const std::string& path) const {
  GB_TRY_ASSIGN(const std::string text, inside(path));
  for (std::size_t slash = text.find('/', 1); slash != std::string::npos;
       slash = text.find('/', slash + 1)) {
    const std::string prefix = text.substr(0, slash);
    Result<UniqueFd> there = open_inside(prefix, O_PATH | O_DIRECTORY);
    if (there) continue;
    if (there.error().sys_errno() != ENOENT) return std::move(there).error();
    GB_TRY_ASSIGN(const Place place, locate_inside(prefix));
    if (::mkdirat(place.dir.get(), place.name.c_str(), 0755) != 0 && errno != EEXIST) {
      return fs_error(errno, place.path);
    }
  }
  return {};
}

}  // namespace glovebox::agent
