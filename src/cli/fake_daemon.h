// For this folder's tests: a daemon that keeps files and commands in memory, on a Unix socket, in
// the same event loop as the command under test.

#pragma once

#include <boost/json/fwd.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "async/task.h"
#include "base/unique_fd.h"
#include "cli/options.h"
#include "net/server.h"
#include "net/websocket.h"

namespace glovebox::cli {

inline constexpr char kFakeId[] = "sb-aaaaaaaaaaaaaaaaaaaa";

class FakeDaemon {
 public:
  FakeDaemon(boost::asio::io_context& io, std::string socket_path);
  ~FakeDaemon();

  struct File {
    std::string type = "file";
    std::string bytes;
    std::string mode = "0644";
  };

  // What is there, by whole path; relative ones are below /home/user.
  std::map<std::string, File> files;
  // Answers to files/list, instead of what `files` holds: any JSON, in this order.
  std::vector<std::string> listings;
  std::set<std::string> sandboxes;
  // Answers by the target's end, before anything else: "/processes" to a body, with status 200.
  std::map<std::string, std::string> answers;
  std::vector<std::string> bodies;  // Of the requests that `answers` answered.
  std::string list_body;            // Answer to GET sandboxes, when not empty.
  std::set<std::string> programs{"python3", "echo", "cat", "exit", "sleep",
                                 "signal",  "slow", "tty", "lossy"};
  std::vector<std::string> requests;    // "METHOD target", as they came.
  std::vector<std::string> exec_texts;  // The first message of each exec.
  std::vector<std::string> inputs;      // Text messages that came later.
  bool refuse_create = false;
  bool unauthorized = false;
  bool stall_create = false;
  std::function<void()> on_exec_start;
  int hung_up = 0;  // Commands whose client went away before their end.

 private:
  Task<void> handle(net::Exchange& exchange);
  Task<bool> handle_canned(net::Exchange& exchange);
  Task<void> handle_files(net::Exchange& exchange, std::string rest);
  Task<void> handle_exec(net::Exchange& exchange);
  Task<void> play(net::WebSocket& socket, std::vector<std::string> args);

  std::unique_ptr<net::Server> server_;
};

struct Ran {
  int code = -1;
  std::string out;
  std::string err;
};

// Runs one command against a FakeDaemon, with files as its output.
class CommandTest {
 public:
  CommandTest();
  ~CommandTest();

  FakeDaemon& daemon() noexcept { return *daemon_; }
  const std::string& dir() const noexcept { return dir_; }
  boost::asio::io_context& io() noexcept { return io_; }

  Globals globals;
  UniqueFd input;            // Standard input; /dev/null when not set.
  int out_fd = -1;           // Instead of a file, when set. Borrowed.
  Ran run(Command command);  // Fails the test when it takes over 20 s.

 private:
  boost::asio::io_context io_{1};
  std::string dir_;
  std::unique_ptr<FakeDaemon> daemon_;
};

}  // namespace glovebox::cli
