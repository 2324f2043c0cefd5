#include "warden/server.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "os/sys.h"

namespace glovebox::warden {
namespace {

// Reasons come from the host and may quote a sandbox; they are for people.
constexpr std::size_t kReasonBytesMax = 512;

std::string encode_event(const ExitedEvent& event) {
  return encode({0, Op::kExited, 0}, encode_payload(event));
}

Result<void> check_empty(const Message& request) {
  if (request.payload.empty()) return {};
  return Error(Errc::kInvalid, "this operation takes no fields");
}

}  // namespace

Result<std::unique_ptr<Server>> Server::listen(ServerConfig config, Keeper& keeper, Loop& loop,
                                               log::Logger& log) {
  GB_TRY_ASSIGN(UniqueFd listener,
                listen_at(config.socket_path, config.client_uid, config.client_gid));
  std::unique_ptr<Server> server(
      new Server(std::move(config), keeper, loop, log, std::move(listener)));
  Server* self = server.get();
  GB_TRY_ASSIGN(server->listener_watch_,
                loop.watch(self->listener_.get(), EPOLLIN, [self](unsigned) { self->accept(); }));
  return server;
}

Server::Server(ServerConfig config, Keeper& keeper, Loop& loop, log::Logger& log, UniqueFd listener)
    : config_(std::move(config)),
      keeper_(keeper),
      loop_(loop),
      log_(log),
      listener_(std::move(listener)),
      buffer_(kMessageBytesMax) {}

Server::~Server() {
  for (auto& [id, client] : clients_) loop_.unwatch(client.watch);
  loop_.unwatch(listener_watch_);
  ::unlink(config_.socket_path.c_str());
}

void Server::accept() {
  const auto fd = os::retry("accept4", "", [&] {
    return ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  });
  if (!fd) {
    const int err = fd.error().sys_errno();
    if (err == EAGAIN || err == ECONNABORTED) return;
    log_.error("cannot accept", {{"error", fd.error()}});
    pause_accepting();
    return;
  }
  UniqueFd socket(fd.value());
  const Result<Peer> peer = peer_of(socket.get());
  if (!peer || (peer.value().uid != 0 && peer.value().uid != config_.client_uid)) {
    log_.warn("a stranger was turned away",
              {{"uid", peer ? peer.value().uid : 0U}, {"pid", peer ? peer.value().pid : 0}});
    return;
  }
  if (clients_.size() >= config_.connections_max) {
    log_.warn("too many connections", {{"pid", peer.value().pid}});
    return;
  }
  const Id id = next_id_++;
  Client& client = clients_.try_emplace(id, std::move(socket)).first->second;
  client.hello_by = after(config_.hello_within);
  Result<Loop::Token> watch = loop_.watch(
      client.connection.fd(), EPOLLIN, [this, id](std::uint32_t events) { on_ready(id, events); });
  if (!watch) {
    log_.error("cannot watch a connection", {{"error", watch.error()}});
    clients_.erase(id);
    return;
  }
  client.watch = *watch;
}

// Out of descriptors, most likely: the listener stays readable, so without a pause we would spin.
void Server::pause_accepting() {
  loop_.change(listener_watch_, 0);
  accept_again_ = after(std::chrono::milliseconds(100));
}

void Server::on_ready(Id id, std::uint32_t events) {
  const auto it = clients_.find(id);
  if (it == clients_.end()) return;
  Result<void> served = serve(it->second, events);
  if (!served) {
    drop(id, served.error());
    return;
  }
  const auto still = clients_.find(id);
  if (still != clients_.end()) watch_for_what_is_next(still->second);
}

Result<void> Server::serve(Client& client, std::uint32_t events) {
  if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) GB_TRY(client.connection.flush());
  // A client that does not take its replies is not read from: it waits, we keep no more for it.
  if (client.connection.blocked()) return {};
  GB_TRY_ASSIGN(const std::optional<std::string_view> bytes, client.connection.receive(buffer_));
  if (!bytes) return {};
  GB_TRY_ASSIGN(const Message request, decode_message(*bytes));
  if (request.header.status != 0 || request.header.op == Op::kExited) {
    return Error(Errc::kInvalid, "not a request");
  }
  return handle(client, request);
}

Result<void> Server::handle(Client& client, const Message& request) {
  const auto [id, op, status] = request.header;
  if (!client.greeted && op != Op::kHello) return Error(Errc::kInvalid, "no hello first");
  Result<Reply> reply = carry_out(client, request);
  if (!reply) {
    GB_TRY(client.connection.send(encode_error(id, op, reply.error())));
    // Whoever speaks another version cannot be talked to.
    if (!client.greeted) return std::move(reply).error();
    return {};
  }
  GB_TRY(client.connection.send(encode({id, op, 0}, reply->payload), std::move(reply->fds)));
  if (op == Op::kSubscribe) return deliver_kept(client);
  return {};
}

