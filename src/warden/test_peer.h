// TestPeer: a client of the warden's socket, for tests.

#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "runtime/native/host.h"
#include "warden/protocol/messages.h"

namespace glovebox::warden {

// A client that blocks, for at most a few seconds.
class TestPeer {
 public:
  explicit TestPeer(const std::string& path)
      : fd_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    connected_ = ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    const timeval limit{5, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  bool connected() const { return connected_; }
  int fd() const { return fd_.get(); }

  bool send(std::string_view bytes) {
    return ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  // Empty when the warden closed the connection.
  std::optional<Message> receive() {
    std::string buffer(kMessageBytesMax, '\0');
    iovec iov{buffer.data(), buffer.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kSocketsMax)];
    msghdr header{};
    header.msg_iov = &iov;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    const ssize_t n = ::recvmsg(fd_.get(), &header, MSG_CMSG_CLOEXEC);
    if (n <= 0) return std::nullopt;
    for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
      const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
        fds.emplace_back(fd);
      }
    }
    buffer.resize(static_cast<std::size_t>(n));
    auto message = decode_message(buffer);
    EXPECT_TRUE(message);
    return *std::move(message);
  }
  bool closed() { return !receive(); }

  std::optional<Message> ask(Op op, std::string_view payload) {
    if (!send(encode({++id_, op, 0}, payload))) return std::nullopt;
    std::optional<Message> reply = receive();
    if (reply) EXPECT_EQ(reply->header.id, id_);
    return reply;
  }
  template <class T>
  std::optional<Message> ask(Op op, const T& request) {
    return ask(op, std::string_view(encode_payload(request)));
  }
  bool hello() {
    const auto reply = ask(Op::kHello, HelloRequest{});
    return reply && reply->header.status == 0;
  }
  // The status of the reply as an error, or nothing.
  template <class T>
  std::optional<Errc> error_of(Op op, const T& request) {
    const auto reply = ask(op, request);
    if (!reply) return Errc::kUnavailable;
    if (reply->header.status == 0) return std::nullopt;
    return decode_error(*reply).code();
  }

  std::vector<UniqueFd> fds;

 private:
  UniqueFd fd_;
  bool connected_ = false;
  std::uint32_t id_ = 0;
};

inline CreateRequest host_request(const std::string& name) {
  const native::Limits l;
  return {name, "host", l.memory_bytes, l.disk_bytes, l.cpu_millis, l.pids};
}

}  // namespace glovebox::warden
