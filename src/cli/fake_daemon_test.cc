// The fake daemon; the tests that use it are in the files named after what they test.

#include "cli/fake_daemon.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <boost/json.hpp>
#include <cstdlib>
#include <filesystem>

#include "async/coro.h"
#include "base/base64.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/path_spec.h"
#include "net/url.h"

namespace glovebox::cli {
namespace {

namespace json = boost::json;
using std::chrono::seconds;

constexpr std::string_view kApi = "/api/v1/sandboxes";

net::Response reply(int status, std::string body) {
  net::Response out;
  out.status = status;
  out.headers.add("Content-Type", "application/json");
  out.body = std::move(body);
  return out;
}

net::Response fault(int status, std::string_view code, std::string_view message) {
  json::object body;
  body["code"] = code;
  body["message"] = message;
  return reply(status, to_text(body));
}

std::string sandbox_json(const std::string& id) {
  json::object out;
  out["id"] = id;
  out["name"] = "my-box";
  out["state"] = "running";
  out["expires_at"] = "2030-01-01T00:00:00.000Z";
  return to_text(out);
}

std::string entry_json(const std::string& path, const FakeDaemon::File& file) {
  json::object out;
  if (is_utf8(path)) {
    out["path"] = path;
  } else {
    out["path"] = "?";
    out["path_b64"] = to_base64(path);
  }
  out["name"] = is_utf8(path) ? base_name(path) : "?";
  out["type"] = file.type;
  out["size"] = file.bytes.size();
  out["mode"] = file.mode;
  return to_text(out);
}

std::string whole(std::string path) {
  if (!path.starts_with('/')) path = "/home/user/" + path;
  return std::filesystem::path(path).lexically_normal().string();
}

Task<void> send(net::WebSocket& socket, std::string text) {
  const Result<void> ignored = co_await socket.write_text(text, after(seconds(5)));
  static_cast<void>(ignored);
}

Task<bool> send_output(net::WebSocket& socket, int stream, std::string bytes) {
  const std::string frame = std::string(1, static_cast<char>(stream)) + bytes;
  const Result<void> sent = co_await socket.write_binary(frame, after(seconds(5)));
  co_return sent.has_value();
}

std::string exit_event(int code, int signal, bool timed_out) {
  json::object event;
  event["event"] = "exit";
  event["exit_code"] = code;
  if (signal != 0) event["signal"] = signal;
  event["timed_out"] = timed_out;
  event["oom_killed"] = false;
  event["duration_ms"] = 5;
  return to_text(event);
}

}  // namespace

FakeDaemon::FakeDaemon(boost::asio::io_context& io, std::string socket_path)
    : server_(std::make_unique<net::Server>(
          io, net::ServerLimits{}, [this](net::Exchange& exchange) { return handle(exchange); })) {
  const Result<void> listening = server_->listen_unix(socket_path, 0600);
  EXPECT_TRUE(listening) << listening.error().text();
}

FakeDaemon::~FakeDaemon() = default;

Task<bool> FakeDaemon::handle_canned(net::Exchange& exchange) {
  const std::string line = exchange.head().method + " " + exchange.head().target;
  for (const auto& [end, body] : answers) {
    if (!line.ends_with(end)) continue;
    Result<std::string> sent = co_await exchange.read_whole_body(1 << 20);
    bodies.push_back(sent ? *sent : "");
    net::Response answer = reply(200, body);
    const Result<void> ignored = co_await exchange.respond(std::move(answer));
    static_cast<void>(ignored);
    co_return true;
  }
  co_return false;
}

Task<void> FakeDaemon::handle(net::Exchange& exchange) {
  const net::RequestHead& head = exchange.head();
  const std::string method = head.method;
  std::string target = head.target;
  requests.push_back(method + " " + target);
  const bool canned = co_await handle_canned(exchange);
  if (canned) co_return;
  net::Response answer = fault(404, "not_found", "no such route");
  const std::string one = std::string(kApi) + "/" + kFakeId;
  if (unauthorized) {
    answer = fault(401, "unauthorized", "no such key");
  } else if (target.starts_with(one + "/files")) {
    co_await handle_files(exchange, target.substr(one.size() + 6));
    co_return;
  } else if (target.starts_with(one + "/exec")) {
    co_await handle_exec(exchange);
    co_return;
  } else if (method == "POST" && target == kApi) {
    if (stall_create) co_await exchange.wait_client_gone();
    if (stall_create) co_return;
    if (refuse_create) {
      answer = fault(429, "exhausted", "the node is full");
    } else {
      sandboxes.insert(kFakeId);
      answer = reply(201, sandbox_json(kFakeId));
    }
  } else if (method == "GET" && target.starts_with(std::string(kApi) + "?")) {
    answer = reply(200, list_body.empty() ? R"({"sandboxes":[],"next_cursor":null})" : list_body);
  } else if (method == "DELETE" && target == one) {
    sandboxes.erase(kFakeId);
    answer = reply(204, "");
  } else if (target == one || target == one + "/extend" || target == one + "/pause") {
    answer = reply(200, sandbox_json(kFakeId));
  }
  const Result<void> ignored = co_await exchange.respond(std::move(answer));
  static_cast<void>(ignored);
}

Task<void> FakeDaemon::handle_files(net::Exchange& exchange, std::string rest) {
  const Result<net::Target> target = net::parse_target("/x" + rest);
  std::string path;
  if (target) path = target->param("path").value_or("");
  if (target && target->param("path_b64")) path = *from_base64(*target->param("path_b64"));
  const bool is_list = rest.starts_with("/list");
  path = whole(path);
  Result<std::string> body = co_await exchange.read_whole_body(64 << 20);
  net::Response answer = fault(404, "not_found", path + " is not there");
  const auto at = files.find(path);
  if (rest.starts_with("/mkdir")) {
    const json::object request = *parse_object(*body);
    const std::string name = whole(text_at(request, "path"));
    files[name] = File{"dir", "", "0755"};
    answer = reply(200, entry_json(name, files[name]));
  } else if (is_list && !listings.empty()) {
    answer = reply(200, listings.front());
    listings.erase(listings.begin());
  } else if (is_list) {
    std::string entries;
    for (const auto& [name, file] : files) {
      if (!name.starts_with(path + "/") || name.find('/', path.size() + 1) != std::string::npos) {
        continue;
      }
      entries += (entries.empty() ? "" : ",") + entry_json(name, file);
    }
    answer = reply(200, R"({"entries":[)" + entries + R"(],"next_cursor":null})");
  } else if (exchange.head().method == "PUT") {
    files[path] = File{"file", *body, target->param("mode").value_or("")};
    answer = reply(200, entry_json(path, files[path]));
  } else if (at != files.end() && rest.starts_with("/stat")) {
    answer = reply(200, entry_json(path, at->second));
  } else if (at != files.end() && at->second.type == "file") {
    answer = reply(200, at->second.bytes);
  }
  const Result<void> ignored = co_await exchange.respond(std::move(answer));
  static_cast<void>(ignored);
}

Task<void> FakeDaemon::handle_exec(net::Exchange& exchange) {
  Result<std::unique_ptr<net::WebSocket>> socket = co_await exchange.accept_websocket();
  if (!socket) co_return;
  Result<net::WebSocket::Message> first = co_await (*socket)->read(after(seconds(5)));
  if (!first) co_return;
  exec_texts.push_back(first->data);
  const json::object request = *parse_object(first->data);
  std::vector<std::string> args;
  for (const json::value& arg : array_at(request, "args")) args.emplace_back(arg.get_string());
  if (args.empty()) args = {"echo"};
  if (on_exec_start) on_exec_start();
  co_await play(**socket, std::move(args));
  co_await (*socket)->close("", after(seconds(2)));
}

Task<void> FakeDaemon::play(net::WebSocket& socket, std::vector<std::string> args) {
  if (!programs.contains(args[0])) {
    std::string code = args[0] == "forbidden" ? "denied" : "not_found";
    co_await send(
        socket, R"({"event":"error","code":")" + code + R"(","message":"no )" + args[0] + R"("})");
    co_return;
  }
  co_await send(socket, R"({"event":"start","pid":7})");
  const bool reads = args[0] == "cat" || args[0] == "sleep" || args[0] == "tty";
  bool quit = false;
  bool resized = false;
  while (reads) {
    Result<net::WebSocket::Message> message = co_await socket.read(after(seconds(15)));
    if (!message || message->closed) {
      ++hung_up;
      co_return;
    }
    if (message->binary) {
      co_await send_output(socket, 1, message->data);
      quit = quit || message->data.find('q') != std::string::npos;
    } else {
      inputs.push_back(message->data);
      if (message->data.find("close_stdin") != std::string::npos) break;
      if (message->data.find("SIGINT") != std::string::npos) break;
      resized = resized || message->data.find("resize") != std::string::npos;
    }
    // Whichever comes first.
    if (args[0] == "tty" && quit && resized) break;
  }
  if (args[0] == "slow") {
    const std::string block(60'000, 'x');
    bool taken = true;
    for (int i = 0; i < 2000 && taken; ++i) taken = co_await send_output(socket, 1, block);
    if (!taken) {
      ++hung_up;
      co_return;
    }
  }
  if (args[0] == "echo" || args[0] == "python3") {
    co_await send_output(socket, 1, std::string("out\0\xff\r\n", 7));
    co_await send_output(socket, 2, "err\n");
  }
  if (args[0] == "lossy") co_await send(socket, R"({"event":"lost","bytes":12})");
  const int number = args.size() > 1 ? std::atoi(args[1].c_str()) : 0;
  if (args[0] == "exit") {
    co_await send(socket, exit_event(number, 0, false));
  } else if (args[0] == "signal") {
    co_await send(socket, exit_event(128 + number, number, args.size() > 2));
  } else {
    co_await send(socket, exit_event(0, 0, false));
  }
}

namespace {

UniqueFd memory_file() { return UniqueFd(::memfd_create("output", MFD_CLOEXEC)); }

std::string contents(int fd) {
  std::string out;
  std::array<char, 65536> buffer{};
  for (off_t at = 0;;) {
    const ssize_t got = ::pread(fd, buffer.data(), buffer.size(), at);
    if (got <= 0) return out;
    out.append(buffer.data(), static_cast<std::size_t>(got));
    at += got;
  }
}

}  // namespace

CommandTest::CommandTest() {
  std::string pattern = ::testing::TempDir() + "glovebox-cli-XXXXXX";
  dir_ = ::mkdtemp(pattern.data());
  daemon_ = std::make_unique<FakeDaemon>(io_, dir_ + "/d.sock");
}

CommandTest::~CommandTest() {
  daemon_.reset();
  std::filesystem::remove_all(dir_);
}

Ran CommandTest::run(Command command) {
  const UniqueFd out = memory_file();
  const UniqueFd err = memory_file();
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  Endpoint endpoint;
  endpoint.unix_path = dir_ + "/d.sock";
  const Streams streams{input ? input.get() : null.get(), out_fd >= 0 ? out_fd : out.get(),
                        err.get()};
  Shell shell(io_.get_executor(), globals, streams, {endpoint});
  Ran ran;
  io_.restart();
  boost::asio::co_spawn(io_, dispatch(shell, std::move(command)),
                        [&](const std::exception_ptr& thrown, int code) {
                          EXPECT_FALSE(thrown);
                          ran.code = code;
                          io_.stop();
                        });
  io_.run_for(seconds(20));
  EXPECT_NE(ran.code, -1) << "it did not end";
  // The daemon's side finishes what it is at.
  io_.restart();
  io_.run_for(std::chrono::milliseconds(20));
  ran.out = contents(out.get());
  ran.err = contents(err.get());
  return ran;
}

}  // namespace glovebox::cli
