// The command line: parse, then run one coroutine to its end.

#include <signal.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <variant>
#include <vector>

#include "async/coro.h"
#include "cli/commands.h"
#include "cli/parser.h"
#include "cli/shell.h"

namespace {

namespace cli = glovebox::cli;

int print(const cli::Printed& printed) {
  std::fputs(printed.out.c_str(), stdout);
  std::fputs(printed.err.c_str(), stderr);
  return printed.exit_code;
}

int run(cli::Parsed parsed) {
  if (const auto* completion = std::get_if<cli::CompletionOptions>(&parsed.command)) {
    const std::string script = cli::completion_script(cli::command_model(), completion->shell);
    std::fputs(script.c_str(), stdout);
    return cli::kExitOk;
  }
  boost::asio::io_context io(1);
  auto endpoints = cli::endpoints_of(parsed.globals);
  if (!endpoints) {
    std::fprintf(stderr, "glovebox: %s\n", endpoints.error().text().c_str());
    return cli::kExitUsage;
  }
  cli::Shell shell(io.get_executor(), std::move(parsed.globals), cli::Streams{},
                   std::move(*endpoints));
  int code = cli::kExitError;
  boost::asio::co_spawn(io, cli::dispatch(shell, std::move(parsed.command)),
                        [&](const std::exception_ptr& fault, int result) {
                          if (fault) std::rethrow_exception(fault);
                          code = result;
                          io.stop();
                        });
  io.run();
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  // A reader that has gone is an error of write(2), which says so.
  (void)::signal(SIGPIPE, SIG_IGN);
  std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  auto parsed = cli::parse_command_line(std::move(args));
  if (const auto* printed = std::get_if<cli::Printed>(&parsed)) return print(*printed);
  return run(std::move(std::get<cli::Parsed>(parsed)));
}
