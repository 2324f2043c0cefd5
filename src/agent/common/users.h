// The sandbox's own users: /etc/passwd and /etc/group as they are now. Sandboxed programs may have
// written them, so they are read with care (bounded, plain files only) and decide nothing but
// which ids a command gets.

#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace glovebox::agent {

struct User {
  std::string name;  // Empty for an id without a name.
  uid_t uid = 0;
  gid_t gid = 0;
  std::string home = "/";
  std::string shell = "/bin/sh";
  std::vector<gid_t> groups;  // Supplementary, without `gid`. At most 64.
};

class Users {
 public:
  explicit Users(std::string passwd_path = "/etc/passwd", std::string group_path = "/etc/group");

  // A name, "1000" or "1000:1000". An id need not be listed; its group is then the same number.
  // kInvalid for an unknown name.
  Result<User> find(std::string_view who);

  std::optional<uid_t> uid_of(std::string_view name_or_number);
  std::optional<gid_t> gid_of(std::string_view name_or_number);
  std::string name_of(uid_t uid);  // Empty when there is none.
  std::string group_name_of(gid_t gid);

 private:
  struct Group {
    std::string name;
    gid_t gid;
    std::string members;  // "a,b", as in the file.
  };
  // What tells one state of a file from another.
  struct Stamp {
    long long ino = 0, size = -1, seconds = 0, nanos = 0;
    bool operator==(const Stamp&) const = default;
  };
  static Stamp stamp_of(const std::string& path);
  void refresh();
  void read_passwd();
  void read_group();

  std::string passwd_path_;
  std::string group_path_;
  Stamp passwd_stamp_;
  Stamp group_stamp_;
  std::vector<User> users_;
  std::vector<Group> groups_;
};

}  // namespace glovebox::agent
