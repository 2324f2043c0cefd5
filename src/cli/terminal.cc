#include "cli/terminal.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace glovebox::cli {

std::optional<WindowSize> window_size(int fd) {
  ::winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return std::nullopt;
  }
  return WindowSize{std::clamp<int>(size.ws_col, 1, 4096), std::clamp<int>(size.ws_row, 1, 4096)};
}

Result<RawMode> RawMode::enter(int fd) {
  ::termios before{};
  if (::tcgetattr(fd, &before) != 0) return Error::from_errno(errno, "tcgetattr");
  ::termios raw = before;
  ::cfmakeraw(&raw);
  if (::tcsetattr(fd, TCSADRAIN, &raw) != 0) return Error::from_errno(errno, "tcsetattr");
  return RawMode(fd, before);
}

RawMode::RawMode(RawMode&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), before_(other.before_) {}

RawMode::~RawMode() {
  if (fd_ >= 0) ::tcsetattr(fd_, TCSADRAIN, &before_);
}

}  // namespace glovebox::cli
