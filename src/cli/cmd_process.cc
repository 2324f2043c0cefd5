// ps, kill, logs.

#include <boost/json.hpp>
#include <chrono>
#include <csignal>
#include <memory>
#include <utility>
#include <vector>

#include "async/coro.h"
#include "base/base64.h"
#include "base/time.h"
#include "cli/commands.h"
#include "cli/display.h"
#include "cli/json.h"
#include "cli/stdio.h"
#include "cli/units.h"
#include "net/client.h"
#include "net/sse.h"

namespace glovebox::cli {
namespace {

namespace json = boost::json;

std::string command_of(const json::object& process) {
  std::string line;
  for (const json::value& arg : array_at(process, "args")) {
    if (!line.empty()) line += ' ';
    if (arg.is_string()) line.append(std::string_view(arg.get_string()));
  }
  return line.empty() ? text_at(process, "cmd") : line;
}

bool has_ended(const json::object& process) {
  const json::value* code = process.if_contains("exit_code");
  return (code != nullptr && code->is_number()) || !text_at(process, "ended_at").empty();
}

std::string status_of(const json::object& process) {
  if (!has_ended(process)) return "running";
  const int signal = static_cast<int>(number_at(process, "signal"));
  if (flag_at(process, "timed_out")) return "timed out";
  if (flag_at(process, "oom_killed")) return "out of memory";
  if (signal > 0) return "killed (" + signal_name(signal) + ")";
  return "exited (" + std::to_string(static_cast<int>(number_at(process, "exit_code"))) + ")";
}

std::string age_of(const json::object& process) {
  const std::optional<WallTime> at = parse_rfc3339(text_at(process, "started_at"));
  if (!at) return "-";
  return format_duration(
      std::chrono::duration<double>(std::chrono::system_clock::now() - *at).count());
}

std::int64_t pid_of(const json::object& process) {
  return static_cast<std::int64_t>(number_at(process, "pid"));
}

Task<Result<json::array>> list_processes(Shell& shell, std::string id) {
  Result<std::string> reply = co_await shell.api().call("GET", sandbox_target(id, "processes"));
  if (!reply) co_return std::move(reply).error();
  GB_CO_TRY_ASSIGN(const json::object object, parse_object(*reply));
  json::array out;
  for (const json::value& value : array_at(object, "processes")) {
    if (value.is_object()) out.push_back(value);
  }
  co_return out;
}

// Writes what one event carries to the stream it came from.
class LogPrinter {
 public:
  explicit LogPrinter(const Shell& shell)
      : shell_(shell),
        out_(shell.executor(), shell.streams().out, Direction::kWrite),
        err_(shell.executor(), shell.streams().err, Direction::kWrite) {}

  Task<Result<void>> print(net::SseEvent event);
  void cancel() noexcept {
    out_.cancel();
    err_.cancel();
  }

