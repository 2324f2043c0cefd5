#include "net/address.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace glovebox::net {

Result<SocketAddress> SocketAddress::numeric(const std::string& address, std::uint16_t port) {
  SocketAddress out;
  ::sockaddr_in v4{};
  ::sockaddr_in6 v6{};
  if (::inet_pton(AF_INET, address.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    std::memcpy(&out.storage_, &v4, sizeof v4);
    out.size_ = sizeof v4;
  } else if (::inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    std::memcpy(&out.storage_, &v6, sizeof v6);
    out.size_ = sizeof v6;
  } else {
    return Error(Errc::kInvalid, "not a numeric address: " + address);
  }
  return out;
}

Result<SocketAddress> SocketAddress::local(const std::string& path) {
  ::sockaddr_un un{};
  if (path.empty() || path.size() >= sizeof un.sun_path || path.find('\0') != std::string::npos) {
    return Error(Errc::kInvalid, "not a path for a Unix socket: " + path);
  }
  un.sun_family = AF_UNIX;
  std::memcpy(un.sun_path, path.c_str(), path.size() + 1);
  SocketAddress out;
  std::memcpy(&out.storage_, &un, sizeof un);
  out.size_ = sizeof un;
  return out;
}

Result<SocketAddress> SocketAddress::of_socket(int fd) {
  SocketAddress out;
  out.size_ = sizeof out.storage_;
  if (::getsockname(fd, reinterpret_cast<::sockaddr*>(&out.storage_), &out.size_) != 0) {
    return Error::from_errno(errno, "getsockname");
  }
  return out;
}

Result<SocketAddress> SocketAddress::of_peer(int fd) {
  SocketAddress out;
  out.size_ = sizeof out.storage_;
  if (::getpeername(fd, reinterpret_cast<::sockaddr*>(&out.storage_), &out.size_) != 0) {
    return Error::from_errno(errno, "getpeername");
  }
  return out;
}

std::uint16_t SocketAddress::port() const noexcept {
  if (family() == AF_INET) return ntohs(reinterpret_cast<const ::sockaddr_in&>(storage_).sin_port);
  if (family() != AF_INET6) return 0;
  return ntohs(reinterpret_cast<const ::sockaddr_in6&>(storage_).sin6_port);
}

std::string SocketAddress::text() const {
  std::array<char, INET6_ADDRSTRLEN> host{};
  if (family() == AF_INET) {
    const auto& v4 = reinterpret_cast<const ::sockaddr_in&>(storage_);
    ::inet_ntop(AF_INET, &v4.sin_addr, host.data(), host.size());
    return std::string(host.data()) + ":" + std::to_string(port());
  }
  if (family() == AF_INET6) {
    const auto& v6 = reinterpret_cast<const ::sockaddr_in6&>(storage_);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, host.data(), host.size());
    return "[" + std::string(host.data()) + "]:" + std::to_string(port());
  }
  return "unix";
}

Result<void> set_nonblocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return Error::from_errno(errno, "fcntl");
  if ((flags & O_NONBLOCK) != 0) return {};
  if (::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) return Error::from_errno(errno, "fcntl");
  return {};
}

void set_nodelay(int fd) noexcept {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace glovebox::net
