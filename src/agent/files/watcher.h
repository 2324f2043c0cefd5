// Watcher reports changes below a directory, by inotify(7). Recursive ones follow new directories
// as they come; a file made in the instant before its directory was seen is reported all the same.

#pragma once

#include <sys/inotify.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "agent/common/async_fd.h"
#include "agent/files/file_call.h"
#include "async/task.h"
#include "base/result.h"

namespace glovebox::agent {

struct Change {
  std::string type;     // create modify remove rename attrib overflow error
  std::string path;     // Absolute; of a rename, the old one. Empty for overflow.
  std::string message;  // Of an error: what is not watched, and why.
};

class Watcher {
 public:
  static constexpr std::size_t kDirectoriesMax = 16'384;

  // Fails when `path` itself cannot be watched; what fails below it becomes an error Change.
  static Result<std::unique_ptr<Watcher>> open(const Executor& executor, FileCall call,
                                               const std::string& path, bool recursive);

  // Returns when there may be changes to take, or something is wrong.
  Task<void> wait_readable();
  // What has happened since. Bounded: more than fits is an overflow.
  std::deque<Change> take();
  // True when the watched directory itself is gone: there will be nothing more.
  bool ended() const noexcept { return ended_; }
  void close() noexcept;

 private:
  Watcher(const Executor& executor, FileCall call, UniqueFd fd, bool recursive);
  Result<void> add(int dir_fd, const std::string& path);
  void add_below(int dir_fd, const std::string& path, bool report);
  void add_new_directory(const std::string& path);
  void complain(const std::string& path, const Error& error);
  void note(std::string type, std::string path, std::string message = {});
  void read_events();
  void translate(const inotify_event& event);
  void forget_below(const std::string& path);

  FileCall call_;
  bool recursive_;
  std::unique_ptr<AsyncFd> inotify_;
  std::string top_;
  std::map<int, std::string> paths_;  // By watch descriptor.
  std::deque<Change> changes_;
  bool complained_ = false;
  bool ended_ = false;
};

}  // namespace glovebox::agent
