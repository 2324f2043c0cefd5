// up: the whole platform in the foreground, for a laptop, a test or a container.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <boost/json.hpp>
#include <chrono>
#include <climits>
#include <csignal>
#include <utility>

#include "async/coro.h"
#include "cli/commands.h"
#include "cli/display.h"
#include "cli/json.h"
#include "cli/layout.h"
#include "cli/supervisor.h"
#include "os/files.h"
#include "os/sys.h"

namespace glovebox::cli {
namespace {

namespace json = boost::json;

constexpr std::chrono::seconds kReadyWithin{60};
constexpr std::chrono::milliseconds kAskEvery{50};

Result<std::string> own_directory() {
  std::array<char, PATH_MAX> path{};
  GB_TRY_ASSIGN(const ssize_t size, os::retry("readlink", "/proc/self/exe", [&] {
                  return ::readlink("/proc/self/exe", path.data(), path.size());
                }));
  const std::string whole(path.data(), static_cast<std::size_t>(size));
  return whole.substr(0, whole.rfind('/'));
}

struct Programs {
  std::string warden;
  std::string daemon;
  std::string agent;
};

Result<Programs> find_programs() {
  GB_TRY_ASSIGN(const std::string dir, own_directory());
  Programs programs{dir + "/glovebox-warden", dir + "/gloveboxd", dir + "/glovebox-agent"};
  for (const std::string* path : {&programs.warden, &programs.daemon, &programs.agent}) {
    if (::access(path->c_str(), X_OK) != 0) {
      return Error(Errc::kNotFound, *path + " is missing: it belongs beside this program");
    }
  }
  return programs;
}

std::string absolute(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  if (path.starts_with('/')) return path;
  std::array<char, PATH_MAX> cwd{};
  if (::getcwd(cwd.data(), cwd.size()) == nullptr) return path;
  return std::string(cwd.data()) + "/" + path;
}

ProgramSpec warden_spec(const Programs& programs, const Layout& layout, const Identity& daemon,
                        const UpOptions& options) {
  ProgramSpec spec;
  spec.name = "glovebox-warden";
  spec.argv = {programs.warden,
               "--socket",
               layout.warden_socket(),
               "--state-dir",
               layout.warden_state(),
               "--agent",
               programs.agent,
               "--agent-sockets",
               layout.agent_sockets(),
               "--client-uid",
               std::to_string(daemon.uid),
               "--client-gid",
               std::to_string(daemon.gid),
               "--die-with-parent"};
  if (options.pool) {
    spec.argv.insert(spec.argv.end(), {"--pool", std::to_string(*options.pool)});
  }
  if (!options.cgroup.empty()) spec.argv.insert(spec.argv.end(), {"--cgroup", options.cgroup});
  if (options.uid_base) {
    spec.argv.insert(spec.argv.end(), {"--uid-base", std::to_string(*options.uid_base)});
  }
  if (!options.log_level.empty()) {
    spec.argv.insert(spec.argv.end(), {"--log-level", options.log_level});
  }
  return spec;
}

ProgramSpec daemon_spec(const Programs& programs, const Layout& layout, const Identity& daemon,
                        const UpOptions& options) {
  ProgramSpec spec;
  spec.name = "gloveboxd";
  spec.run_as = daemon;
  spec.argv = {programs.daemon,        "--socket",         layout.socket(),       "--run-dir",
               layout.run_dir,         "--data-dir",       layout.daemon_data(),  "--warden-socket",
               layout.warden_socket(), "--api-key-file",   layout.api_key_file(), "--ready-file",
               layout.ready_file(),    "--die-with-parent"};
  if (!options.config.empty()) {
    spec.argv.insert(spec.argv.end(), {"--config", absolute(options.config)});
  }
  if (!options.listen.empty()) {
    spec.argv.insert(spec.argv.end(), {"--listen", options.listen});
  }
  if (!options.log_level.empty()) {
    spec.argv.insert(spec.argv.end(), {"--log-level", options.log_level});
  }
  return spec;
}

// A file that the daemon wrote: small, and never a link to what root alone may read.
std::string read_daemon_file(const std::string& path) {
  const Result<UniqueFd> fd =
      os::openat(AT_FDCWD, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0, os::Resolve::kAnywhere);
  if (!fd) return {};
  std::array<char, 4096> buffer{};
  const ssize_t got = ::read(fd->get(), buffer.data(), buffer.size());
  std::string text(buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

class Platform {
 public:
  Platform(Shell& shell, UpOptions options)
      : shell_(shell),
        options_(std::move(options)),
        wake_(shell.executor()),
        supervisor_(
            shell.executor(), SupervisorConfig{},
            [this](const std::string& line) { shell_.warn(line); }, [this] { wake_.cancel(); }) {
    // Each request is a line at level info: too much for a terminal that somebody works at.
    if (options_.log_level.empty() && options_.config.empty()) options_.log_level = "warn";
    layout_.data_dir = absolute(options_.data_dir);
    layout_.run_dir = absolute(options_.run_dir);
    Endpoint endpoint;
    endpoint.unix_path = layout_.socket();
    endpoints_ = {endpoint};
  }

  Task<Result<int>> run();

 private:
  Task<Result<void>> refuse_second();
  Task<Result<void>> start();
  Task<Result<void>> wait_for_socket(std::string path);
  Task<Result<void>> wait_ready();
  Task<void> pause(Clock::duration how_long);
  Task<void> remove_sandboxes();
  Result<void> announce();
  void on_signal(int signal);
  Result<void> still_wanted() const;

  Shell& shell_;
  UpOptions options_;
  Layout layout_;
  std::vector<Endpoint> endpoints_;
  Timer wake_;
  Supervisor supervisor_;
  int signal_ = 0;
  bool stopping_ = false;
};

void Platform::on_signal(int signal) {
  if (signal == SIGHUP) {
    supervisor_.signal_all(SIGHUP);
    return;
  }
  if (signal_ != 0 && stopping_) supervisor_.kill_all();
  if (signal_ == 0) signal_ = signal;
  wake_.cancel();
}

Task<void> Platform::pause(Clock::duration how_long) {
  wake_.expires_after(how_long);
  co_await wake_.async_wait(use_result);
}

Result<void> Platform::still_wanted() const {
  if (supervisor_.gave_up()) {
    return Error(Errc::kUnavailable,
                 "Glovebox did not start; `glovebox doctor` says what this host lacks");
  }
  return {};
}

Task<Result<void>> Platform::refuse_second() {
  const Result<net::Stream> stream =
      co_await net::Stream::connect_unix(layout_.socket(), after(std::chrono::seconds(2)));
  if (!stream) co_return Result<void>();
  co_return Error(Errc::kConflict, "Glovebox is running already at unix://" + layout_.socket());
}

Task<Result<void>> Platform::wait_for_socket(std::string path) {
  const Deadline deadline = after(kReadyWithin);
  while (signal_ == 0) {
    GB_CO_TRY(still_wanted());
    const Result<net::Stream> stream =
        co_await net::Stream::connect_unix(path, after(std::chrono::seconds(1)));
    if (stream) break;
    // The warden speaks another socket type; that it is there is what counts.
    if (stream.error().sys_errno() == EPROTOTYPE) break;
    if (Clock::now() > deadline) {
      co_return Error(Errc::kTimeout, "the warden does not listen at " + path);
    }
    co_await pause(kAskEvery);
  }
  co_return Result<void>();
}

Task<Result<void>> Platform::wait_ready() {
  const Deadline deadline = after(kReadyWithin);
  Result<std::string> answer;
  Interrupt own;
  const std::string nothing;
  while (signal_ == 0) {
    GB_CO_TRY(still_wanted());
    Api api(endpoints_, Redacted(), own);
    answer = co_await api.call("GET", "/ready", nothing, std::chrono::seconds(5));
    if (answer) co_return Result<void>();
    if (Clock::now() > deadline) {
      co_return std::move(answer).context("Glovebox is not ready after a minute").error();
    }
    co_await pause(kAskEvery);
  }
  co_return Result<void>();
}

Task<Result<void>> Platform::start() {
  if (::geteuid() != 0) {
    co_return Error(Errc::kDenied,
                    "must run as root, because the warden makes namespaces, mounts and cgroups: "
                    "sudo glovebox up (the daemon that talks HTTP does not run as root)");
  }
  GB_CO_TRY_ASSIGN(const Programs programs, find_programs());
  const Identity daemon = daemon_identity("/etc/passwd");
  Result<void> alone = co_await refuse_second();
  if (!alone) co_return alone;
  GB_CO_TRY(prepare_layout(layout_, daemon));
  ::unlink(layout_.ready_file().c_str());
  GB_CO_TRY(supervisor_.start(warden_spec(programs, layout_, daemon, options_)));
  Result<void> up = co_await wait_for_socket(layout_.warden_socket());
  if (!up || signal_ != 0) co_return up;
  GB_CO_TRY(supervisor_.start(daemon_spec(programs, layout_, daemon, options_)));
  co_return co_await wait_ready();
}

Result<void> Platform::announce() {
  const std::string key = read_daemon_file(layout_.api_key_file());
  std::string url;
  const Result<json::object> ready = parse_object(read_daemon_file(layout_.ready_file()));
  if (ready) {
    const std::string address = text_at(*ready, "address");
    if (!address.empty()) url = "http://" + address;
  }
  json::object facts;
  facts["url"] = url;
  facts["socket"] = layout_.socket();
  facts["data_dir"] = layout_.data_dir;
  facts["api_key_file"] = layout_.api_key_file();
  if (options_.ready_fd >= 0) {
    const std::string line = to_text(facts) + "\n";
    GB_TRY(os::retry("write", "--ready-fd",
                     [&] { return ::write(options_.ready_fd, line.data(), line.size()); }));
    ::close(options_.ready_fd);
  }
  if (shell_.json()) {
    facts["api_key"] = key;
    shell_.out_json(facts);
    return {};
  }
  if (shell_.quiet()) return {};
  std::string out = "Glovebox is ready.\n\n";
  if (!url.empty()) out += "  Address   " + safe_text(url) + "\n";
  out += "  Socket    unix://" + layout_.socket() + "  (no key needed, root only)\n";
  out += "  Data      " + layout_.data_dir + "\n";
  out += "  API key   " + safe_text(key) + "  (kept in " + layout_.api_key_file() + ")\n\n";
  out += "Try:  glovebox run -- uname -a";
  if (layout_.run_dir != kDefaultRunDir)
    out += "  (with GLOVEBOX_URL=unix://" + layout_.socket() + ")";
  out += options_.destroy_on_exit ? "\nCtrl-C stops it and removes every sandbox.\n"
                                  : "\nCtrl-C stops it; sandboxes go on and are found again.\n";
  shell_.out(out);
  return {};
}

Task<void> Platform::remove_sandboxes() {
  Globals globals = shell_.globals();
  globals.json = false;
  globals.quiet = true;
  Shell own(shell_.executor(), std::move(globals), shell_.streams(), endpoints_);
  RemoveOptions all;
  all.all = true;
  const Result<int> removed = co_await execute(own, std::move(all));
  if (!removed) shell_.warn("sandboxes are left: " + safe_text(removed.error().text()));
}

Task<Result<int>> Platform::run() {
  const SignalWatch signals(shell_.executor(), {SIGINT, SIGTERM, SIGHUP},
                            [this](int signal) { on_signal(signal); });
  Result<void> started = co_await start();
  if (started && signal_ == 0) {
    started = announce();
    while (started && signal_ == 0 && !supervisor_.gave_up()) {
      co_await pause(std::chrono::hours(24));
    }
    if (started && supervisor_.gave_up()) {
      started = Error(Errc::kUnavailable, "a part of Glovebox keeps crashing");
    }
    if (options_.destroy_on_exit) co_await remove_sandboxes();
  }
  if (signal_ != 0 && !shell_.json()) shell_.note("glovebox: stopping");
  stopping_ = true;
  co_await supervisor_.stop();
  if (!started) co_return std::move(started).error();
  co_return kExitOk;
}

}  // namespace

Task<Result<int>> execute(Shell& shell, UpOptions options) {
  Platform platform(shell, std::move(options));
  co_return co_await platform.run();
}

}  // namespace glovebox::cli
