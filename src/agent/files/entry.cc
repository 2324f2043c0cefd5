#include "agent/files/entry.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>

#include "agent/files/fs_error.h"
#include "base/text.h"
#include "base/time.h"

namespace glovebox::agent {
namespace {

std::string_view type_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG: return "file";
    case S_IFDIR: return "dir";
    case S_IFLNK: return "symlink";
    case S_IFIFO: return "fifo";
    case S_IFSOCK: return "socket";
    case S_IFCHR: return "char";
    default: return "block";
  }
}

std::string_view last_component(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return path.size() == 1 || slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace

void write_entry(JsonWriter& json, Users& users, const std::string& path, const struct stat& st,
                 std::string_view link_target) {
  json.begin('{').key("path").string(path);
  if (!is_utf8(path)) json.key("path_b64").base64(path);
  json.key("name").string(last_component(path)).key("type").string(type_of(st.st_mode));
  char mode[8];
  std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(st.st_mode & 07777));
  json.key("size").number(st.st_size).key("mode").string(mode);
  json.key("uid").number(st.st_uid).key("gid").number(st.st_gid);
  json.key("owner").string(users.name_of(st.st_uid));
  json.key("group").string(users.group_name_of(st.st_gid));
  const std::int64_t ms = st.st_mtim.tv_sec * 1000LL + st.st_mtim.tv_nsec / 1'000'000;
  std::string time;
  append_rfc3339(time, ms);
  json.key("modified_at").string(time);
  if (S_ISLNK(st.st_mode)) json.key("target").string(link_target);
  json.end('}');
}

Result<void> write_entry_at(JsonWriter& json, Users& users, const Place& place) {
  struct stat st{};
  if (::fstatat(place.dir.get(), place.name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
    return fs_error(errno, place.path);
  }
  char target[PATH_MAX];
  ssize_t n = 0;
  if (S_ISLNK(st.st_mode)) {
    n = ::readlinkat(place.dir.get(), place.name.c_str(), target, sizeof target);
    if (n < 0) return fs_error(errno, place.path);
  }
  write_entry(json, users, place.path, st, {target, static_cast<std::size_t>(n)});
  return {};
}

Result<std::string> entry_json(Users& users, const Place& place) {
  JsonWriter json;
  GB_TRY(write_entry_at(json, users, place));
  return std::move(json).take();
}

Result<mode_t> parse_mode(std::string_view text) {
  mode_t mode = 0;
  const bool digits = text.find_first_not_of("01234567") == std::string_view::npos;
  if (!digits || text.empty() || text.size() > 5) {
    return Error(Errc::kInvalid, "\"mode\" must be octal, as in 0644");
  }
  for (const char c : text) mode = mode * 8 + static_cast<mode_t>(c - '0');
  if (mode > 07777) return Error(Errc::kInvalid, "\"mode\" must be at most 7777");
  return mode;
}

}  // namespace glovebox::agent
