// The terminal that a person sits at.

#pragma once

#include <termios.h>

#include <optional>

#include "base/result.h"

namespace glovebox::cli {

struct WindowSize {
  int cols = 80;
  int rows = 24;
};

// Empty when `fd` is no terminal or does not know its size.
std::optional<WindowSize> window_size(int fd);

// From construction to destruction the terminal passes every key as it is typed.
class RawMode {
 public:
  static Result<RawMode> enter(int fd);
  RawMode(RawMode&& other) noexcept;
  RawMode& operator=(RawMode&&) = delete;
  ~RawMode();

 private:
  RawMode(int fd, const ::termios& before) : fd_(fd), before_(before) {}
  int fd_;
  ::termios before_;
};

}  // namespace glovebox::cli
