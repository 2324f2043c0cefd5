#include "net/server.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <cerrno>
#include <exception>

#include "async/coro.h"
#include "net/address.h"
#include "net/connection.h"
#include "net/connection_cancel.h"
#include "net/serialize.h"
#include "net/server_impl.h"
#include "net/stream_impl.h"

namespace glovebox::net {
namespace {

constexpr int kBacklog = 4096;
constexpr int kAcceptsInARow = 64;
constexpr auto kAcceptPause = std::chrono::milliseconds(100);
constexpr auto kCutGrace = std::chrono::seconds(5);

Peer peer_of(int fd) {
  Peer peer;
  Result<SocketAddress> address = SocketAddress::of_peer(fd);
  if (address) peer.address = address->text();
  peer.local = address && address->family() == AF_UNIX;
  ::ucred cred{};
  ::socklen_t size = sizeof cred;
  if (peer.local && ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) == 0) {
    peer.uid = cred.uid;
  } else {
    peer.uid = UINT32_MAX;  // Nobody: 0 would be root.
  }
  return peer;
}

// One connection too many. Said without waiting, since waiting is what we have no room for.
void turn_away(UniqueFd fd) {
  const std::string body = error_body("unavailable", "too many connections");
  std::string reply;
  append_status_line(reply, 503);
  append_field(reply, "Content-Type", "application/json");
  append_field(reply, "Content-Length", std::to_string(body.size()));
  append_field(reply, "Retry-After", "1");
  append_field(reply, "X-Request-ID", make_request_id());
  append_field(reply, "Connection", "close");
  reply.append("\r\n").append(body);
  ::send(fd.get(), reply.data(), reply.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  ::shutdown(fd.get(), SHUT_WR);
  // What it has sent so far is taken off, or the close would reset the reply away.
  char waste[4096];
  while (::recv(fd.get(), waste, sizeof waste, MSG_DONTWAIT) == sizeof waste) continue;
}

std::uint64_t inode_of(const std::string& path) {
  struct ::stat st{};
  return ::lstat(path.c_str(), &st) == 0 ? st.st_ino : 0;
}

bool is_socket(const std::string& path) {
  struct ::stat st{};
  return ::lstat(path.c_str(), &st) == 0 && S_ISSOCK(st.st_mode);
}

// A socket file outlives its process; only connecting tells whether anybody listens.
Result<void> remove_stale(const std::string& path, const SocketAddress& address) {
  if (inode_of(path) == 0) return {};
  if (!is_socket(path)) return Error(Errc::kConflict, "listen " + path + ": not a socket");
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!probe) return Error::from_errno(errno, "socket");
  if (::connect(probe.get(), address.get(), address.size()) == 0 || errno == EAGAIN) {
    return Error(Errc::kConflict, "listen " + path + ": another process listens on it");
  }
  if (errno != ECONNREFUSED) return Error::from_errno(errno, "probe " + path);
  if (::unlink(path.c_str()) != 0) return Error::from_errno(errno, "unlink " + path);
  return {};
}

Result<void> listen_now(int fd, const SocketAddress& address, const std::string& name) {
  if (::bind(fd, address.get(), address.size()) != 0) {
    return Error::from_errno(errno, "bind " + name);
  }
  if (::listen(fd, kBacklog) != 0) return Error::from_errno(errno, "listen " + name);
  return {};
}

}  // namespace

Server::Impl::Listener::~Listener() {
  watch.remove();
  // Not when another process has replaced it meanwhile.
  if (!path.empty() && inode_of(path) == inode) ::unlink(path.c_str());
}

Result<void> Server::Impl::add_listener(const std::shared_ptr<Impl>& self, UniqueFd fd,
                                        std::string unix_path) {
  GB_TRY(set_nonblocking(fd.get()));
  Listener& listener = self->listeners.emplace_back(self->loop);
  listener.fd = std::move(fd);
  if (!unix_path.empty()) {
    listener.inode = inode_of(unix_path);
    listener.path = std::move(unix_path);
  }
  GB_TRY(listener.watch.add(listener.fd.get()));
  boost::asio::co_spawn(self->executor, accept_loop(self, listener), boost::asio::detached);
  return {};
}

