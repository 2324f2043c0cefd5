// Socket addresses by number or path, and the options every socket here gets.

#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "base/result.h"

namespace glovebox::net {

class SocketAddress {
 public:
  // IPv4 or IPv6, without brackets.
  static Result<SocketAddress> numeric(const std::string& address, std::uint16_t port);
  static Result<SocketAddress> local(const std::string& path);
  static Result<SocketAddress> of_socket(int fd);
  static Result<SocketAddress> of_peer(int fd);

  int family() const noexcept { return storage_.ss_family; }
  const ::sockaddr* get() const noexcept { return reinterpret_cast<const ::sockaddr*>(&storage_); }
  ::socklen_t size() const noexcept { return size_; }
  std::uint16_t port() const noexcept;
  std::string text() const;  // "127.0.0.1:80", "[::1]:80" or "unix".

 private:
  ::sockaddr_storage storage_{};
  ::socklen_t size_ = 0;
};

Result<void> set_nonblocking(int fd);
// Small writes leave at once. Of no effect on a Unix socket.
void set_nodelay(int fd) noexcept;

}  // namespace glovebox::net
