#include "base/unique_fd.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace glovebox {

void UniqueFd::reset(int fd) noexcept {
  const int old = std::exchange(fd_, fd);
  if (old < 0) return;
  const int saved_errno = errno;
  // Never retry on EINTR: on Linux the number is already free then, and another thread may own it.
  if (::close(old) != 0 && errno == EBADF) {
    // Somebody else closed our descriptor. Going on could close a stranger's file next.
    std::fprintf(stderr, "UniqueFd: descriptor %d was closed twice\n", old);
    std::abort();
  }
  errno = saved_errno;
}

}  // namespace glovebox
