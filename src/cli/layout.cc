#include "cli/layout.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <optional>
#include <sstream>
#include <vector>

#include "os/files.h"
#include "os/sys.h"

namespace glovebox::cli {
namespace {

std::optional<std::uint32_t> number(const std::string& text) {
  std::uint32_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return n;
}

struct Owner {
  uid_t uid;
  gid_t gid;
  mode_t mode;
};

// By descriptor, so that what is checked is what is changed.
Result<void> prepare_dir(const std::string& path, const Owner& owner, uid_t other_owner) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return Error::from_errno(errno, "make directory " + path);
  }
  Result<UniqueFd> dir =
      os::openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, os::Resolve::kAnywhere);
  if (!dir) return std::move(dir).context("directory " + path).error();
  struct stat status{};
  if (::fstat(dir->get(), &status) != 0) return Error::from_errno(errno, "fstat " + path);
  if (status.st_uid != owner.uid && status.st_uid != other_owner) {
    return Error(Errc::kDenied, path + " belongs to user id " + std::to_string(status.st_uid) +
                                    ": not touching it; move it away or name another directory");
  }
  if (::fchown(dir->get(), owner.uid, owner.gid) != 0 || ::fchmod(dir->get(), owner.mode) != 0) {
    return Error::from_errno(errno, "change the owner of " + path);
  }
  return {};
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

}  // namespace

Identity daemon_identity(const std::string& passwd_file) {
  const Identity fallback{kDaemonId, kDaemonId};
  const Result<std::string> text = os::read_file(AT_FDCWD, passwd_file);
  if (!text) return fallback;
  std::istringstream in(*text);
  for (std::string line; std::getline(in, line);) {
    std::vector<std::string> fields;
    std::istringstream parts(line);
    for (std::string field; std::getline(parts, field, ':');) fields.push_back(field);
    if (fields.size() < 4 || fields[0] != kDaemonUser) continue;
    const std::optional<std::uint32_t> uid = number(fields[2]);
    const std::optional<std::uint32_t> gid = number(fields[3]);
    // A user of that name that is root would undo the point of it.
    if (uid && gid && *uid != 0) return Identity{*uid, *gid};
  }
  return fallback;
}

Result<void> prepare_layout(const Layout& layout, const Identity& daemon) {
  const uid_t self = ::geteuid();
  GB_TRY(os::make_dirs(parent_of(layout.data_dir), 0755));
  GB_TRY(os::make_dirs(parent_of(layout.run_dir), 0755));
  const gid_t group = ::getegid();
  GB_TRY(prepare_dir(layout.data_dir, {self, group, 0755}, self));
  GB_TRY(prepare_dir(layout.warden_state(), {self, group, 0700}, self));
  GB_TRY(prepare_dir(layout.daemon_data(), {daemon.uid, daemon.gid, 0700}, self));
  GB_TRY(prepare_dir(layout.run_dir, {self, daemon.gid, 01775}, self));
  GB_TRY(prepare_dir(layout.run_dir + "/warden", {self, group, 0755}, self));
  return {};
}

}  // namespace glovebox::cli
