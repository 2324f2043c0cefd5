#include "net/mover.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>

#include "async/coro.h"

namespace glovebox::net {
namespace {

// splice() has no MSG_NOSIGNAL: a peer that hangs up must not end this process. The signal is
// sent to the thread that writes, so that it can be blocked around the call and taken off.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    ::sigemptyset(&sigpipe_);
    ::sigaddset(&sigpipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &sigpipe_, &before_);
  }
  ~WithoutSigpipe() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  WithoutSigpipe(const WithoutSigpipe&) = delete;

  void discard() {
    if (::sigismember(&before_, SIGPIPE) == 1) return;  // Blocked by the program: its affair.
    const ::timespec now{};
    ::sigtimedwait(&sigpipe_, nullptr, &now);
  }

 private:
  ::sigset_t sigpipe_{};
  ::sigset_t before_{};
};

// A pipe from the pool for the length of one burst.
class Lease {
 public:
  explicit Lease(Loop& loop) : loop_(loop) {}
  ~Lease() {
    if (taken_) loop_.give_pipe(pipe_, inside == 0);
  }
  Lease(const Lease&) = delete;

  Result<void> take() {
    if (taken_) return {};
    GB_TRY_ASSIGN(pipe_, loop_.take_pipe());
    taken_ = true;
    return {};
  }
  void give_back() {
    if (taken_ && inside == 0) loop_.give_pipe(pipe_, true);
    if (inside == 0) taken_ = false;
  }
  const Loop::Pipe& pipe() const noexcept { return pipe_; }
  std::size_t inside = 0;

 private:
  Loop& loop_;
  Loop::Pipe pipe_;
  bool taken_ = false;
};

// A block from the pool, only held while there is something in it.
class Block {
 public:
  explicit Block(Loop& loop) : loop_(loop) {}
  ~Block() { give_back(); }
  Block(const Block&) = delete;
  char* get() {
    if (!data_) data_ = loop_.take_block();
    return data_.get();
  }
  void give_back() {
    if (data_) loop_.give_block(std::move(data_));
  }

 private:
  Loop& loop_;
  std::unique_ptr<char[]> data_;
};

constexpr unsigned kFlags = SPLICE_F_NONBLOCK | SPLICE_F_MOVE;

ssize_t splice_retrying(int from, int to, std::size_t size) {
  for (;;) {
    const ssize_t n = ::splice(from, nullptr, to, nullptr, size, kFlags);
    if (n >= 0 || errno != EINTR) return n;
  }
}

ssize_t splice_out(int pipe, int socket, std::size_t size, int& error) {
  WithoutSigpipe guard;
  const ssize_t n = splice_retrying(pipe, socket, size);
  error = errno;
  // Also when some went through: the signal may be for the rest.
  if (n < static_cast<ssize_t>(size)) guard.discard();
  return n;
}

class Mover {
 public:
  Mover(Stream::Impl& from, Stream::Impl& to, std::uint64_t bytes_max, bool bulk,
        Patience& patience)
      : from_(from),
        to_(to),
        left_(bytes_max),
        always_bulk_(bulk),
        bulk_(bulk),
        patience_(patience),
        pipe_(from.loop),
        block_(from.loop) {}

  Task<Moved> run() {
    while (left_ > 0 && !ended_) {
      if (from_.owes_yield()) co_await Loop::yield();
      if (!from_.fd) {
        fail(Moved::End::kFromFailed, Error(Errc::kUnavailable, "read: closed"));
      } else if (bulk_) {
        co_await splice_once();
      } else {
        co_await copy_once();
      }
    }
    co_return std::move(moved_);
  }

 private:
  void fail(Moved::End end, Error error) {
    moved_.end = end;
    moved_.error = std::move(error);
    ended_ = true;
  }
  void end_of_input() {
    moved_.end = Moved::End::kFromEnded;
    ended_ = true;
  }
  void count(std::size_t n) {
    moved_.bytes += n;
    left_ -= n;
    patience_.renew();
  }

  // True when `from` can be read again.
  Task<void> wait_readable() {
    from_.watch.readable = false;
    from_.busy = 0;
    pipe_.give_back();
    block_.give_back();
    for (;;) {
      const Wake wake = co_await from_.readable(patience_.until());
      if (wake == Wake::kTimeout && !patience_.over()) continue;
      if (wake != Wake::kReady) fail(Moved::End::kFromFailed, wake_error(wake, "read"));
      co_return;
    }
  }

