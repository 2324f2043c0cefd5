#include "daemon/process.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "os/files.h"

namespace glovebox::daemon {
namespace {

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T n{};
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (ec != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return n;
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

Result<std::uint64_t> raise_open_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return Error::from_errno(errno, "getrlimit NOFILE");
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return Error::from_errno(errno, "setrlimit NOFILE");
  return static_cast<std::uint64_t>(limit.rlim_cur);
}

Result<void> die_with_parent() {
  const pid_t parent = ::getppid();
  if (::prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) return Error::from_errno(errno, "prctl PDEATHSIG");
  // It may have ended before the call; then no signal will come.
  if (::getppid() != parent || parent == 1) {
    return Error(Errc::kUnavailable, "the parent process has ended");
  }
  return {};
}

Result<User> find_user(const std::string& name) {
  GB_TRY_ASSIGN(const std::string text, os::read_file(AT_FDCWD, "/etc/passwd"));
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string_view> fields = split(line, ':');
    if (fields.size() < 4 || fields[0] != name) continue;
    const auto uid = parse_number<uid_t>(fields[2]);
    const auto gid = parse_number<gid_t>(fields[3]);
    if (uid && gid) return User{name, *uid, *gid};
  }
  return Error(Errc::kNotFound, "no user " + name + " in /etc/passwd");
}

Result<void> become(const User& user) {
  if (::setgroups(0, nullptr) != 0) return Error::from_errno(errno, "setgroups");
  if (::setresgid(user.gid, user.gid, user.gid) != 0) return Error::from_errno(errno, "setresgid");
  if (::setresuid(user.uid, user.uid, user.uid) != 0) return Error::from_errno(errno, "setresuid");
  uid_t ids[3];
  if (::getresuid(&ids[0], &ids[1], &ids[2]) != 0) return Error::from_errno(errno, "getresuid");
  for (const uid_t id : ids) {
    if (id != user.uid) return Error(Errc::kInternal, "setresuid: done, yet not in force");
  }
  if (user.uid != 0 && ::setuid(0) == 0) {
    return Error(Errc::kInternal, "setresuid: root could be had back");
  }
  return {};
}

Result<void> prepare_dir(const std::string& path, mode_t mode, const std::optional<User>& owner) {
  struct stat st{};
  if (::stat(path.c_str(), &st) == 0) {
    if (!S_ISDIR(st.st_mode)) return Error(Errc::kInvalid, path + " is not a directory");
    // What was there is left as it is: a mistyped path must not change who owns /var.
    if (owner && st.st_uid != owner->uid) {
      return Error(Errc::kDenied, path + " does not belong to " + owner->name + ": chown it first");
    }
    return {};
  }
  GB_TRY(os::make_dirs(path, mode));
  if (owner && ::chown(path.c_str(), owner->uid, owner->gid) != 0) {
    return Error::from_errno(errno, "chown " + path);
  }
  return {};
}

Result<void> write_private_file(const std::string& path, std::string_view text) {
  const std::string temporary = path + ".new";
  if (::unlink(temporary.c_str()) != 0 && errno != ENOENT) {
    return Error::from_errno(errno, "unlink " + temporary);
  }
  const UniqueFd fd(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return Error::from_errno(errno, "create " + temporary);
  const ssize_t n = ::write(fd.get(), text.data(), text.size());
  if (n < 0) return Error::from_errno(errno, "write " + temporary);
  if (static_cast<std::size_t>(n) != text.size()) {
    return Error(Errc::kExhausted, "write " + temporary + ": only a part was taken");
  }
  if (::fsync(fd.get()) != 0) return Error::from_errno(errno, "fsync " + temporary);
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    return Error::from_errno(errno, "rename " + temporary);
  }
  return {};
}

std::vector<UniqueFd> inherited_listeners() {
  constexpr int kFirst = 3;  // SD_LISTEN_FDS_START
  constexpr int kMost = 16;
  const char* pid_text = ::getenv("LISTEN_PID");
  const char* count_text = ::getenv("LISTEN_FDS");
  std::vector<UniqueFd> fds;
  if (pid_text != nullptr && count_text != nullptr && parse_number<pid_t>(pid_text) == ::getpid()) {
    const int count = parse_number<int>(count_text).value_or(0);
    for (int fd = kFirst; fd < kFirst + count && fd < kFirst + kMost; ++fd) {
      // Ours from now on: no child may have it.
      if (::fcntl(fd, F_SETFD, FD_CLOEXEC) == 0) fds.emplace_back(fd);
    }
  }
  ::unsetenv("LISTEN_PID");
  ::unsetenv("LISTEN_FDS");
  ::unsetenv("LISTEN_FDNAMES");
  return fds;
}

void notify_supervisor(std::string_view state) {
  const char* path = ::getenv("NOTIFY_SOCKET");
  if (path == nullptr || (path[0] != '/' && path[0] != '@')) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t size = std::strlen(path);
  if (size >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, path, size);
  if (path[0] == '@') address.sun_path[0] = '\0';  // An abstract socket; see unix(7).
  const UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return;
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + size);
  ::sendto(fd.get(), state.data(), state.size(), MSG_NOSIGNAL,
           reinterpret_cast<const sockaddr*>(&address), length);
}

}  // namespace glovebox::daemon
