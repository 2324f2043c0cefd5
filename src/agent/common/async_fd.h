// AsyncFd owns a pollable descriptor (pipe, terminal, signalfd, inotify) and waits for it on the
// event loop. It reads and writes nothing: callers use the plain calls on get(), non-blocking.

#pragma once

#include <memory>

#include "async/task.h"
#include "base/deadline.h"
#include "base/unique_fd.h"

namespace glovebox::agent {

class AsyncFd {
 public:
  // `fd` must be non-blocking. One waiter a direction.
  AsyncFd(const Executor& executor, UniqueFd fd);
  AsyncFd(const AsyncFd&) = delete;
  AsyncFd& operator=(const AsyncFd&) = delete;
  ~AsyncFd();

  int get() const noexcept;  // -1 once closed.
  // Return when it can be read or written, has failed, was closed, or (write) the deadline is past.
  Task<void> wait_readable();
  Task<void> wait_writable(Deadline deadline);
  void close() noexcept;  // Wakes who waits.

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace glovebox::agent
