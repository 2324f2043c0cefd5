#include "net/stream.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <boost/asio/error.hpp>
#include <cerrno>
#include <cstring>

#include "async/coro.h"
#include "net/address.h"
#include "net/stream_impl.h"

namespace glovebox::net {

ssize_t Stream::Impl::try_read(char* into, std::size_t size) noexcept {
  for (;;) {
    const ssize_t n = ::recv(fd.get(), into, size, MSG_DONTWAIT);
    if (n >= 0) {
      ++busy;
      // epoll(7), question 9: a short read of a stream means it is empty, and new bytes mean a
      // new event. Not so after a hang-up, which is announced once.
      if (static_cast<std::size_t>(n) < size && !watch.hung_up) watch.readable = false;
      return n;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN) {
      watch.readable = false;
      return kWouldBlock;
    }
    error = errno;
    return kFailed;
  }
}

ssize_t Stream::Impl::try_write(const ::iovec* parts, std::size_t count) noexcept {
  ::msghdr message{};
  message.msg_iov = const_cast<::iovec*>(parts);
  message.msg_iovlen = count;
  for (;;) {
    const ssize_t n = ::sendmsg(fd.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0) {
      ++busy;
      return n;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN) {
      watch.writable = false;
      return kWouldBlock;
    }
    error = errno;
    return kFailed;
  }
}

Parts advance(Parts parts, std::size_t written) noexcept {
  while (parts.count > 0 && written >= parts.at->iov_len) {
    written -= parts.at->iov_len;
    ++parts.at;
    --parts.count;
  }
  if (parts.count > 0) {
    parts.at->iov_base = static_cast<char*>(parts.at->iov_base) + written;
    parts.at->iov_len -= written;
  }
  return parts;
}

std::optional<Result<void>> Stream::Impl::write_now(Parts& parts) {
  parts = advance(parts, 0);
  while (parts.count > 0) {
    if (!fd) return Result<void>(Error(Errc::kUnavailable, "write: closed"));
    const ssize_t n = try_write(parts.at, parts.count);
    if (n == kFailed) return Result<void>(Error::from_errno(error, "write"));
    if (n == kWouldBlock) return std::nullopt;
    parts = advance(parts, static_cast<std::size_t>(n));
  }
  return Result<void>();
}

Task<Result<void>> Stream::Impl::write_rest(Parts& parts, Deadline deadline) {
  for (;;) {
    if (!fd) co_return Error(Errc::kUnavailable, "write: closed");
    if (owes_yield()) co_await Loop::yield();
    std::optional<Result<void>> done = write_now(parts);
    if (done) co_return std::move(*done);
    busy = 0;
    const Wake wake = co_await writable(deadline);
    if (wake != Wake::kReady) co_return wake_error(wake, "write");
  }
}

Task<Result<void>> Stream::Impl::write_rest_idle(Parts& parts, Clock::duration idle) {
  while (parts.count > 0) {
    if (!fd) co_return Error(Errc::kUnavailable, "write: closed");
    if (owes_yield()) co_await Loop::yield();
    std::optional<Result<void>> done = write_now(parts);
    if (done) co_return std::move(*done);
    busy = 0;
    const Wake wake = co_await writable(after(idle));
    if (wake != Wake::kReady) co_return wake_error(wake, "write");
  }
  co_return Result<void>();
}

void Stream::Impl::close() noexcept {
  watch.remove();
  fd.reset();
}

Stream::Stream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&&) noexcept = default;
Stream::~Stream() = default;

Result<Stream> Stream::adopt(const Executor& executor, UniqueFd fd) {
  int type = 0;
  ::socklen_t size = sizeof type;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_TYPE, &type, &size) != 0) {
    return Error::from_errno(errno, "adopt stream");
  }
  if (type != SOCK_STREAM) return Error(Errc::kInvalid, "adopt stream: not a stream socket");
  GB_TRY(set_nonblocking(fd.get()));
  set_nodelay(fd.get());
  auto impl = std::make_unique<Impl>(Loop::of(executor), std::move(fd));
  GB_TRY(impl->watch.add(impl->fd.get()));
  return Stream(std::move(impl));
}

