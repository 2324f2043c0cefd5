#include "agent/common/small_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "os/sys.h"

namespace glovebox::agent {

Result<std::string> read_small_file(int dir_fd, const char* path, std::size_t bytes_max) {
  GB_TRY_ASSIGN(UniqueFd fd, os::openat(dir_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0,
                                        os::Resolve::kAnywhere));
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0) return Error::from_errno(errno, path);
  if (!S_ISREG(st.st_mode)) return Error(Errc::kInvalid, std::string(path) + " is no plain file");
  std::string text;
  std::size_t used = 0;
  for (;;) {
    // Kernel files say size 0, so the size is found by reading.
    text.resize(used + 4096);
    GB_TRY_ASSIGN(const ssize_t n, os::retry("read", path, [&] {
                    return ::read(fd.get(), text.data() + used, 4096);
                  }));
    used += static_cast<std::size_t>(n);
    if (n == 0 || used > bytes_max) break;
  }
  if (used > bytes_max) return Error(Errc::kExhausted, std::string(path) + " is too long");
  text.resize(used);
  return text;
}

Result<void> write_kernel_file(int dir_fd, const char* path, std::string_view text) {
  GB_TRY_ASSIGN(UniqueFd fd,
                os::openat(dir_fd, path, O_WRONLY | O_NOCTTY, 0, os::Resolve::kAnywhere));
  GB_TRY(os::retry("write", path, [&] { return ::write(fd.get(), text.data(), text.size()); }));
  return {};
}

}  // namespace glovebox::agent
