#include "agent/common/users.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>

#include "agent/common/small_file.h"

namespace glovebox::agent {
namespace {

constexpr std::size_t kFileBytesMax = 1 << 20;
constexpr std::size_t kEntriesMax = 4096;
constexpr std::size_t kGroupsMax = 64;

// The id -1 means "leave as it is" to setresuid and friends: never a user.
std::optional<std::uint32_t> parse_id(std::string_view text) {
  std::uint32_t id = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (ec != std::errc() || end != text.data() + text.size() || id == 0xffffffff) {
    return std::nullopt;
  }
  return id;
}

std::vector<std::string_view> split(std::string_view line, char by) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t at = line.find(by);
    parts.push_back(line.substr(0, at));
    if (at == std::string_view::npos) return parts;
    line.remove_prefix(at + 1);
  }
}

template <class F>
void for_each_line(const std::string& path, F f) {
  Result<std::string> text = read_small_file(AT_FDCWD, path.c_str(), kFileBytesMax);
  if (!text) return;
  std::size_t count = 0;
  for (const std::string_view line : split(*text, '\n')) {
    if (line.empty() || line[0] == '#' || line.find('\0') != std::string_view::npos) continue;
    if (++count > kEntriesMax) return;
    f(split(line, ':'));
  }
}

bool names(std::string_view members, std::string_view user) {
  for (const std::string_view member : split(members, ',')) {
    if (member == user) return true;
  }
  return false;
}

}  // namespace

Users::Users(std::string passwd_path, std::string group_path)
    : passwd_path_(std::move(passwd_path)), group_path_(std::move(group_path)) {}

Users::Stamp Users::stamp_of(const std::string& path) {
  struct stat st{};
  if (::stat(path.c_str(), &st) != 0) return {};
  return {static_cast<long long>(st.st_ino), st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec};
}

void Users::refresh() {
  const Stamp passwd = stamp_of(passwd_path_);
  if (passwd != passwd_stamp_) {
    passwd_stamp_ = passwd;
    read_passwd();
  }
  const Stamp group = stamp_of(group_path_);
  if (group != group_stamp_) {
    group_stamp_ = group;
    read_group();
  }
}

void Users::read_passwd() {
  users_.clear();
  for_each_line(passwd_path_, [this](const std::vector<std::string_view>& parts) {
    if (parts.size() < 7 || parts[0].empty()) return;
    const auto uid = parse_id(parts[2]);
    const auto gid = parse_id(parts[3]);
    if (!uid || !gid) return;
    User user;
    user.name = parts[0];
    user.uid = *uid;
    user.gid = *gid;
    if (parts[5].starts_with('/')) user.home = parts[5];
    if (parts[6].starts_with('/')) user.shell = parts[6];
    users_.push_back(std::move(user));
  });
}

void Users::read_group() {
  groups_.clear();
  for_each_line(group_path_, [this](const std::vector<std::string_view>& parts) {
    if (parts.size() < 4 || parts[0].empty()) return;
    const auto gid = parse_id(parts[2]);
    if (gid) groups_.push_back({std::string(parts[0]), *gid, std::string(parts[3])});
  });
}

Result<User> Users::find(std::string_view who) {
  refresh();
  const auto parts = split(who, ':');
  const auto uid = parse_id(parts[0]);
  const auto found = std::find_if(users_.begin(), users_.end(), [&](const User& user) {
    return uid ? user.uid == *uid : user.name == who;
  });
  User user;
  if (found != users_.end()) {
    user = *found;
  } else if (uid) {
    user.uid = user.gid = *uid;
  } else {
    return Error(Errc::kInvalid, "there is no user \"" + std::string(who) + "\"");
  }
  if (uid && parts.size() == 2) {
    const auto gid = parse_id(parts[1]);
    if (!gid) return Error(Errc::kInvalid, "\"" + std::string(who) + "\" is not UID:GID");
    user.gid = *gid;
  } else if (parts.size() > 1) {
    return Error(Errc::kInvalid, "there is no user \"" + std::string(who) + "\"");
  }
  if (user.name.empty()) return user;
  for (const Group& group : groups_) {
    if (user.groups.size() == kGroupsMax) break;
    if (group.gid != user.gid && names(group.members, user.name)) user.groups.push_back(group.gid);
  }
  return user;
}

std::optional<uid_t> Users::uid_of(std::string_view name_or_number) {
  if (const auto id = parse_id(name_or_number)) return *id;
  refresh();
  for (const User& user : users_) {
    if (user.name == name_or_number) return user.uid;
  }
  return std::nullopt;
}

std::optional<gid_t> Users::gid_of(std::string_view name_or_number) {
  if (const auto id = parse_id(name_or_number)) return *id;
  refresh();
  for (const Group& group : groups_) {
    if (group.name == name_or_number) return group.gid;
  }
  return std::nullopt;
}

std::string Users::name_of(uid_t uid) {
  refresh();
  for (const User& user : users_) {
    if (user.uid == uid) return user.name;
  }
  return {};
}

std::string Users::group_name_of(gid_t gid) {
  refresh();
  for (const Group& group : groups_) {
    if (group.gid == gid) return group.name;
  }
  return {};
}

}  // namespace glovebox::agent
