#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "async/coro.h"
#include "cli/attach.h"
#include "cli/commands.h"
#include "cli/json.h"

namespace glovebox::cli {
namespace {

// TERM goes in as it is when it is the name of a terminal type, and nothing else.
void pass_term(ExecRequest& request) {
  const char* term = std::getenv("TERM");
  const std::string_view name = term == nullptr ? "" : term;
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '+' || c == '.' || c == '_';
  });
  if (!name.empty() && name.size() <= 64 && plain) {
    request.env.insert(request.env.begin(), {"TERM", std::string(name)});
  }
}

Task<Result<int>> detach(Shell& shell, std::string id, ExecRequest request) {
  request.background = true;
  request.kill_on_disconnect = false;
  GB_CO_TRY_ASSIGN(std::string body, exec_request_json(request));
  Result<std::string> reply =
      co_await shell.api().call("POST", sandbox_target(id, "exec"), std::move(body));
  if (!reply) {
    const Errc code = reply.error().code();
    shell.print_error(reply.error());
    co_return code == Errc::kNotFound ? kExitNotFound : kExitGlovebox;
  }
  GB_CO_TRY_ASSIGN(const boost::json::object started, parse_object(*reply));
  if (shell.json()) {
    shell.out_json(started);
  } else {
    shell.out(std::to_string(static_cast<std::int64_t>(number_at(started, "pid"))) + "\n");
  }
  co_return kExitOk;
}

}  // namespace

Task<Result<int>> execute(Shell& shell, ExecOptions options) {
  if (options.terminal && ::isatty(shell.streams().in) != 1) {
    co_return Error(Errc::kInvalid, "-t needs a terminal on standard input; leave it out");
  }
  if (options.terminal && shell.json()) {
    co_return Error(Errc::kInvalid, "-t and --json do not go together");
  }
  Result<std::string> id = co_await find_sandbox(shell, options.sandbox);
  if (!id) co_return std::move(id).error();

  ExecRequest request;
  request.args = std::move(options.args);
  if (request.args.empty()) {
    // A login, as ssh gives one. exec: no second shell that waits for the first.
    request.shell_line = R"(exec "${SHELL:-/bin/sh}" -i)";
  }
  request.cwd = std::move(options.cwd);
  request.user = std::move(options.user);
  request.env = std::move(options.env);
  request.timeout_s = options.timeout_s;
  if (options.detach) co_return co_await detach(shell, std::move(*id), std::move(request));

  if (options.terminal) pass_term(request);
  AttachInput input;
  input.terminal = options.terminal;
  input.forward_signals = !options.terminal;
  input.forward_stdin = options.terminal || options.interactive ||
                        (!options.no_stdin && stdin_has_content(shell.streams().in));
  const auto end = [&shell](int signal) { shell.interrupt().raise(signal); };
  const SignalWatch signals(shell.executor(), {SIGTERM, SIGHUP, SIGQUIT}, end);
  // A terminal in raw mode sends Ctrl-C as a byte; a SIGINT then comes from elsewhere.
  std::optional<SignalWatch> interrupts;
  if (options.terminal) {
    interrupts.emplace(shell.executor(), std::initializer_list<int>{SIGINT}, end);
  }
  std::optional<Error> refused;
  Result<int> code = co_await attach(shell, std::move(*id), std::move(request), input, &refused);
  if (refused) shell.print_error(*refused);
  co_return code;
}

}  // namespace glovebox::cli
