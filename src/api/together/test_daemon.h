// TestDaemon: the daemon without its process: real server, real domain and store, a runtime whose
// agent and ports are servers of the test's. For *_test.cc only.

#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "api/native/native.h"
#include "async/coro.h"
#include "async/time_source.h"
#include "gateway/gateway.h"
#include "net/client.h"
#include "net/websocket.h"
#include "sandbox/fake_runtime.h"
#include "sandbox/schema.h"
#include "store/migrate.h"
#include "testing/temp_dir.h"

namespace glovebox::api::native {

// Connects to a listening Unix socket; nothing waits, since the backlog is free.
inline Result<UniqueFd> connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(fd.get(), generic, sizeof address) != 0) {
    return Error(Errc::kUnavailable, "nothing listens there");
  }
  return fd;
}

// A FakeRuntime with an agent and ports.
class TestRuntime final : public sandbox::Runtime {
 public:
  explicit TestRuntime(async::TimeSource& time) : fake(time) {}
  sandbox::FakeRuntime fake;
  std::string agent_path;                      // Empty: no agent answers.
  std::map<std::uint16_t, std::string> ports;  // Where each one leads.

  std::string_view name() const override { return fake.name(); }
  sandbox::IsolationClass isolation() const override { return fake.isolation(); }
  void on_exit(sandbox::ExitListener listener) override { fake.on_exit(std::move(listener)); }
  Task<Result<void>> create(sandbox::LaunchSpec spec, Deadline d) override {
    return fake.create(std::move(spec), d);
  }
  Task<Result<void>> destroy(SandboxId id, Deadline d) override {
    return fake.destroy(std::move(id), d);
  }
  Task<Result<void>> freeze(SandboxId id, Deadline d) override {
    return fake.freeze(std::move(id), d);
  }
  Task<Result<void>> thaw(SandboxId id, Deadline d) override { return fake.thaw(std::move(id), d); }
  Task<Result<sandbox::Usage>> usage(SandboxId id, Deadline d) override {
    return fake.usage(std::move(id), d);
  }
  Task<Result<std::vector<sandbox::Live>>> list(Deadline d) override { return fake.list(d); }
  Task<Result<UniqueFd>> open_agent(SandboxId, Deadline) override {
    if (agent_path.empty()) co_return Error(Errc::kUnavailable, "no agent");
    co_return connect_to(agent_path);
  }
  Task<Result<UniqueFd>> open_port(SandboxId, std::uint16_t port, Deadline) override {
    const auto it = ports.find(port);
    if (it == ports.end()) co_return Error(Errc::kUnavailable, "nothing listens there");
    co_return connect_to(it->second);
  }
};

// What the servers inside do with a request; a test sets it.
using Inside = std::function<Task<void>(net::Exchange&)>;

struct DaemonSettings {
  bool gateway_key_required = true;
  std::vector<std::uint32_t> socket_uids{};
};

class TestDaemon {
 public:
  explicit TestDaemon(const DaemonSettings& settings = {})
      : time(io.get_executor()),
        db(open_db(dir / "t.db")),
        keys(sandbox::ApiKeys::load(db, time).value()),
        runtime(time),
        service(io, db, runtime, time, log, {}),
        auth(keys, settings.socket_uids),
        upstreams({}),
        instruments(registry),
        gateway(service, auth, upstreams, instruments, gateway_options(settings)),
        native(service, auth, upstreams, instruments, registry, native_options()),
        front(log, instruments, {&gateway, &native}),
        server(io, {}, [this](net::Exchange& e) { return front.handle(e); }),
        agent(io, {}, [this](net::Exchange& e) { return on_agent(e); }),
        program(io, {}, [this](net::Exchange& e) { return on_program(e); }) {
    port = server.listen_tcp("127.0.0.1", 0).value();
    EXPECT_TRUE(server.listen_unix(dir / "api.sock", 0600));
    EXPECT_TRUE(agent.listen_unix(dir / "agent.sock", 0600));
    EXPECT_TRUE(program.listen_unix(dir / "program.sock", 0600));
    runtime.agent_path = dir / "agent.sock";
    runtime.ports[8080] = dir / "program.sock";
    on_agent = [](net::Exchange& e) { return reply_text(e, 200, "from the agent"); };
    on_program = [](net::Exchange& e) { return reply_text(e, 200, "from the program"); };
    key = keys.create("test").value().secret;
    EXPECT_TRUE(service.start());
    while (service.not_ready()) io.run_one_for(std::chrono::seconds(5));
  }

