// run: a sandbox for one command, and nothing left of it afterwards.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <csignal>
#include <memory>
#include <utility>

#include "async/coro.h"
#include "async/gate.h"
#include "cli/attach.h"
#include "cli/commands.h"
#include "cli/display.h"
#include "cli/interpreter.h"
#include "cli/json.h"
#include "cli/path_spec.h"
#include "cli/sandbox_request.h"
#include "cli/transfer.h"
#include "os/sys.h"

namespace glovebox::cli {
namespace {

namespace json = boost::json;

// A sandbox that its command line no longer renews goes by itself, so that a killed terminal leaves
// nothing behind for longer than this.
constexpr double kLeaseSeconds = 120;
constexpr std::chrono::seconds kRenewEvery{40};
constexpr double kKeptSeconds = 3600;

// What is to be run: read before a sandbox is made, so that a typo costs nothing.
struct Program {
  UniqueFd file;  // Not open for a command.
  std::uint64_t size = 0;
  std::string name;
  std::string text;  // Of a script from standard input; then `file` is not open.
  Language language;
};

struct Copy {
  std::string local;
  std::string remote;
};

Result<UniqueFd> open_regular(const std::string& path, std::uint64_t& size) {
  GB_TRY_ASSIGN(UniqueFd fd,
                os::openat(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0, os::Resolve::kAnywhere));
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return Error::from_errno(errno, "fstat " + path);
  if (!S_ISREG(status.st_mode)) {
    return Error(Errc::kInvalid, "'" + path + "' is not a regular file");
  }
  size = static_cast<std::uint64_t>(status.st_size);
  return fd;
}

Result<std::string> read_all(int fd, std::size_t bytes_max) {
  std::string text;
  std::array<char, 65536> buffer{};
  while (true) {
    GB_TRY_ASSIGN(const ssize_t got, os::retry("read", "standard input", [&] {
                    return ::read(fd, buffer.data(), buffer.size());
                  }));
    if (got == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
    if (text.size() > bytes_max) return Error(Errc::kTooLarge, "the script is over 64 MiB");
  }
}

Result<Language> language_of(const RunOptions& options, std::string_view head) {
  if (!options.language.empty()) return language_by_name(options.language);
  return choose_language(options.file, head).context("'" + options.file + "'");
}

Result<Program> load_program(const RunOptions& options, int stdin_fd) {
  Program program;
  if (options.file == "-") {
    GB_TRY_ASSIGN(program.text, read_all(stdin_fd, 64 << 20));
    program.name = "stdin";
    GB_TRY_ASSIGN(program.language, language_of(options, program.text));
    return program;
  }
  Result<UniqueFd> file = open_regular(options.file, program.size);
  if (!file && file.error().code() == Errc::kNotFound) {
    return Error(Errc::kNotFound, "no file '" + options.file +
                                      "' here; to run a command: glovebox run -- " + options.file);
  }
  if (!file) return std::move(file).error();
  program.file = std::move(*file);
  program.name = base_name(options.file);
  std::array<char, 256> head{};
  GB_TRY_ASSIGN(const ssize_t got, os::retry("pread", options.file, [&] {
                  return ::pread(program.file.get(), head.data(), head.size(), 0);
                }));
  GB_TRY_ASSIGN(program.language,
                language_of(options, std::string_view(head.data(), static_cast<std::size_t>(got))));
  return program;
}

Result<std::vector<Copy>> parse_copies(const RunOptions& options) {
  std::vector<Copy> copies;
  for (const std::string& text : options.copy) {
    Copy copy;
    const std::size_t colon = text.find(':');
    copy.local = text.substr(0, colon);
    copy.remote = colon == std::string::npos ? base_name(copy.local) : text.substr(colon + 1);
    if (copy.local.empty() || copy.remote.empty()) {
      return Error(Errc::kInvalid, "--copy '" + text + "': expected FILE or FILE:PATH");
    }
    copies.push_back(std::move(copy));
  }
  return copies;
}

// Renews the lease until it is stopped. Its failures are nobody's: the command itself will notice.
class Lease {
 public:
  Lease(Shell& shell, std::string id)
      : timer_(shell.executor()),
        gate_(shell.executor()),
        api_({endpoint_of(shell)}, Redacted(shell.globals().api_key), interrupt_),
        id_(std::move(id)) {
    boost::asio::co_spawn(shell.executor(), renew(gate_.enter()), boost::asio::detached);
  }

  Task<void> stop() {
    stopped_ = true;
    timer_.cancel();
    interrupt_.raise(SIGTERM);
    co_await gate_.close();
  }

 private:
  static Endpoint endpoint_of(Shell& shell) {
    return parse_endpoint(shell.api().address()).value();
  }

  Task<void> renew(std::optional<async::Gate::Pass> pass) {
    const auto keep = std::move(pass);
    json::object body;
    body["timeout_s"] = kLeaseSeconds;
    while (!stopped_) {
      timer_.expires_after(kRenewEvery);
      co_await timer_.async_wait(use_result);
      if (stopped_) break;
      std::string text = to_text(body);
      const Result<std::string> ignored =
          co_await api_.call("POST", sandbox_target(id_, "extend"), std::move(text));
      static_cast<void>(ignored);
    }
  }

  Timer timer_;
  async::Gate gate_;
  Interrupt interrupt_;
  Api api_;
  std::string id_;
  bool stopped_ = false;
};

class OneShot {
 public:
  OneShot(Shell& shell, RunOptions options) : shell_(shell), options_(std::move(options)) {}
  Task<Result<int>> run();

 private:
  Task<Result<void>> create();
  Task<Result<void>> put_files();
  Task<Result<int>> start();
  Task<Result<int>> in_sandbox();
  Task<void> remove();
  ExecRequest request(std::vector<std::string> args) const;
  std::string program_path() const;
  Error nothing_runs_it() const;

  Shell& shell_;
  RunOptions options_;
  Program program_;
  std::vector<Copy> copies_;
  std::string id_;
};

Task<Result<void>> OneShot::create() {
  SandboxOptions sandbox = options_.sandbox;
  if (!sandbox.ttl_s) sandbox.ttl_s = options_.keep ? kKeptSeconds : kLeaseSeconds;
  GB_CO_TRY_ASSIGN(std::string body, create_request_json(sandbox));
  Result<std::string> reply =
      co_await shell_.api().call("POST", "/api/v1/sandboxes", std::move(body), kCreateTimeout);
  if (!reply) co_return std::move(reply).error();
  GB_CO_TRY_ASSIGN(const json::object made, parse_object(*reply));
  id_ = text_at(made, "id");
  if (id_.empty()) co_return Error(Errc::kInternal, "the daemon gave a sandbox without an id");
  co_return Result<void>();
}

Task<Result<void>> OneShot::put_files() {
  for (const Copy& copy : copies_) {
    std::uint64_t size = 0;
    GB_CO_TRY_ASSIGN(const UniqueFd fd, open_regular(copy.local, size));
    RemotePath to{id_, copy.remote, options_.user};
    const OnBytes no_progress;
    Result<void> sent =
        co_await upload(shell_.api(), std::move(to), fd.get(), size, 0644, no_progress);
    if (!sent) co_return std::move(sent).context("copy " + copy.local).error();
  }
  if (program_.name.empty()) co_return Result<void>();
  RemotePath to{id_, program_path(), options_.user};
  Result<void> sent;
  if (program_.file) {
    const OnBytes no_progress;
    sent = co_await upload(shell_.api(), std::move(to), program_.file.get(), program_.size, 0755,
                           no_progress);
  } else {
    sent = co_await upload_text(shell_.api(), std::move(to), program_.text, 0755);
  }
  co_return std::move(sent).context("copy " + program_.name + " into the sandbox");
}

ExecRequest OneShot::request(std::vector<std::string> args) const {
  ExecRequest out;
  out.args = std::move(args);
  out.cwd = options_.cwd;
  out.user = options_.user;
  out.timeout_s = options_.timeout_s;
  return out;
}

// Where the file goes: the home directory, in which the command starts, unless --cwd leads away.
// "./", because a name that starts with '-' must not be taken for an option.
std::string OneShot::program_path() const {
  return (options_.cwd.empty() ? "./" : "/tmp/") + program_.name;
}

Error OneShot::nothing_runs_it() const {
  const Language& language = program_.language;
  std::string tried;
  for (const auto& command : language.commands) {
    if (!command.empty()) tried += (tried.empty() ? "" : ", ") + command.front();
  }
  std::string text = "the sandbox has nothing to run " + language.name + " with (looked for " +
                     tried + "). Its template shows the host's programs";
  if (!language.package.empty()) {
    text += ": install them on the host, for example `apt install " + language.package + "`";
  }
  return Error(Errc::kNotFound, text + "; or name another with --lang.");
}

Task<Result<int>> OneShot::start() {
  AttachInput input;
  input.forward_stdin =
      !options_.no_stdin && options_.file != "-" && stdin_has_content(shell_.streams().in);
  std::optional<Error> refused;
  if (program_.name.empty()) {
    Result<int> code = co_await attach(shell_, id_, request(options_.args), input, &refused);
    if (refused) shell_.print_error(*refused);
    co_return code;
  }
  for (const std::vector<std::string>& command : program_.language.commands) {
    std::vector<std::string> args = command;
    args.push_back(program_path());
    args.insert(args.end(), options_.args.begin(), options_.args.end());
    refused.reset();
    Result<int> code = co_await attach(shell_, id_, request(std::move(args)), input, &refused);
    if (!refused) co_return code;
    if (refused->code() != Errc::kNotFound) {
      shell_.print_error(*refused);
      co_return code;
    }
  }
  shell_.print_error(nothing_runs_it());
  co_return kExitNotFound;
}

Task<Result<int>> OneShot::in_sandbox() {
  Result<void> put = co_await put_files();
  if (!put) co_return std::move(put).error();
  co_return co_await start();
}

Task<void> OneShot::remove() {
  if (options_.keep) {
    shell_.note("glovebox: kept " + safe_text(id_) + "; remove it with: glovebox rm " +
                safe_text(id_));
    co_return;
  }
  const std::string nothing;
  const Result<std::string> gone = co_await shell_.api().call("DELETE", sandbox_target(id_, ""),
                                                              nothing, std::chrono::seconds(20));
  // It may have expired or been removed by another meanwhile: that is as good.
  if (!gone && gone.error().code() != Errc::kNotFound) {
    shell_.warn("sandbox " + safe_text(id_) + " is not removed: " + safe_text(gone.error().text()));
  }
}

Task<Result<int>> OneShot::run() {
  GB_CO_TRY_ASSIGN(copies_, parse_copies(options_));
  if (!options_.file.empty()) {
    GB_CO_TRY_ASSIGN(program_, load_program(options_, shell_.streams().in));
  }
  const SignalWatch signals(shell_.executor(), {SIGINT, SIGTERM, SIGHUP},
                            [this](int signal) { shell_.interrupt().raise(signal); });
  Result<void> created = co_await create();
  const bool interrupted = shell_.interrupt().signal() != 0;
  if (!created) {
    if (interrupted) co_return shell_.interrupt().exit_code();
    co_return std::move(created).context("create a sandbox").error();
  }
  std::unique_ptr<Lease> lease;
  if (!options_.keep && !options_.sandbox.ttl_s) lease = std::make_unique<Lease>(shell_, id_);
  Result<int> code = co_await in_sandbox();
  if (lease) co_await lease->stop();
  // From here on a signal must not stop the clean-up's own calls.
  shell_.interrupt().disarm();
  co_await remove();
  if (shell_.interrupt().signal() != 0) co_return shell_.interrupt().exit_code();
  co_return code;
}

}  // namespace

Task<Result<int>> execute(Shell& shell, RunOptions options) {
  OneShot one_shot(shell, std::move(options));
  co_return co_await one_shot.run();
}

}  // namespace glovebox::cli
