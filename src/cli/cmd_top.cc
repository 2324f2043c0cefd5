#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <csignal>
#include <map>
#include <utility>

#include "async/coro.h"
#include "cli/commands.h"
#include "cli/display.h"
#include "cli/json.h"
#include "cli/terminal.h"
#include "cli/units.h"

namespace glovebox::cli {
namespace {

namespace json = boost::json;

struct Sample {
  double cpu_us = 0;
  Clock::time_point at;
};

struct Row {
  std::string id;
  std::string name;
  std::string state;
  json::object metrics;  // Empty when there are none: it has just ended, or is paused.
  double cpu_percent = 0;
};

std::string of_limit(double used, double limit) {
  return format_bytes(static_cast<std::uint64_t>(used)) + " / " +
         format_bytes(static_cast<std::uint64_t>(limit));
}

std::string percent(double value) {
  const auto tenths = static_cast<long long>(value * 10 + 0.5);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + "%";
}

class Top {
 public:
  Top(Shell& shell, TopOptions options) : shell_(shell), options_(std::move(options)) {}

  Task<Result<int>> run();

 private:
  Task<Result<std::vector<Row>>> collect();
  Task<Result<void>> measure(Row& row);
  std::string render(const std::vector<Row>& rows) const;
  void print_json(const std::vector<Row>& rows) const;
  void show(const std::vector<Row>& rows);

