#include "agent/files/listing.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <queue>
#include <utility>
#include <vector>

#include "agent/common/json_writer.h"
#include "agent/common/yield.h"
#include "agent/files/directory.h"
#include "agent/files/entry.h"
#include "agent/files/fs_error.h"
#include "async/coro.h"
#include "base/base64.h"

namespace glovebox::agent {
namespace {

constexpr int kNamesInARowMax = 4096;
constexpr int kEntriesInARowMax = 64;

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    parts.emplace_back(path.substr(0, slash));
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  }
  return parts;
}

// The `limit` least names that are not before `from`, sorted.
Task<std::vector<std::string>> least_names(Directory& dir, std::string from, std::size_t limit) {
  std::priority_queue<std::string> greatest;
  int in_a_row = 0;
  while (const std::optional<Directory::Item> item = dir.next()) {
    if (item->name >= from && (greatest.size() < limit || item->name < greatest.top())) {
      greatest.emplace(item->name);
      if (greatest.size() > limit) greatest.pop();
    }
    if (++in_a_row == kNamesInARowMax) {
      in_a_row = 0;
      co_await yield_to_others();
    }
  }
  std::vector<std::string> names(greatest.size());
  for (std::size_t i = names.size(); i > 0; --i) {
    names[i - 1] = greatest.top();
    greatest.pop();
  }
  co_return names;
}

class Lister {
 public:
  Lister(FileCall& call, Users& users, ListOptions options)
      : call_(call), users_(users), options_(std::move(options)) {}

  Task<Result<std::string>> list(std::string path) {
    GB_CO_TRY(open_top(path));
    json_.begin('{').key("entries").begin('[');
    while (!levels_.empty() && !full_) {
      Level& level = levels_.back();
      if (!level.read) {
        // One more than fits, to know that there is more, and the one that the last page ended
        // with.
        level.names = co_await least_names(level.dir, level.from, options_.limit - count_ + 2);
        level.read = true;
      }
      GB_CO_TRY(some_entries());
      co_await yield_to_others();
    }
    json_.end(']').key("next_cursor");
    full_ ? json_.string(to_base64url(last_)) : json_.null();
    json_.end('}');
    co_return std::move(json_).take();
  }

 private:
  struct Level {
    Directory dir;
    std::string prefix;  // "" or "a/b/"
    std::string from;    // Names before it were on an earlier page.
    std::vector<std::string> names;
    std::size_t at = 0;
    bool read = false;
  };

  Result<void> open_top(const std::string& path) {
    GB_TRY_ASSIGN(const ActingAs rights, call_.act());
    GB_TRY_ASSIGN(top_, call_.tree().absolute(path));
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NONBLOCK;
    GB_TRY_ASSIGN(UniqueFd fd, call_.tree().open_file(path, kFlags));
    if (!options_.cursor.empty()) {
      const std::optional<std::string> last = from_base64url(options_.cursor);
      if (!last) return Error(Errc::kInvalid, "\"cursor\" is not one of ours");
      resume_ = split_path(*last);
      if (resume_.size() > options_.depth) {
        return Error(Errc::kInvalid, "\"cursor\" is of a listing with more depth");
      }
    }
    GB_TRY_ASSIGN(Directory dir, Directory::adopt(std::move(fd)));
    push(std::move(dir), "");
    return {};
  }

  void push(Directory dir, std::string prefix) {
    const std::size_t depth = levels_.size();
    std::string from = depth < resume_.size() ? resume_[depth] : "";
    levels_.push_back({std::move(dir), std::move(prefix), std::move(from), {}, 0, false});
  }

  // Emits until the page is full, the level is done, a deeper level begins, or a turn is over.
  Result<void> some_entries() {
    GB_TRY_ASSIGN(const ActingAs rights, call_.act());
    const std::size_t depth = levels_.size();
    for (int i = 0; i < kEntriesInARowMax && levels_.size() == depth; ++i) {
      Level& level = levels_.back();
      if (level.at == level.names.size()) {
        levels_.pop_back();
        // What is left of the cursor belongs to a branch that is behind us now.
        resume_.clear();
        return {};
      }
      const std::string name = level.names[level.at++];
      const bool seen = depth <= resume_.size() && name == resume_[depth - 1];
      if (!seen) resume_.clear();
      if (!seen && count_ == options_.limit) {
        full_ = true;
        return {};
      }
      visit(level, name, seen);
    }
    return {};
  }

  void visit(Level& level, const std::string& name, bool seen) {
    struct stat st{};
    if (::fstatat(level.dir.fd(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return;
    const std::string relative = level.prefix + name;
    if (!seen) {
      emit(level, name, relative, st);
      last_ = relative;
      ++count_;
    }
    if (!S_ISDIR(st.st_mode) || levels_.size() >= options_.depth) return;
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    UniqueFd fd(::openat(level.dir.fd(), name.c_str(), kFlags));
    if (!fd) return;
    Result<Directory> dir = Directory::adopt(std::move(fd));
    if (dir) push(std::move(*dir), relative + "/");
  }

  void emit(const Level& level, const std::string& name, const std::string& relative,
            const struct stat& st) {
    std::string target;
    if (S_ISLNK(st.st_mode)) {
      char text[PATH_MAX];
      const ssize_t n = ::readlinkat(level.dir.fd(), name.c_str(), text, sizeof text);
      if (n > 0) target.assign(text, static_cast<std::size_t>(n));
    }
    const std::string path = top_ == "/" ? "/" + relative : top_ + "/" + relative;
    write_entry(json_, users_, path, st, target);
  }

  FileCall& call_;
  Users& users_;
  ListOptions options_;
  std::string top_;
  std::vector<std::string> resume_;  // The path at which the last page ended.
  std::vector<Level> levels_;
  JsonWriter json_;
  std::string last_;
  std::size_t count_ = 0;
  bool full_ = false;
};

}  // namespace

Task<Result<std::string>> list_directory(FileCall& call, Users& users, std::string path,
                                         ListOptions options) {
  Lister lister(call, users, std::move(options));
  Result<std::string> listed = co_await lister.list(std::move(path));
  co_return listed;
}

}  // namespace glovebox::agent