namespace {

Task<Result<Stream>> connect(SocketAddress address, std::string name, Deadline deadline) {
  const Executor executor = co_await boost::asio::this_coro::executor;
  UniqueFd fd(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) co_return Error::from_errno(errno, "socket");
  int failed = 0;
  for (;;) {
    failed = ::connect(fd.get(), address.get(), address.size()) == 0 ? 0 : errno;
    if (failed != EAGAIN) break;
    // A Unix listener with a full queue: there is nothing to wait for but time.
    if (Clock::now() >= deadline) co_return Error(Errc::kTimeout, "connect " + name);
    Loop* loop = co_await Loop::here();
    co_await loop->sleep(std::chrono::milliseconds(20));
  }
  if (failed != 0 && failed != EINPROGRESS) co_return Error::from_errno(failed, "connect " + name);
  GB_CO_TRY_ASSIGN(Stream stream, Stream::adopt(executor, std::move(fd)));
  if (failed == EINPROGRESS) {
    // The state from before the registration is reported as an event at once, if it is final.
    Result<void> ready = co_await stream.wait_writable(deadline);
    if (!ready) co_return std::move(ready).context("connect " + name).error();
    ::socklen_t size = sizeof failed;
    ::getsockopt(stream.fd(), SOL_SOCKET, SO_ERROR, &failed, &size);
    if (failed != 0) co_return Error::from_errno(failed, "connect " + name);
  }
  co_return stream;
}

}  // namespace

Task<Result<Stream>> Stream::connect_unix(std::string path, Deadline deadline) {
  GB_CO_TRY_ASSIGN(const SocketAddress address, SocketAddress::local(path));
  co_return co_await connect(address, std::move(path), deadline);
}

Task<Result<Stream>> Stream::connect_tcp(std::string address, std::uint16_t port,
                                         Deadline deadline) {
  GB_CO_TRY_ASSIGN(const SocketAddress parsed, SocketAddress::numeric(address, port));
  co_return co_await connect(parsed, parsed.text(), deadline);
}

Task<Result<std::size_t>> Stream::read_some(std::span<char> into, Deadline deadline) {
  Impl& impl = *impl_;
  if (impl.owes_yield()) co_await Loop::yield();
  for (;;) {
    if (!impl.fd) co_return Error(Errc::kUnavailable, "read: closed");
    const ssize_t n = impl.watch.readable ? impl.try_read(into.data(), into.size()) : kWouldBlock;
    if (n >= 0) co_return static_cast<std::size_t>(n);
    if (n == kFailed) co_return Error::from_errno(impl.error, "read");
    impl.busy = 0;
    const Wake wake = co_await impl.readable(deadline);
    if (wake != Wake::kReady) co_return wake_error(wake, "read");
  }
}

Task<Result<void>> Stream::write_all(std::string_view bytes, Deadline deadline) {
  ::iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  Parts parts{&part, 1};
  co_return co_await impl_->write_rest(parts, deadline);
}

void Stream::shutdown_write() noexcept { ::shutdown(impl_->fd.get(), SHUT_WR); }
void Stream::close() noexcept { impl_->close(); }
int Stream::fd() const noexcept { return impl_->fd.get(); }

namespace {

// Asks the kernel, since the flags of a Watch may be older than what the caller knows.
bool ready_now(int fd, short events) {
  ::pollfd poll{fd, events, 0};
  return ::poll(&poll, 1, 0) > 0;
}

}  // namespace

Task<Result<void>> Stream::wait_readable(Deadline deadline) {
  Impl& impl = *impl_;
  if (!impl.fd) co_return Error(Errc::kUnavailable, "wait to read: closed");
  if (ready_now(impl.fd.get(), POLLIN)) co_return Result<void>();
  const Wake wake = co_await impl.readable(deadline);
  if (wake != Wake::kReady) co_return wake_error(wake, "wait to read");
  co_return Result<void>();
}

Task<Result<void>> Stream::wait_writable(Deadline deadline) {
  Impl& impl = *impl_;
  if (!impl.fd) co_return Error(Errc::kUnavailable, "wait to write: closed");
  if (ready_now(impl.fd.get(), POLLOUT)) co_return Result<void>();
  const Wake wake = co_await impl.writable(deadline);
  if (wake != Wake::kReady) co_return wake_error(wake, "wait to write");
  co_return Result<void>();
}

bool Stream::peer_gone() const noexcept {
  if (!impl_->fd) return true;
  ::pollfd poll{impl_->fd.get(), POLLRDHUP, 0};
  return ::poll(&poll, 1, 0) > 0;
}

}  // namespace glovebox::net
