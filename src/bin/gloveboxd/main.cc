// gloveboxd: the wiring diagram. Everything is made here, in the order in which it depends on each
// other, and nothing finds anything by itself.
//
// One io_context and one thread serve everything. Whoever makes it several gives each thread a
// Server of its own on the same listeners (SO_REUSEPORT); the domain stays on one.

#include <signal.h>
#include <unistd.h>

#include <boost/asio/signal_set.hpp>
#include <cstdio>

#include "api/common/auth.h"
#include "api/common/domain_metrics.h"
#include "api/common/front.h"
#include "api/common/json_writer.h"
#include "api/common/upstreams.h"
#include "api/native/native.h"
#include "async/coro.h"
#include "async/time_source.h"
#include "bin/gloveboxd/settings.h"
#include "config/config.h"
#include "daemon/first_key.h"
#include "daemon/flags.h"
#include "daemon/process.h"
#include "daemon/process_metrics.h"
#include "gateway/gateway.h"
#include "net/server.h"
#include "sandbox/keys.h"
#include "sandbox/schema.h"
#include "sandbox/service.h"
#include "store/database.h"
#include "store/migrate.h"
#include "warden/client/runtime.h"

namespace glovebox {
namespace {

namespace asio = boost::asio;

using SignalSet = asio::basic_signal_set<Executor>;

// --- before anybody is served ---

Result<void> settle_process(const daemon::Flags& flags, const config::Config& config) {
  ::signal(SIGPIPE, SIG_IGN);  // A peer that hangs up is an error code.
  if (flags.die_with_parent) GB_TRY(daemon::die_with_parent());
  GB_TRY(daemon::raise_open_files());
  std::optional<daemon::User> user;
  if (::geteuid() == 0 && !config.user.empty()) {
    GB_TRY_ASSIGN(user, daemon::find_user(config.user));
  } else if (::geteuid() == 0 && !flags.allow_root) {
    return Error(Errc::kDenied,
                 "will not run as root: set user in the configuration, or give --allow-root");
  }
  GB_TRY(daemon::prepare_dir(config.run_dir, 0755, user));
  GB_TRY(daemon::prepare_dir(config.data_dir, 0700, user));
  if (user) GB_TRY(daemon::become(*user));
  return {};
}

Result<store::Database> open_database(const config::Config& config) {
  GB_TRY_ASSIGN(store::Database db, store::Database::open(config.data_dir + "/glovebox.db", {}));
  GB_TRY(store::migrate(db, sandbox::migrations()).context("migrate the database"));
  return db;
}

struct Addresses {
  std::string http;  // "127.0.0.1:7070", or empty.
  std::string socket;
};

Result<Addresses> listen(net::Server& server, const config::Config& config) {
  Addresses at;
  for (UniqueFd& fd : daemon::inherited_listeners()) GB_TRY(server.listen_on(std::move(fd)));
  if (config.listen != "off") {
    GB_TRY_ASSIGN(const config::Address address, config::parse_address(config.listen));
    GB_TRY_ASSIGN(const std::uint16_t port,
                  server.listen_tcp(address.host, address.port).context(config.listen));
    const bool v6 = address.host.find(':') != std::string::npos;
    at.http = (v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(port);
  }
  if (config.socket != "off") {
    const unsigned mode = config.socket_uids.empty() ? 0600 : 0666;
    GB_TRY(server.listen_unix(config.socket, mode).context(config.socket));
    at.socket = config.socket;
  }
  return at;
}

Result<void> announce(const daemon::Flags& flags, const Addresses& at) {
  api::JsonWriter line;
  line.begin_object().key("event").text("listening");
  line.key("address");
  at.http.empty() ? line.null() : line.text(at.http);
  line.key("socket");
  at.socket.empty() ? line.null() : line.text(at.socket);
  line.key("pid").integer(::getpid()).end_object();
  const std::string text = std::move(line).take() + "\n";
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
  if (!flags.ready_file.empty()) GB_TRY(daemon::write_private_file(flags.ready_file, text));
  daemon::notify_supervisor("READY=1");
  return {};
}

void warn_of_risks(const config::Config& config, log::Logger& log) {
  if (config.listen == "off") return;
  const bool loopback = config.listen.starts_with("127.") || config.listen.starts_with("[::1]");
  if (!loopback) log.warn("listening beyond loopback without TLS", {{"listen", config.listen}});
  if (!config.gateway.key_required) {
    log.warn("ports of sandboxes need no key: gateway.key_required is false");
  }
}

// --- while it runs ---

struct Running {
  const daemon::Flags& flags;
  const config::Config& config;
  log::Logger& log;
  net::Server& server;
  sandbox::SandboxService& service;
  warden::WardenRuntime& runtime;
  Timer& sweep_timer;
  bool& draining;
};

void reload(Running& d) {
  const Result<config::Config> fresh = daemon::load_config(d.flags);
  if (!fresh) {
    d.log.error("configuration not taken over", {{"error", fresh.error()}});
    return;
  }
  d.log.set_level(log_level(fresh.value()));
  d.log.info("configuration read again", {{"log_level", fresh.value().log.level}});
}

// Until SIGTERM or SIGINT; then everything ends in order. A second one ends the process at once.
Task<void> run_until_signal(Running& d, SignalSet& signals) {
  for (;;) {
    const auto [ec, number] = co_await signals.async_wait(use_result);
    if (ec) co_return;
    if (number != SIGHUP) break;
    reload(d);
  }
  d.draining = true;
  daemon::notify_supervisor("STOPPING=1");
  d.log.info("draining", {{"connections", d.server.connections()}});
  signals.async_wait([](const boost::system::error_code& ec, int) {
    if (!ec) ::_exit(1);
  });
  const Deadline deadline = after(d.config.http.drain_timeout);
  co_await d.server.close(deadline);
  // Without a warden nothing can be finished: what waits for it is told at once.
  if (!d.runtime.connected()) co_await d.runtime.close();
  co_await d.service.close(deadline);
  co_await d.runtime.close();
  d.sweep_timer.cancel();
  signals.cancel();
  d.log.info("ended");
}

// Gives descriptors back that nobody uses any more.
Task<void> sweep(api::Upstreams& upstreams, Timer& timer) {
  for (;;) {
    timer.expires_after(std::chrono::seconds(10));
    const auto [ec] = co_await timer.async_wait(use_result);
    if (ec) co_return;
    upstreams.drop_unused(Clock::now());
  }
}

Result<void> run(const daemon::Flags& flags, const config::Config& config, log::Logger& log) {
  GB_TRY(settle_process(flags, config));

  asio::io_context io(1);
  async::SystemTime time(io.get_executor());
  metrics::Registry registry;
  registry.add_collector(daemon::write_process_metrics);

  GB_TRY_ASSIGN(store::Database db, open_database(config));
  GB_TRY_ASSIGN(sandbox::ApiKeys keys, sandbox::ApiKeys::load(db, time));
  if (!flags.api_key_file.empty()) GB_TRY(daemon::ensure_key_file(keys, flags.api_key_file));

  warden::ClientConfig to_warden;
  to_warden.socket_path = config.warden_socket;
  warden::WardenRuntime runtime(io.get_executor(), to_warden, log);
  sandbox::SandboxService service(io, db, runtime, time, log, service_config(config));
  registry.add_collector(
      [&service](metrics::Writer& out) { api::write_metrics(out, service.snapshot()); });

  const std::vector<std::uint32_t> uids(config.socket_uids.begin(), config.socket_uids.end());
  const api::Authenticator auth(keys, uids);
  api::Upstreams upstreams({.destinations_max = config.gateway.destinations_max,
                            .idle_max = config.gateway.idle_connections_max});
  api::Instruments instruments(registry);
  gateway::Gateway gateway(service, auth, upstreams, instruments, gateway_options(config));

  Timer sweep_timer(io.get_executor());
  bool draining = false;
  api::native::Options native_options;
  native_options.json_bytes_max = config.http.json_bytes_max;
  native_options.checks = {
      {"sandboxes", [&service] { return service.not_ready(); }},
      {"warden",
       [&runtime]() -> std::optional<std::string> {
         if (runtime.connected()) return std::nullopt;
         return "the warden cannot be reached";
       }},
      {"draining",
       [&draining]() -> std::optional<std::string> {
         if (!draining) return std::nullopt;
         return "the daemon is about to end";
       }},
  };
  api::native::NativeApi native(service, auth, upstreams, instruments, registry,
                                std::move(native_options));
  api::Front front(log, instruments, {&gateway, &native});
  net::Server server(io, server_limits(config),
                     [&front](net::Exchange& exchange) { return front.handle(exchange); });

  // What can fail comes before what must be closed again.
  GB_TRY_ASSIGN(const Addresses at, listen(server, config));
  GB_TRY(service.start());
  runtime.start();
  warn_of_risks(config, log);

  SignalSet signals(io.get_executor(), SIGTERM, SIGINT, SIGHUP);
  Running running{flags, config, log, server, service, runtime, sweep_timer, draining};
  asio::co_spawn(io, run_until_signal(running, signals), asio::detached);
  asio::co_spawn(io, sweep(upstreams, sweep_timer), asio::detached);
  log.info("listening",
           {{"address", at.http}, {"socket", at.socket}, {"version", GLOVEBOX_VERSION}});
  const Result<void> announced = announce(flags, at);
  if (!announced) ::raise(SIGTERM);  // Nobody would learn that it runs: end in order.
  io.run();                          // Returns when the last coroutine has ended.
  return announced;
}

int start(const daemon::Flags& flags) {
  const Result<config::Config> config = daemon::load_config(flags);
  if (!config) {
    std::fprintf(stderr, "%s\n", config.error().text().c_str());
    return 2;
  }
  if (flags.mode == daemon::Flags::Mode::kCheckConfig) {
    std::puts("ok");
    return 0;
  }
  log::Logger log(STDERR_FILENO, log_level(config.value()), log_form(config.value()));
  const Result<void> done = run(flags, config.value(), log);
  if (done) return 0;
  log.error("cannot start", {{"error", done.error()}});
  return 1;
}

}  // namespace
}  // namespace glovebox

int main(int argc, char** argv) {
  using namespace glovebox;
  const std::vector<const char*> args(argv + 1, argv + argc);
  const Result<daemon::Flags> flags = daemon::parse_flags(args);
  if (!flags) {
    std::fprintf(stderr, "gloveboxd: %s\n", flags.error().text().c_str());
    return 2;
  }
  switch (flags.value().mode) {
    case daemon::Flags::Mode::kHelp: std::fputs(daemon::help_text().c_str(), stdout); return 0;
    case daemon::Flags::Mode::kVersion: std::puts("gloveboxd " GLOVEBOX_VERSION); return 0;
    case daemon::Flags::Mode::kPrintReference:
      std::fputs(config::reference_markdown().c_str(), stdout);
      return 0;
    case daemon::Flags::Mode::kPrintSample:
      std::fputs(config::sample_toml().c_str(), stdout);
      return 0;
    case daemon::Flags::Mode::kCheckConfig:
    case daemon::Flags::Mode::kRun: return start(flags.value());
  }
  return 2;
}
