#include "os/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>

namespace glovebox::os {
namespace {

constexpr std::size_t kFileBytesMax = 1 << 20;

Result<UniqueFd> open_plain(int dir_fd, const std::string& path, int flags, mode_t mode = 0) {
  GB_TRY_ASSIGN(const int fd, retry("openat", path, [&] {
                  return ::openat(dir_fd, path.c_str(), flags | O_CLOEXEC, mode);
                }));
  return UniqueFd(fd);
}

Result<void> write_whole(int fd, const std::string& path, std::string_view text) {
  while (!text.empty()) {
    GB_TRY_ASSIGN(const ssize_t n,
                  retry("write", path, [&] { return ::write(fd, text.data(), text.size()); }));
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

}  // namespace

Result<std::string> read_file(int dir_fd, const std::string& path) {
  GB_TRY_ASSIGN(const UniqueFd fd, open_plain(dir_fd, path, O_RDONLY));
  std::string text;
  char buffer[4096];
  for (;;) {
    GB_TRY_ASSIGN(const ssize_t n,
                  retry("read", path, [&] { return ::read(fd.get(), buffer, sizeof buffer); }));
    if (n == 0) return text;
    text.append(buffer, static_cast<std::size_t>(n));
    if (text.size() > kFileBytesMax) return Error(Errc::kExhausted, "read " + path + ": too long");
  }
}

Result<void> write_file(int dir_fd, const std::string& path, std::string_view text) {
  GB_TRY_ASSIGN(const UniqueFd fd, open_plain(dir_fd, path, O_WRONLY));
  return write_whole(fd.get(), path, text);
}

Result<void> put_file(int dir_fd, const std::string& path, std::string_view text, mode_t mode) {
  GB_TRY_ASSIGN(const UniqueFd fd,
                open_plain(dir_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode));
  return write_whole(fd.get(), path, text);
}

Result<void> mkdir_if_absent(int dir_fd, const std::string& path, mode_t mode) {
  if (::mkdirat(dir_fd, path.c_str(), mode) == 0 || errno == EEXIST) return {};
  return Error::from_errno(errno, "mkdir " + path);
}

Result<void> make_dirs(const std::string& path, mode_t mode) {
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
    GB_TRY(mkdir_if_absent(AT_FDCWD, path.substr(0, at), 0755));
  }
  return mkdir_if_absent(AT_FDCWD, path, mode);
}

Result<std::vector<std::string>> list_dir(int dir_fd, const std::string& path) {
  GB_TRY_ASSIGN(UniqueFd fd, open_plain(dir_fd, path, O_RDONLY | O_DIRECTORY));
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::fdopendir(fd.get()), ::closedir);
  if (!dir) return Error::from_errno(errno, "fdopendir " + path);
  (void)fd.release();  // closedir owns it now.
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

Result<void> copy_sparse(int from_fd, int to_fd) {
  if (::ioctl(to_fd, FICLONE, from_fd) == 0) return {};
  struct stat st;
  GB_TRY(retry("fstat", "image", [&] { return ::fstat(from_fd, &st); }));
  GB_TRY(retry("ftruncate", "image", [&] { return ::ftruncate(to_fd, st.st_size); }));
  off_t at = 0;
  for (;;) {
    const off_t data = ::lseek(from_fd, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) return {};  // Nothing but holes from here on.
    if (data < 0) return Error::from_errno(errno, "lseek image");
    const off_t hole = ::lseek(from_fd, data, SEEK_HOLE);
    if (hole < 0) return Error::from_errno(errno, "lseek image");
    off_t in = data;
    off_t out = data;
    while (in < hole) {
      GB_TRY_ASSIGN(const ssize_t n, retry("copy_file_range", "image", [&] {
                      return ::copy_file_range(from_fd, &in, to_fd, &out,
                                               static_cast<std::size_t>(hole - in), 0);
                    }));
      if (n == 0) return Error(Errc::kInternal, "copy image: it became shorter");
    }
    at = hole;
  }
}

}  // namespace glovebox::os
