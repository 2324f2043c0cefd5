#include "warden/client/dial.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <cerrno>
#include <cstring>
#include <memory>

#include "async/coro.h"

namespace glovebox::warden {
namespace {

using Descriptor = boost::asio::posix::basic_stream_descriptor<Executor>;

// Shared with the timer's handler, which may run after the waiter has gone on.
struct TimedWait {
  TimedWait(const Executor& executor, UniqueFd fd, Deadline deadline)
      : descriptor(executor, fd.release()), timer(executor, deadline) {}
  Descriptor descriptor;
  Timer timer;
  bool expired = false;
};

Task<Result<UniqueFd>> wait_writable(Executor executor, UniqueFd fd, Deadline deadline) {
  const auto wait = std::make_shared<TimedWait>(executor, std::move(fd), deadline);
  wait->timer.async_wait([wait](boost::system::error_code cancelled) {
    if (cancelled) return;
    wait->expired = true;
    boost::system::error_code ignored;
    wait->descriptor.cancel(ignored);
  });
  auto [ec] = co_await wait->descriptor.async_wait(Descriptor::wait_write, use_result);
  wait->timer.cancel();
  UniqueFd back(wait->descriptor.release());
  if (wait->expired) co_return Error(Errc::kTimeout, "connect: no answer in time");
  if (ec) co_return Error(Errc::kUnavailable, "connect: " + ec.message());
  co_return back;
}

bool is_writable(int fd) {
  pollfd p{fd, POLLOUT, 0};
  return ::poll(&p, 1, 0) == 1;
}

Result<void> outcome(int fd) {
  int err = 0;
  socklen_t size = sizeof err;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size) != 0) err = errno;
  if (err != 0) return Error::from_errno(err, "connect");
  return {};
}

}  // namespace

Task<Result<UniqueFd>> connect_path(Executor executor, std::string path, Deadline deadline) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    co_return Error(Errc::kInvalid, "bad socket path: " + path);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) co_return Error::from_errno(errno, "socket");
  auto pause = std::chrono::milliseconds(1);
  Timer timer(executor);
  for (;;) {
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      co_return fd;
    }
    const int err = errno;
    if (err == EINTR) continue;
    if (err == ENOENT) co_return Error(Errc::kUnavailable, "nobody listens at " + path);
    if (err != EAGAIN) co_return Error::from_errno(err, "connect " + path);
    // unix(7): its backlog is full, and there is no event for when it is not.
    if (Clock::now() >= deadline) co_return Error(Errc::kTimeout, "connect " + path);
    timer.expires_at(std::min(deadline, after(pause)));
    auto [ec] = co_await timer.async_wait(use_result);
    if (ec) co_return Error(Errc::kUnavailable, "connect " + path + ": cancelled");
    pause = std::min(pause * 2, std::chrono::milliseconds(64));
  }
}

Task<Result<UniqueFd>> connect_port(Executor executor, UniqueFd socket, Family family,
                                    std::uint16_t port, Deadline deadline) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  v6.sin6_addr = in6addr_loopback;
  const bool is_v4 = family == Family::kV4;
  const auto* address =
      is_v4 ? reinterpret_cast<const sockaddr*>(&v4) : reinterpret_cast<const sockaddr*>(&v6);
  const socklen_t size = is_v4 ? sizeof v4 : sizeof v6;

  if (::connect(socket.get(), address, size) == 0) co_return socket;
  if (errno != EINPROGRESS) co_return Error::from_errno(errno, "connect");
  // On loopback the answer is mostly there by now.
  if (!is_writable(socket.get())) {
    Result<UniqueFd> back = co_await wait_writable(executor, std::move(socket), deadline);
    if (!back) co_return std::move(back).error();
    socket = *std::move(back);
  }
  GB_CO_TRY(outcome(socket.get()));
  co_return socket;
}

}  // namespace glovebox::warden
