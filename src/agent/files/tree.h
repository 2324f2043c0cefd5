// Tree resolves the paths of one request: from the user's home, or beneath a directory that must
// not be left. The kernel does the walking (openat2), so a link that is swapped meanwhile wins
// nothing; magic links as in /proc/*/fd are never followed.
//
// All members act with the caller's rights: hold an ActingAs.

#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "agent/common/users.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace glovebox::agent {

// The directory that holds a file, and the file's name in it ("." for the directory itself).
struct Place {
  UniqueFd dir;
  std::string name;
  std::string path;  // Absolute, for people and replies.
};

class Tree {
 public:
  // `root`: the directory not to leave; absolute or from the user's home.
  static Result<Tree> open(const User& user, const std::optional<std::string>& root);

  // The last component is followed if it is a link, unless flags say O_NOFOLLOW.
  Result<UniqueFd> open_file(const std::string& path, int flags) const;
  // Nothing is followed at the last component, which need not exist.
  Result<Place> locate(const std::string& path) const;
  // Follows links at the last component, so that `place` is where a write through it lands. The
  // target need not exist.
  Result<Place> locate_target(const std::string& path) const;
  // Makes missing directories above `path`, mode 0755.
  Result<void> make_parents(const std::string& path) const;
  // `path` as an absolute one.
  Result<std::string> absolute(std::string_view path) const;

 private:
  Result<std::string> inside(std::string_view path) const;
  Result<UniqueFd> open_inside(const std::string& path, int flags) const;
  Result<Place> locate_inside(const std::string& path) const;
  std::string shown(const std::string& path) const;

  std::string home_;
  std::string root_path_;  // Empty without a root.
  UniqueFd root_;
};

}  // namespace glovebox::agent