  Task<void> wait_writable() {
    to_.busy = 0;
    for (;;) {
      const Wake wake = co_await to_.writable(patience_.until());
      if (wake == Wake::kTimeout && !patience_.over()) continue;
      if (wake != Wake::kReady) fail(Moved::End::kToFailed, wake_error(wake, "write"));
      co_return;
    }
  }

  Task<void> copy_once() {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, Loop::kBlockBytes));
    ssize_t n = kWouldBlock;
    if (from_.watch.readable) n = from_.try_read(block_.get(), size);
    if (n == kWouldBlock) {
      co_await wait_readable();
      co_return;
    }
    if (n == 0) co_return end_of_input();
    if (n == kFailed) {
      co_return fail(Moved::End::kFromFailed, Error::from_errno(from_.error, "read"));
    }
    const auto got = static_cast<std::size_t>(n);
    ::iovec part{block_.get(), got};
    Parts parts{&part, 1};
    while (parts.count > 0 && !ended_) {
      if (!to_.fd) co_return fail(Moved::End::kToFailed, Error(Errc::kUnavailable, "closed"));
      const ssize_t m = to_.try_write(parts.at, parts.count);
      if (m == kFailed) {
        co_return fail(Moved::End::kToFailed, Error::from_errno(to_.error, "write"));
      }
      if (m == kWouldBlock) {
        co_await wait_writable();
        continue;
      }
      count(static_cast<std::size_t>(m));
      parts = advance(parts, static_cast<std::size_t>(m));
    }
    // A full block: there is more where this came from.
    bulk_ = can_splice_ && got == Loop::kBlockBytes;
  }

  Task<void> splice_once() {
    if (!from_.watch.readable) {
      co_await wait_readable();
      co_return;
    }
    if (!pipe_.take()) {
      can_splice_ = bulk_ = false;
      co_return;
    }
    const auto size =
        static_cast<std::size_t>(std::min<std::uint64_t>(left_, pipe_.pipe().capacity));
    const ssize_t n = splice_retrying(from_.fd.get(), pipe_.pipe().write_fd, size);
    if (n == 0) co_return end_of_input();
    if (n < 0) {
      const int err = errno;
      if (err == EAGAIN) {
        co_await wait_readable();
        bulk_ = always_bulk_ && left_ > Loop::kBlockBytes;
      } else if (err == EINVAL) {
        can_splice_ = bulk_ = false;  // Not every family of sockets can.
      } else {
        fail(Moved::End::kFromFailed, Error::from_errno(err, "splice from"));
      }
      co_return;
    }
    ++from_.busy;
    pipe_.inside = static_cast<std::size_t>(n);
    co_await empty_pipe();
  }

  Task<void> empty_pipe() {
    while (pipe_.inside > 0 && !ended_) {
      if (!to_.fd) co_return fail(Moved::End::kToFailed, Error(Errc::kUnavailable, "closed"));
      int err = 0;
      const ssize_t m = splice_out(pipe_.pipe().read_fd, to_.fd.get(), pipe_.inside, err);
      if (m > 0) {
        pipe_.inside -= static_cast<std::size_t>(m);
        count(static_cast<std::size_t>(m));
      } else if (m < 0 && err == EAGAIN) {
        co_await wait_writable();
      } else {
        co_return fail(Moved::End::kToFailed, Error::from_errno(m < 0 ? err : EPIPE, "splice to"));
      }
    }
  }

  Stream::Impl& from_;
  Stream::Impl& to_;
  std::uint64_t left_;
  const bool always_bulk_;
  bool bulk_;
  bool can_splice_ = true;
  bool ended_ = false;
  Patience& patience_;
  Lease pipe_;
  Block block_;
  Moved moved_;
};

}  // namespace

Task<Moved> move_bytes(Stream::Impl& from, Stream::Impl& to, std::uint64_t bytes_max, bool bulk,
                       Patience& patience) {
  Mover mover(from, to, bytes_max, bulk, patience);
  co_return co_await mover.run();
}

}  // namespace glovebox::net
