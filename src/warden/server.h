// Server: the warden's socket. It takes one request at a time from each connection in turn, has
// the Keeper carry it out, and answers.
//
// A connection is closed when its peer is neither root nor the client's uid, when it does not say
// a valid hello within hello_within, when it sends what is no message, or when it does not read
// its events. The peers are trusted not to flood: they are our own daemon; the bounds are there
// so that its bugs stay its own.

#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/log.h"
#include "base/result.h"
#include "warden/connection.h"
#include "warden/keeper.h"
#include "warden/loop.h"
#include "warden/protocol/messages.h"

namespace glovebox::warden {

struct ServerConfig {
  std::string socket_path;
  uid_t client_uid = 0;
  gid_t client_gid = 0;
  std::string agent_socket_dir;  // Told to clients.
  std::size_t connections_max = 16;
  // Ends that nobody was subscribed to hear of. The oldest is forgotten; a list tells as well.
  std::size_t exits_kept = 1024;
  Clock::duration hello_within = std::chrono::seconds(5);
};

class Server {
 public:
  // Borrows all of them; `keeper` is used from the first turn of the loop on.
  static Result<std::unique_ptr<Server>> listen(ServerConfig config, Keeper& keeper, Loop& loop,
                                                log::Logger& log);
  ~Server();  // Closes all connections and removes the socket.
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Tells subscribers, or keeps it for the next one.
  void publish(ExitedEvent event);
  // Closes those whose hello is late. Call it at next_due().
  void tick();
  Deadline next_due() const;
  std::size_t connections() const noexcept { return clients_.size(); }

 private:
  struct Client {
    explicit Client(UniqueFd fd) : connection(std::move(fd)) {}
    Connection connection;
    Loop::Token watch = 0;
    Deadline hello_by;
    bool greeted = false;
    bool subscribed = false;
  };
  using Id = std::uint64_t;

  struct Reply {
    std::string payload;
    std::vector<UniqueFd> fds;
  };

  Server(ServerConfig config, Keeper& keeper, Loop& loop, log::Logger& log, UniqueFd listener);
  void accept();
  void pause_accepting();
  void on_ready(Id id, std::uint32_t events);
  Result<void> serve(Client& client, std::uint32_t events);
  Result<void> handle(Client& client, const Message& request);
  Result<Reply> carry_out(Client& client, const Message& request);
  Result<Reply> greet(Client& client, const Message& request);
  Result<void> deliver_kept(Client& client);
  void watch_for_what_is_next(Client& client);
  void drop(Id id, const Error& why);

  const ServerConfig config_;
  Keeper& keeper_;
  Loop& loop_;
  log::Logger& log_;
  UniqueFd listener_;
  Loop::Token listener_watch_ = 0;
  Deadline accept_again_ = Deadline::max();
  std::map<Id, Client> clients_;
  Id next_id_ = 1;
  std::deque<ExitedEvent> kept_;
  std::vector<char> buffer_;
};

}  // namespace glovebox::warden
