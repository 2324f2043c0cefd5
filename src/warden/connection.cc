#include "warden/connection.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "os/sys.h"
#include "warden/protocol/messages.h"

namespace glovebox::warden {
namespace {

// Replies do not queue up (a blocked client is not read from), so these are mostly events.
constexpr std::size_t kQueueMax = 1024;

constexpr int kSocketType = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return Error(Errc::kInvalid, "a socket's path must have 1 to 107 bytes: " + path);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

const sockaddr* generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

Result<UniqueFd> new_socket() {
  GB_TRY_ASSIGN(const int fd,
                os::retry("socket", "", [] { return ::socket(AF_UNIX, kSocketType, 0); }));
  return UniqueFd(fd);
}

Result<void> clear_dead_socket(const std::string& path, const sockaddr_un& address) {
  struct stat st{};
  if (::lstat(path.c_str(), &st) != 0) {
    if (errno == ENOENT) return {};
    return Error::from_errno(errno, "stat " + path);
  }
  if (!S_ISSOCK(st.st_mode)) {
    return Error(Errc::kConflict, path + " is there and is not a socket");
  }
  GB_TRY_ASSIGN(const UniqueFd probe, new_socket());
  if (::connect(probe.get(), generic(address), sizeof address) == 0 || errno == EAGAIN) {
    return Error(Errc::kConflict, "another warden serves at " + path);
  }
  GB_TRY(os::retry("unlink", path, [&] { return ::unlink(path.c_str()); }));
  return {};
}

}  // namespace

Result<UniqueFd> listen_at(const std::string& path, uid_t uid, gid_t gid) {
  GB_TRY_ASSIGN(const sockaddr_un address, address_of(path));
  GB_TRY(clear_dead_socket(path, address));
  GB_TRY_ASSIGN(UniqueFd fd, new_socket());
  // Closed to everybody from its first moment: bind(2) applies the umask.
  const mode_t old = ::umask(0177);
  const int bound = ::bind(fd.get(), generic(address), sizeof address);
  const int err = errno;
  ::umask(old);
  if (bound != 0) return Error::from_errno(err, "bind " + path);
  GB_TRY(os::retry("chown", path, [&] { return ::lchown(path.c_str(), uid, gid); }));
  GB_TRY(os::retry("listen", path, [&] { return ::listen(fd.get(), 16); }));
  return fd;
}

Result<Peer> peer_of(int fd) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  GB_TRY(os::retry("getsockopt", "SO_PEERCRED",
                   [&] { return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size); }));
  return Peer{credentials.pid, credentials.uid};
}

Result<std::optional<std::string_view>> Connection::receive(std::span<char> buffer) {
  iovec iov{buffer.data(), buffer.size()};
  msghdr header{};
  header.msg_iov = &iov;
  header.msg_iovlen = 1;
  // No room for control data: unix(7), the kernel then discards descriptors that come along.
  const auto n =
      os::retry("recvmsg", "client", [&] { return ::recvmsg(fd_.get(), &header, MSG_DONTWAIT); });
  if (!n) {
    if (n.error().sys_errno() == EAGAIN) return std::optional<std::string_view>();
    return n.error();
  }
  // A message of no bytes looks the same as the end; we have none.
  if (n.value() == 0) return Error(Errc::kUnavailable, "the client has gone");
  if ((header.msg_flags & MSG_TRUNC) != 0) return Error(Errc::kInvalid, "message too large");
  const std::string_view message(buffer.data(), static_cast<std::size_t>(n.value()));
  return std::optional<std::string_view>(message);
}

Result<bool> Connection::send_now(const Outgoing& out) {
  iovec iov{const_cast<char*>(out.message.data()), out.message.size()};
  msghdr header{};
  header.msg_iov = &iov;
  header.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kSocketsMax)> control{};
  if (!out.fds.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(sizeof(int) * out.fds.size());
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int) * out.fds.size());
    for (std::size_t i = 0; i < out.fds.size(); ++i) {
      const int fd = out.fds[i].get();
      std::memcpy(CMSG_DATA(c) + i * sizeof fd, &fd, sizeof fd);
    }
  }
  const auto n = os::retry("sendmsg", "client", [&] {
    return ::sendmsg(fd_.get(), &header, MSG_DONTWAIT | MSG_NOSIGNAL);
  });
  if (n) return true;
  if (n.error().sys_errno() == EAGAIN) return false;
  return n.error();
}

Result<void> Connection::send(std::string message, std::vector<UniqueFd> fds) {
  if (fds.size() > kSocketsMax || message.size() > kMessageBytesMax) {
    return Error(Errc::kInternal, "a reply larger than the protocol allows");
  }
  Outgoing out{std::move(message), std::move(fds)};
  if (queue_.empty()) {
    GB_TRY_ASSIGN(const bool sent, send_now(out));
    if (sent) return {};
  }
  if (queue_.size() >= kQueueMax) {
    return Error(Errc::kExhausted, "the client does not read what it was sent");
  }
  queue_.push_back(std::move(out));
  return {};
}

Result<void> Connection::flush() {
  while (!queue_.empty()) {
    GB_TRY_ASSIGN(const bool sent, send_now(queue_.front()));
    if (!sent) return {};
    queue_.pop_front();
  }
  return {};
}

}  // namespace glovebox::warden