 private:
  const Shell& shell_;
  StandardStream out_;
  StandardStream err_;
};

Task<Result<void>> LogPrinter::print(net::SseEvent event) {
  GB_CO_TRY_ASSIGN(json::object data, parse_object(event.data));
  if (shell_.json()) {
    if (event.event != "stdout" && event.event != "stderr" && event.event != "exit" &&
        event.event != "lost") {
      co_return Result<void>();
    }
    data["event"] = event.event;
    const std::string line = to_text(data) + "\n";
    co_return co_await out_.write_all(line);
  }
  if (event.event == "lost") {
    shell_.note(
        "glovebox: " + std::to_string(static_cast<std::uint64_t>(number_at(data, "bytes"))) +
        " earlier bytes are no longer kept");
    co_return Result<void>();
  }
  if (event.event != "stdout" && event.event != "stderr") co_return Result<void>();
  const std::string encoded = text_at(data, "b64");
  const std::string bytes =
      encoded.empty() ? text_at(data, "text") : from_base64(encoded).value_or("");
  StandardStream& to = event.event == "stderr" ? err_ : out_;
  co_return co_await to.write_all(bytes);
}

Task<Result<void>> print_output(Shell& shell, std::string id, std::int64_t pid, bool follow) {
  Api& api = shell.api();
  Result<net::Stream> stream = co_await api.dial();
  if (!stream) co_return std::move(stream).error();
  net::ClientConnection connection(std::move(*stream));
  LogPrinter printer(shell);
  const Interrupt::Hook hook(shell.interrupt(), [&] {
    connection.stream().close();
    printer.cancel();
  });
  net::Headers headers = api.headers();
  headers.add("Accept", "text/event-stream");
  std::string rest = "processes/" + std::to_string(pid) + "/output";
  if (!follow) rest += "?follow=0";
  const std::string target = api.full_target(sandbox_target(id, rest));
  Result<void> asked = co_await connection.send_head("GET", target, headers, std::nullopt, false,
                                                     after(kCallTimeout));
  if (!asked) co_return asked;
  Result<net::ResponseHead> head = co_await connection.read_head(false, after(kCallTimeout));
  if (!head) co_return std::move(head).error();

  net::SseParser parser;
  std::string refusal;
  std::vector<char> buffer(64 << 10);
  while (true) {
    Result<std::size_t> got = co_await connection.read_body(buffer, after(kStreamIdle));
    if (!got) co_return std::move(got).error();
    if (*got == 0) break;
    const std::string_view bytes(buffer.data(), *got);
    if (head->status != 200) {
      if (refusal.size() < 65536) refusal.append(bytes);
      continue;
    }
    for (net::SseEvent& event : parser.feed(bytes)) {
      Result<void> printed = co_await printer.print(std::move(event));
      if (!printed) co_return printed;
    }
    if (parser.failed()) co_return Error(Errc::kInternal, "the daemon sent a broken event stream");
  }
  if (head->status != 200) co_return error_of_reply(head->status, refusal);
  co_return Result<void>();
}

}  // namespace

Task<Result<int>> execute(Shell& shell, PsOptions options) {
  Result<std::string> id = co_await find_sandbox(shell, options.sandbox);
  if (!id) co_return std::move(id).error();
  Result<json::array> processes = co_await list_processes(shell, *id);
  if (!processes) co_return std::move(processes).error();
  json::array shown;
  for (json::value& value : *processes) {
    if (options.all || !has_ended(value.get_object())) shown.push_back(std::move(value));
  }
  if (shell.json()) {
    json::object out;
    out["processes"] = std::move(shown);
    shell.out_json(out);
    co_return kExitOk;
  }
  if (shell.quiet()) {
    std::string pids;
    for (const json::value& v : shown) pids += std::to_string(pid_of(v.get_object())) + "\n";
    shell.out(pids);
    co_return kExitOk;
  }
  Table table({"PID", "STATUS", "AGE", "TAG", "COMMAND"});
  for (const json::value& value : shown) {
    const json::object& p = value.get_object();
    const std::string tag = text_at(p, "tag");
    table.add({std::to_string(pid_of(p)), status_of(p), age_of(p), tag.empty() ? "-" : tag,
               command_of(p)});
  }
  shell.out(table.render(shell.out_is_terminal() ? 80 : 4096));
  co_return kExitOk;
}

Task<Result<int>> execute(Shell& shell, KillOptions options) {
  Result<std::string> id = co_await find_sandbox(shell, options.sandbox);
  if (!id) co_return std::move(id).error();
  json::object body;
  const bool number = options.signal.find_first_not_of("0123456789") == std::string::npos;
  if (number) {
    body["signal"] = std::stoi(options.signal);
  } else {
    body["signal"] = options.signal;
  }
  if (options.tree) {
    body["signal"] = "SIGKILL";
    body["tree"] = true;
  }
  const std::string rest = "processes/" + std::to_string(options.pid) + "/signal";
  Result<std::string> reply =
      co_await shell.api().call("POST", sandbox_target(*id, rest), to_text(body));
  if (!reply) co_return std::move(reply).context("kill " + std::to_string(options.pid)).error();
  if (shell.json()) {
    json::object out;
    out["sandbox"] = *id;
    out["pid"] = options.pid;
    out["signal"] = body["signal"];
    shell.out_json(out);
  }
  co_return kExitOk;
}

Task<Result<int>> execute(Shell& shell, LogsOptions options) {
  Result<std::string> id = co_await find_sandbox(shell, options.sandbox);
  if (!id) co_return std::move(id).error();
  std::vector<std::int64_t> pids;
  std::vector<std::string> titles;
  if (options.pid) {
    pids.push_back(*options.pid);
  } else {
    Result<json::array> processes = co_await list_processes(shell, *id);
    if (!processes) co_return std::move(processes).error();
    for (const json::value& value : *processes) {
      const json::object& process = value.get_object();
      if (options.follow && has_ended(process)) continue;
      pids.push_back(pid_of(process));
      titles.push_back(command_of(process) + " (" + status_of(process) + ")");
    }
    if (options.follow && pids.size() != 1) {
      co_return Error(Errc::kInvalid,
                      (pids.empty() ? std::string("nothing runs")
                                    : std::to_string(pids.size()) + " commands run") +
                          " in this sandbox: name one to follow by its PID (glovebox ps " +
                          options.sandbox + ")");
    }
  }
  const SignalWatch signals(shell.executor(), {SIGINT, SIGTERM, SIGHUP},
                            [&shell](int signal) { shell.interrupt().raise(signal); });
  for (std::size_t i = 0; i < pids.size(); ++i) {
    if (pids.size() > 1 && !shell.json()) {
      shell.note((i == 0 ? "==> " : "\n==> ") + std::to_string(pids[i]) + "  " +
                 safe_text(titles[i]) + " <==");
    }
    Result<void> printed = co_await print_output(shell, *id, pids[i], options.follow);
    if (shell.interrupt().signal() != 0) co_return shell.interrupt().exit_code();
    if (!printed && printed.error().sys_errno() == EPIPE) co_return kExitPipe;
    if (!printed)
      co_return std::move(printed).context("logs of " + std::to_string(pids[i])).error();
  }
  co_return kExitOk;
}

}  // namespace glovebox::cli
