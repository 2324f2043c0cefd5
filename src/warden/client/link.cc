#include "warden/client/link.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <cerrno>
#include <cstring>
#include <deque>

#include "async/coro.h"

namespace glovebox::warden {
namespace {

using Descriptor = boost::asio::posix::basic_stream_descriptor<Executor>;

Error ended() { return {Errc::kUnavailable, "the warden's connection ended"}; }

Result<void> check_peer(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return Error::from_errno(errno, "getsockopt SO_PEERCRED");
  }
  if (peer.uid == 0 || peer.uid == ::geteuid()) return {};
  return Error(Errc::kDenied, "who listens on the warden's socket is not root");
}

// Takes every descriptor that came along, so that none is leaked whatever the message says.
std::vector<UniqueFd> take_fds(msghdr& header) {
  std::vector<UniqueFd> fds;
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
      fds.emplace_back(fd);
    }
  }
  return fds;
}

}  // namespace

struct Link::Impl {
  Impl(const Executor& executor, UniqueFd fd)
      : descriptor(executor, fd.release()), buffer(kMessageBytesMax) {}

  Descriptor descriptor;
  std::vector<char> buffer;
  std::deque<std::string> queue;
  bool flushing = false;
};

Link::Link(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Link::~Link() = default;

Result<std::shared_ptr<Link>> Link::connect(const Executor& executor, const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return Error(Errc::kInvalid, "path too long: " + path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return Error::from_errno(errno, "socket");
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return Error::from_errno(errno, "connect " + path);
  }
  GB_TRY(check_peer(fd.get()));
  return std::shared_ptr<Link>(new Link(std::make_unique<Impl>(executor, std::move(fd))));
}

Task<Result<Packet>> Link::receive() {
  const std::shared_ptr<Link> keep = shared_from_this();
  Impl& link = *impl_;
  for (;;) {
    if (!link.descriptor.is_open()) co_return ended();
    iovec iov{link.buffer.data(), link.buffer.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kSocketsMax)> control{};
    msghdr header{};
    header.msg_iov = &iov;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    const ssize_t n =
        ::recvmsg(link.descriptor.native_handle(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      auto [ec] = co_await link.descriptor.async_wait(Descriptor::wait_read, use_result);
      if (ec) co_return ended();
      continue;
    }
    if (n < 0) co_return Error::from_errno(errno, "recvmsg from the warden");
    Packet packet;
    packet.fds = take_fds(header);
    if (n == 0) co_return ended();
    if ((header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
      co_return Error(Errc::kInternal, "a message of the warden was cut");
    }
    const std::string_view bytes(link.buffer.data(), static_cast<std::size_t>(n));
    GB_CO_TRY_ASSIGN(packet.message, decode_message(bytes));
    co_return packet;
  }
}

Result<void> Link::post(std::string message) {
  Impl& link = *impl_;
  if (!link.descriptor.is_open()) return ended();
  if (link.queue.empty()) {
    const ssize_t n = ::send(link.descriptor.native_handle(), message.data(), message.size(),
                             MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0) return {};
    if (errno != EAGAIN && errno != EINTR) return Error::from_errno(errno, "send to the warden");
  }
  link.queue.push_back(std::move(message));
  if (!link.flushing) {
    link.flushing = true;
    boost::asio::co_spawn(link.descriptor.get_executor(), flush(shared_from_this()),
                          boost::asio::detached);
  }
  return {};
}

// Ends with the Link: close() ends its wait.
Task<void> Link::flush(std::shared_ptr<Link> self) {
  Impl& link = *self->impl_;
  while (!link.queue.empty() && link.descriptor.is_open()) {
    const std::string& next = link.queue.front();
    const ssize_t n = ::send(link.descriptor.native_handle(), next.data(), next.size(),
                             MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0) {
      link.queue.pop_front();
    } else if (errno == EAGAIN) {
      auto [ec] = co_await link.descriptor.async_wait(Descriptor::wait_write, use_result);
      if (ec) break;
    } else if (errno != EINTR) {
      break;  // The reader sees the end, too, and acts on it.
    }
  }
  link.flushing = false;
}

void Link::close() noexcept {
  boost::system::error_code ignored;
  impl_->descriptor.close(ignored);
}

}  // namespace glovebox::warden