Task<void> Server::Impl::accept_loop(std::shared_ptr<Impl> self, Listener& listener) {
  int in_a_row = 0;
  while (!self->closing) {
    UniqueFd fd(::accept4(listener.fd.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    const int err = errno;
    if (fd) {
      start(self, std::move(fd));
      if (++in_a_row % kAcceptsInARow == 0) co_await Loop::yield();
    } else if (err == EAGAIN) {
      const Wake wake = co_await listener.watch.wait_readable(Deadline::max());
      if (wake != Wake::kReady) break;
    } else if (err == EBADF || err == EINVAL) {
      break;  // Closed.
    } else if (err == EMFILE || err == ENFILE || err == ENOBUFS || err == ENOMEM) {
      // Trying again at once would spin: the connection stays in the queue.
      co_await self->loop.sleep(kAcceptPause);
    } else {
      co_await Loop::yield();  // The fault of that one connection: accept(2), "Error handling".
    }
  }
}

void Server::Impl::start(const std::shared_ptr<Impl>& self, UniqueFd fd) {
  if (self->count >= self->limits.connections_max) return turn_away(std::move(fd));
  Peer peer = peer_of(fd.get());
  Result<Stream> stream = Stream::adopt(self->executor, std::move(fd));
  if (!stream) return;
  auto connection = std::make_unique<Connection>(*self, *std::move(stream), std::move(peer));
  connection->insert_before(self->connections);
  ++self->count;
  // The completion handler holds the signal: Asio looks at its slot after the coroutine's end.
  const std::shared_ptr<Connection::Cancel> cancel = connection->cancel();
  boost::asio::co_spawn(self->executor, serve(self, std::move(connection)),
                        boost::asio::bind_cancellation_slot(
                            cancel->signal.slot(), [cancel](const std::exception_ptr&) {}));
}

Task<void> Server::Impl::serve(std::shared_ptr<Impl> self, std::unique_ptr<Connection> connection) {
  struct Leave {
    Impl& impl;
    ~Leave() {
      if (--impl.count == 0 && impl.closing) impl.drained.set();
    }
  };
  const Leave leave{*self};
  try {
    co_await connection->run();
  } catch (const std::exception&) {
    // Cancelled: being cut.
  }
  connection->unlink();
}

// Ports and socket files are free for a successor at once. The accept loops do not look at their
// listener again once `closing` is set.
void Server::Impl::stop_listening() {
  closing = true;
  listeners.clear();
}

void Server::Impl::cut_all() {
  for (Link* at = connections.next; at != &connections;) {
    auto& connection = static_cast<Connection&>(*at);
    at = at->next;
    connection.cut();
  }
}

Server::Server(boost::asio::io_context& io, ServerLimits limits, Handler handler)
    : impl_(std::make_shared<Impl>(io.get_executor(), limits, std::move(handler))) {}

Server::~Server() {
  if (impl_->closing) return;
  impl_->stop_listening();
  impl_->cut_all();
}

Result<std::uint16_t> Server::listen_tcp(const std::string& address, std::uint16_t port) {
  GB_TRY_ASSIGN(const SocketAddress wanted, SocketAddress::numeric(address, port));
  UniqueFd fd(::socket(wanted.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return Error::from_errno(errno, "socket");
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  GB_TRY(listen_now(fd.get(), wanted, wanted.text()));
  GB_TRY_ASSIGN(const SocketAddress got, SocketAddress::of_socket(fd.get()));
  GB_TRY(Impl::add_listener(impl_, std::move(fd), {}));
  return got.port();
}

Result<void> Server::listen_unix(const std::string& path, unsigned mode) {
  GB_TRY_ASSIGN(const SocketAddress address, SocketAddress::local(path));
  GB_TRY(remove_stale(path, address));
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return Error::from_errno(errno, "socket");
  // Before bind(), which takes it over: the file is never there with more rights than these.
  if (::fchmod(fd.get(), mode) != 0) return Error::from_errno(errno, "fchmod " + path);
  GB_TRY(listen_now(fd.get(), address, path));
  if (::chmod(path.c_str(), mode) != 0) return Error::from_errno(errno, "chmod " + path);
  return Impl::add_listener(impl_, std::move(fd), path);
}

Result<void> Server::listen_on(UniqueFd listener) {
  int listening = 0;
  ::socklen_t size = sizeof listening;
  if (::getsockopt(listener.get(), SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0) {
    return Error::from_errno(errno, "listen on an inherited socket");
  }
  if (listening == 0) return Error(Errc::kInvalid, "inherited socket does not listen");
  return Impl::add_listener(impl_, std::move(listener), {});
}

Task<void> Server::close(Deadline deadline) {
  const std::shared_ptr<Impl> impl = impl_;
  impl->stop_listening();
  for (Link* at = impl->connections.next; at != &impl->connections;) {
    auto& connection = static_cast<Connection&>(*at);
    at = at->next;
    connection.close_if_idle();
  }
  if (impl->count == 0) co_return;
  const Wake wake = co_await impl->drained.wait(deadline);
  if (wake == Wake::kReady) co_return;
  impl->cut_all();
  co_await impl->drained.wait(after(kCutGrace));
}

std::size_t Server::connections() const noexcept { return impl_->count; }

}  // namespace glovebox::net
