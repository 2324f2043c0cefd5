#include "cli/stdio.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "async/coro.h"
#include "os/sys.h"

namespace glovebox::cli {
namespace {

using Descriptor = boost::asio::posix::basic_stream_descriptor<Executor>;

// A pipe that polls writable takes this much without blocking: PIPE_BUF.
constexpr std::size_t kPieceBytes = 4096;

bool is_ready(int fd, short events) {
  ::pollfd p{fd, events, 0};
  return ::poll(&p, 1, 0) != 0;
}

}  // namespace

struct StandardStream::Impl {
  Impl(const Executor& executor, int fd_in, Direction direction_in)
      : fd(fd_in), direction(direction_in), epoll(executor) {
    struct stat status{};
    // epoll(7) refuses regular files, which are always ready.
    if (::fstat(fd, &status) != 0 || S_ISREG(status.st_mode)) return;
    const int set = ::epoll_create1(EPOLL_CLOEXEC);
    if (set < 0) return;
    ::epoll_event event{};
    event.events = direction == Direction::kRead ? EPOLLIN : EPOLLOUT;
    if (::epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) != 0) {
      ::close(set);
      return;
    }
    epoll.assign(set);
  }

  int fd;
  Direction direction;
  Descriptor epoll;  // Not open when the descriptor never makes one wait.
  bool cancelled = false;
};

StandardStream::StandardStream(const Executor& executor, int fd, Direction direction)
    : impl_(std::make_unique<Impl>(executor, fd, direction)) {}

StandardStream::~StandardStream() = default;

void StandardStream::cancel() noexcept {
  impl_->cancelled = true;
  boost::system::error_code ignored;
  if (impl_->epoll.is_open()) impl_->epoll.cancel(ignored);
}

Task<Result<void>> StandardStream::wait_ready() {
  const short events = impl_->direction == Direction::kRead ? POLLIN : POLLOUT;
  while (!impl_->cancelled) {
    if (!impl_->epoll.is_open() || is_ready(impl_->fd, events)) co_return Result<void>();
    auto [error] = co_await impl_->epoll.async_wait(Descriptor::wait_read, use_result);
    if (error) break;
  }
  co_return Error(Errc::kUnavailable, "cancelled");
}

Task<Result<std::size_t>> StandardStream::read_some(std::span<char> into) {
  Result<void> ready = co_await wait_ready();
  if (!ready) co_return std::move(ready).error();
  const auto got = os::retry("read", "standard input",
                             [&] { return ::read(impl_->fd, into.data(), into.size()); });
  if (!got) co_return got.error();
  co_return static_cast<std::size_t>(*got);
}

Task<Result<void>> StandardStream::write_all(std::string_view bytes) {
  while (!bytes.empty()) {
    Result<void> ready = co_await wait_ready();
    if (!ready) co_return std::move(ready).error();
    const std::size_t piece =
        impl_->epoll.is_open() ? std::min(bytes.size(), kPieceBytes) : bytes.size();
    const auto wrote =
        os::retry("write", "output", [&] { return ::write(impl_->fd, bytes.data(), piece); });
    if (!wrote) co_return wrote.error();
    bytes.remove_prefix(static_cast<std::size_t>(*wrote));
  }
  co_return Result<void>();
}

}  // namespace glovebox::cli
