// The standard streams among coroutines. Their open file descriptions are shared with the shell
// that started us, so they are never made non-blocking: readiness is asked of an epoll set of our
// own, which Asio can wait for.

#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "async/task.h"
#include "base/result.h"

namespace glovebox::cli {

enum class Direction { kRead, kWrite };

// One descriptor, one direction, one operation at a time. Borrows the descriptor.
class StandardStream {
 public:
  StandardStream(const Executor& executor, int fd, Direction direction);
  ~StandardStream();
  StandardStream(const StandardStream&) = delete;
  StandardStream& operator=(const StandardStream&) = delete;

  // At least one byte, or 0 at the end. kUnavailable after cancel().
  Task<Result<std::size_t>> read_some(std::span<char> into);
  // Writes all; a closed pipe is an error whose sys_errno() is EPIPE.
  Task<Result<void>> write_all(std::string_view bytes);
  // Ends the wait that is going on, and every later one.
  void cancel() noexcept;

 private:
  Task<Result<void>> wait_ready();

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace glovebox::cli