  Shell& shell_;
  TopOptions options_;
  std::map<std::string, Sample> before_;
  bool live_ = false;
};

Task<Result<void>> Top::measure(Row& row) {
  const std::string target = sandbox_target(row.id, "metrics");
  Result<std::string> reply = co_await shell_.api().call("GET", target);
  if (!reply) {
    // It ended between the list and now, or is in a state without numbers.
    const Errc code = reply.error().code();
    if (code == Errc::kNotFound || code == Errc::kConflict) co_return Result<void>();
    co_return std::move(reply).error();
  }
  GB_CO_TRY_ASSIGN(row.metrics, parse_object(*reply));
  const Sample now{number_at(row.metrics, "cpu_us"), Clock::now()};
  const auto at = before_.find(row.id);
  if (at != before_.end()) {
    const double wall_us =
        std::chrono::duration<double, std::micro>(now.at - at->second.at).count();
    if (wall_us > 0) {
      row.cpu_percent = std::max(0.0, (now.cpu_us - at->second.cpu_us) / wall_us * 100);
    }
  }
  before_[row.id] = now;
  co_return Result<void>();
}

Task<Result<std::vector<Row>>> Top::collect() {
  std::vector<Row> rows;
  json::array sandboxes;
  if (options_.sandbox.empty()) {
    Result<json::array> listed = co_await list_sandboxes(shell_, "state=running%2Cpaused");
    if (!listed) co_return std::move(listed).error();
    sandboxes = std::move(*listed);
  } else {
    Result<std::string> reply =
        co_await shell_.api().call("GET", sandbox_target(options_.sandbox, ""));
    if (!reply) co_return std::move(reply).error();
    GB_CO_TRY_ASSIGN(json::object one, parse_object(*reply));
    sandboxes.push_back(std::move(one));
  }
  for (const json::value& value : sandboxes) {
    const json::object& s = value.get_object();
    Row row;
    row.id = text_at(s, "id");
    row.name = text_at(s, "name");
    row.state = text_at(s, "state");
    Result<void> measured = co_await measure(row);
    if (!measured) co_return std::move(measured).error();
    rows.push_back(std::move(row));
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.cpu_percent != b.cpu_percent ? a.cpu_percent > b.cpu_percent : a.id < b.id;
  });
  co_return rows;
}

std::string Top::render(const std::vector<Row>& rows) const {
  Table table({"ID", "NAME", "STATE", "CPU", "MEMORY", "PIDS", "DISK", "OOM"});
  for (const Row& row : rows) {
    const json::object& m = row.metrics;
    if (m.empty()) {
      table.add({row.id, row.name.empty() ? "-" : row.name, row.state, "-", "-", "-", "-", "-"});
      continue;
    }
    table.add({row.id, row.name.empty() ? "-" : row.name, row.state, percent(row.cpu_percent),
               of_limit(number_at(m, "memory_bytes"), number_at(m, "memory_limit_bytes")),
               std::to_string(static_cast<std::int64_t>(number_at(m, "pids"))) + " / " +
                   std::to_string(static_cast<std::int64_t>(number_at(m, "pids_limit"))),
               of_limit(number_at(m, "disk_used_bytes"), number_at(m, "disk_limit_bytes")),
               std::to_string(static_cast<std::int64_t>(number_at(m, "oom_kills")))});
  }
  return table.render(24);
}

void Top::print_json(const std::vector<Row>& rows) const {
  json::array out;
  for (const Row& row : rows) {
    json::object object = row.metrics;
    object["id"] = row.id;
    object["name"] = row.name;
    object["state"] = row.state;
    object["cpu_percent"] = row.cpu_percent;
    out.push_back(std::move(object));
  }
  json::object line;
  line["sandboxes"] = std::move(out);
  shell_.out_json(line);
}

void Top::show(const std::vector<Row>& rows) {
  if (shell_.json()) {
    print_json(rows);
    return;
  }
  const std::string table = render(rows);
  if (!live_) {
    shell_.out(table);
    return;
  }
  // Lines over the window's edge would wrap and spoil the picture: cut, and as many as fit.
  const WindowSize size = window_size(shell_.streams().out).value_or(WindowSize{});
  std::string out = "\x1b[H";
  int lines = 1;
  for (std::size_t at = 0; at < table.size() && lines < size.rows; ++lines) {
    const std::size_t end = table.find('\n', at);
    out += fit(table.substr(at, end - at), static_cast<std::size_t>(size.cols));
    out += "\x1b[K\r\n";
    at = end + 1;
  }
  shell_.out(out + "\x1b[J");
}

Task<Result<int>> Top::run() {
  if (!options_.sandbox.empty()) {
    Result<std::string> id = co_await find_sandbox(shell_, options_.sandbox);
    if (!id) co_return std::move(id).error();
    options_.sandbox = std::move(*id);
  }
  Timer timer(shell_.executor());
  const SignalWatch signals(shell_.executor(), {SIGINT, SIGTERM, SIGHUP},
                            [this](int signal) { shell_.interrupt().raise(signal); });
  const Interrupt::Hook hook(shell_.interrupt(), [&timer] { timer.cancel(); });
  // CPU is a rate: the first numbers serve only to be compared with.
  Result<std::vector<Row>> rows = co_await collect();
  if (!rows) co_return std::move(rows).error();
  live_ = !options_.once && !shell_.json() && shell_.out_is_terminal();
  if (live_) shell_.out("\x1b[?1049h\x1b[?25l");  // The alternate screen, without a cursor.
  const auto interval = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(options_.interval_s));
  while (shell_.interrupt().signal() == 0) {
    timer.expires_after(options_.once ? std::chrono::milliseconds(500) : interval);
    co_await timer.async_wait(use_result);
    if (shell_.interrupt().signal() != 0) break;
    rows = co_await collect();
    if (!rows) break;
    show(*rows);
    if (options_.once) break;
  }
  if (live_) shell_.out("\x1b[?25h\x1b[?1049l");
  // Ctrl-C is how one leaves a live table: no failure.
  if (shell_.interrupt().signal() == SIGINT) co_return kExitOk;
  if (shell_.interrupt().signal() != 0) co_return shell_.interrupt().exit_code();
  if (!rows) co_return std::move(rows).error();
  co_return kExitOk;
}

}  // namespace

Task<Result<int>> execute(Shell& shell, TopOptions options) {
  Top top(shell, std::move(options));
  co_return co_await top.run();
}

}  // namespace glovebox::cli
