// Stream's inside, for the parts of this folder that must not pay for a coroutine a read.

#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <optional>

#include "base/unique_fd.h"
#include "net/loop.h"
#include "net/stream.h"

namespace glovebox::net {

// What a call that does not wait says instead of a number of bytes.
inline constexpr ssize_t kWouldBlock = -1;
inline constexpr ssize_t kFailed = -2;  // errno is in Stream::Impl::error.

// Takes `written` bytes off the front of `parts`. Returns what is left of them.
struct Parts {
  ::iovec* at;
  std::size_t count;
};
Parts advance(Parts parts, std::size_t written) noexcept;

struct Stream::Impl {
  Impl(Loop& l, UniqueFd f) : fd(std::move(f)), watch(l), loop(l) {}

  UniqueFd fd;
  Watch watch;  // After `fd`: leaves the epoll set before the descriptor is closed.
  Loop& loop;
  int error = 0;
  int busy = 0;  // Operations in a row that did not have to wait.

  // 0 is the end of the stream.
  ssize_t try_read(char* into, std::size_t size) noexcept;
  // May write less than all of it.
  ssize_t try_write(const ::iovec* parts, std::size_t count) noexcept;

  // Waits after kWouldBlock.
  Task<Wake> readable(Deadline deadline) { return watch.wait_readable(deadline); }
  Task<Wake> writable(Deadline deadline) { return watch.wait_writable(deadline); }

  // True now and then: the caller should co_await Loop::yield(), lest one busy connection keep
  // the thread for itself.
  bool owes_yield() noexcept {
    if (busy < kBusyMax) return false;
    busy = 0;
    return true;
  }

  // Writes until all is written, or has to wait: then it returns nothing, and `parts` is what is
  // left. Costs no coroutine when the socket has room, as it mostly has.
  std::optional<Result<void>> write_now(Parts& parts);
  // Writes the rest of `parts`, which it uses up.
  Task<Result<void>> write_rest(Parts& parts, Deadline deadline);
  // The same, but gives up only when the peer takes nothing for as long as `idle`.
  Task<Result<void>> write_rest_idle(Parts& parts, Clock::duration idle);

  void close() noexcept;

  static constexpr int kBusyMax = 64;
};

}  // namespace glovebox::net