  ~TestDaemon() {
    const Deadline soon = after(std::chrono::milliseconds(200));
    run(server.close(soon));
    run(agent.close(soon));
    run(program.close(soon));
    run(service.close(soon));
  }

  // Runs everything until the task has ended.
  template <class T>
  T run(Task<T> task) {
    std::optional<T> result;
    boost::asio::co_spawn(io, std::move(task), [&](std::exception_ptr e, T value) {
      if (e) std::rethrow_exception(e);
      result = std::move(value);
    });
    until([&] { return result.has_value(); });
    return std::move(result).value();
  }
  void run(Task<void> task) {
    bool done = false;
    boost::asio::co_spawn(io, std::move(task), [&](std::exception_ptr e) {
      if (e) std::rethrow_exception(e);
      done = true;
    });
    until([&] { return done; });
  }
  // A test that waits for ever ends with a message instead.
  template <class F>
  void until(F done) {
    const Deadline limit = after(std::chrono::seconds(20));
    io.restart();
    while (!done() && Clock::now() < limit) io.run_one_for(std::chrono::milliseconds(100));
    if (!done()) throw std::runtime_error("waited 20 s in vain");
  }

  net::ClientConnection dial() {
    return net::ClientConnection(
        run(net::Stream::connect_tcp("127.0.0.1", port, after(std::chrono::seconds(5)))).value());
  }
  net::ClientConnection dial_socket() {
    return net::ClientConnection(
        run(net::Stream::connect_unix(dir / "api.sock", after(std::chrono::seconds(5)))).value());
  }

  // Over TCP with the key, unless the headers say otherwise ("X-API-Key" empty: none).
  net::Response call(const std::string& method, const std::string& target,
                     const std::string& body = "", net::Headers headers = {}) {
    if (!headers.has("X-API-Key") && !headers.has("Authorization")) headers.add("X-API-Key", key);
    if (headers.get("X-API-Key") == "none") headers.remove("X-API-Key");
    net::ClientConnection connection = dial();
    return exchange(connection, method, target, body, std::move(headers));
  }
  net::Response exchange(net::ClientConnection& connection, const std::string& method,
                         const std::string& target, const std::string& body, net::Headers headers) {
    if (!headers.has("Host")) headers.add("Host", "localhost");
    const Deadline soon = after(std::chrono::seconds(10));
    Result<net::Response> response =
        run(net::request(connection, method, target, headers, body, 1 << 20, soon));
    if (!response) throw std::runtime_error(method + " " + target + ": " + response.error().text());
    return std::move(response).value();
  }

  std::string make(const std::string& body = "{}") {
    const net::Response made = call("POST", "/api/v1/sandboxes", body);
    EXPECT_EQ(made.status, 201) << made.body;
    const std::size_t at = made.body.find("sb-");
    return at == std::string::npos ? "" : made.body.substr(at, 23);
  }

  static Task<void> reply_text(net::Exchange& exchange, int status, std::string text) {
    net::Response response;
    response.status = status;
    response.body = std::move(text);
    auto sent = co_await exchange.respond(std::move(response));
    static_cast<void>(sent);
  }

  boost::asio::io_context io{1};
  testing::TempDir dir;
  log::Logger log{STDERR_FILENO, log::Level::kError, log::Form::kConsole};
  async::SystemTime time;
  metrics::Registry registry;
  store::Database db;
  sandbox::ApiKeys keys;
  TestRuntime runtime;
  sandbox::SandboxService service;
  Authenticator auth;
  Upstreams upstreams;
  Instruments instruments;
  gateway::Gateway gateway;
  NativeApi native;
  Front front;
  Inside on_agent;
  Inside on_program;
  net::Server server;
  net::Server agent;
  net::Server program;
  std::uint16_t port = 0;
  std::string key;

 private:
  static store::Database open_db(const std::string& path) {
    auto opened = store::Database::open(path, {.check_integrity = false});
    store::Database database = std::move(opened).value();
    EXPECT_TRUE(store::migrate(database, sandbox::migrations()));
    return database;
  }
  static gateway::Options gateway_options(const DaemonSettings& settings) {
    gateway::Options options;
    options.domains = {"localhost"};
    options.key_required = settings.gateway_key_required;
    options.response_timeout = std::chrono::seconds(2);
    return options;
  }
  Options native_options() {
    Options options;
    options.json_bytes_max = 4096;
    options.checks.push_back({"sandboxes", [this] { return service.not_ready(); }});
    return options;
  }
};

}  // namespace glovebox::api::native
