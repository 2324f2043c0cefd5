// UniqueFd owns one file descriptor and closes it exactly once.
//
// A raw `int fd` in this code base always means "borrowed": the callee must not close it.
// Passing a UniqueFd by value means "I give it to you".

#pragma once

#include <utility>

namespace glovebox {

class [[nodiscard]] UniqueFd {
 public:
  UniqueFd() noexcept = default;
  explicit UniqueFd(int fd) noexcept : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    reset(other.release());
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }

  // Closes what is held now, then holds `fd`. Keeps errno, so it is safe on error paths.
  void reset(int fd = -1) noexcept;

 private:
  int fd_ = -1;
};

}  // namespace glovebox