Result<Server::Reply> Server::greet(Client& client, const Message& request) {
  GB_TRY_ASSIGN(const HelloRequest hello, decode_payload<HelloRequest>(request.payload));
  if (hello.version != kProtocolVersion) {
    return Error(Errc::kInvalid, "the warden speaks version " + std::to_string(kProtocolVersion) +
                                     " of its protocol, not " + std::to_string(hello.version));
  }
  client.greeted = true;
  return Reply{encode_payload(HelloReply{kProtocolVersion, config_.agent_socket_dir}), {}};
}

Result<Server::Reply> Server::carry_out(Client& client, const Message& request) {
  const std::string& payload = request.payload;
  switch (request.header.op) {
    case Op::kHello: return greet(client, request);
    case Op::kCreate: {
      GB_TRY_ASSIGN(const CreateRequest r, decode_payload<CreateRequest>(payload));
      GB_TRY_ASSIGN(const CreateReply made, keeper_.create(r));
      return Reply{encode_payload(made), {}};
    }
    case Op::kDestroy:
    case Op::kFreeze:
    case Op::kThaw: {
      GB_TRY_ASSIGN(const NameRequest r, decode_payload<NameRequest>(payload));
      if (request.header.op == Op::kDestroy) GB_TRY(keeper_.destroy(r.name));
      if (request.header.op == Op::kFreeze) GB_TRY(keeper_.freeze(r.name));
      if (request.header.op == Op::kThaw) GB_TRY(keeper_.thaw(r.name));
      return Reply{};
    }
    case Op::kUsage: {
      GB_TRY_ASSIGN(const NameRequest r, decode_payload<NameRequest>(payload));
      GB_TRY_ASSIGN(const UsageReply usage, keeper_.usage(r.name));
      return Reply{encode_payload(usage), {}};
    }
    case Op::kList: {
      GB_TRY_ASSIGN(const ListRequest r, decode_payload<ListRequest>(payload));
      return Reply{encode_payload(keeper_.list(r.after)), {}};
    }
    case Op::kSockets: {
      GB_TRY_ASSIGN(const SocketsRequest r, decode_payload<SocketsRequest>(payload));
      GB_TRY_ASSIGN(std::vector<UniqueFd> fds, keeper_.sockets(r));
      return Reply{{}, std::move(fds)};
    }
    case Op::kSubscribe: {
      GB_TRY(check_empty(request));
      client.subscribed = true;
      return Reply{};
    }
    case Op::kExited: break;
  }
  return Error(Errc::kInvalid, "no such operation");
}

Result<void> Server::deliver_kept(Client& client) {
  for (; !kept_.empty(); kept_.pop_front()) {
    GB_TRY(client.connection.send(encode_event(kept_.front())));
  }
  return {};
}

void Server::publish(ExitedEvent event) {
  if (event.reason.size() > kReasonBytesMax) event.reason.resize(kReasonBytesMax);
  bool told = false;
  std::vector<std::pair<Id, Error>> slow;
  for (auto& [id, client] : clients_) {
    if (!client.subscribed) continue;
    Result<void> sent = client.connection.send(encode_event(event));
    if (!sent) {
      slow.emplace_back(id, std::move(sent).error());
      continue;
    }
    told = true;
    watch_for_what_is_next(client);
  }
  for (const auto& [id, why] : slow) drop(id, why);
  if (told) return;
  if (kept_.size() >= config_.exits_kept) kept_.pop_front();
  kept_.push_back(std::move(event));
}

void Server::watch_for_what_is_next(Client& client) {
  loop_.change(client.watch, client.connection.blocked() ? EPOLLOUT : EPOLLIN);
}

void Server::drop(Id id, const Error& why) {
  const auto it = clients_.find(id);
  if (it == clients_.end()) return;
  // A client that ends is no event; one that breaks the rules is.
  const bool usual = why.code() == Errc::kUnavailable || why.sys_errno() == EPIPE;
  log_.write(usual ? log::Level::kDebug : log::Level::kWarn, "a connection was closed",
             {{"error", why}});
  loop_.unwatch(it->second.watch);
  clients_.erase(it);
}

void Server::tick() {
  const Deadline now = Clock::now();
  if (now >= accept_again_) {
    accept_again_ = Deadline::max();
    loop_.change(listener_watch_, EPOLLIN);
  }
  std::vector<Id> late;
  for (const auto& [id, client] : clients_) {
    if (!client.greeted && now >= client.hello_by) late.push_back(id);
  }
  for (const Id id : late) drop(id, Error(Errc::kTimeout, "no hello in time"));
}

Deadline Server::next_due() const {
  Deadline due = accept_again_;
  for (const auto& [id, client] : clients_) {
    if (!client.greeted) due = std::min(due, client.hello_by);
  }
  return due;
}

}  // namespace glovebox::warden
