// The server's inside, shared by server.cc and connection.cc.

#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>

#include "async/gate.h"
#include "net/loop.h"
#include "net/server.h"

namespace glovebox::net {

class Connection;

struct Server::Impl {
  Impl(const Executor& e, ServerLimits l, Handler h)
      : executor(e), loop(Loop::of(e)), limits(l), handler(std::move(h)), drained(loop) {}

  struct Listener {
    explicit Listener(Loop& loop) : watch(loop) {}
    ~Listener();
    UniqueFd fd;
    Watch watch;
    std::string path;  // Of a Unix socket that is ours to unlink.
    std::uint64_t inode = 0;
  };

  Executor executor;
  Loop& loop;
  ServerLimits limits;
  Handler handler;
  std::list<Listener> listeners;
  Link connections;
  std::size_t count = 0;
  bool closing = false;
  Event drained;  // Set when `closing` and no connection is left.

  static Result<void> add_listener(const std::shared_ptr<Impl>& self, UniqueFd fd,
                                   std::string unix_path);
  static Task<void> accept_loop(std::shared_ptr<Impl> self, Listener& listener);
  static Task<void> serve(std::shared_ptr<Impl> self, std::unique_ptr<Connection> connection);
  static void start(const std::shared_ptr<Impl>& self, UniqueFd fd);
  void stop_listening();
  void cut_all();
};

}  // namespace glovebox::net
