#include "cli/shell.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cstdlib>
#include <utility>

#include "async/coro.h"
#include "cli/display.h"
#include "cli/json.h"
#include "net/url.h"

namespace glovebox::cli {
namespace {

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return;  // Nobody reads it: not our failure.
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

// What the daemon gives out: "sb-" and 20 of [a-z0-9].
bool is_whole_id(std::string_view text) {
  return text.size() == 23 && text.starts_with("sb-") &&
         std::all_of(text.begin() + 3, text.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
}

}  // namespace

void fill_from_environment(Globals& globals) {
  const auto fill = [](std::string& to, const char* name) {
    const char* value = std::getenv(name);
    if (to.empty() && value != nullptr) to = value;
  };
  fill(globals.url, "GLOVEBOX_URL");
  fill(globals.api_key, "GLOVEBOX_API_KEY");
}

Result<std::vector<Endpoint>> endpoints_of(const Globals& globals) {
  if (globals.url.empty()) return default_endpoints();
  GB_TRY_ASSIGN(Endpoint endpoint, parse_endpoint(globals.url));
  return std::vector<Endpoint>{std::move(endpoint)};
}

Shell::Shell(const Executor& executor, Globals globals, Streams streams,
             std::vector<Endpoint> endpoints)
    : executor_(executor),
      globals_(std::move(globals)),
      streams_(streams),
      api_(std::move(endpoints), Redacted(globals_.api_key), interrupt_) {}

void Shell::out(std::string_view text) const { write_all(streams_.out, text); }

void Shell::out_json(const boost::json::value& value) const { out(to_text(value) + "\n"); }

void Shell::note(std::string_view line) const {
  if (!globals_.quiet) write_all(streams_.err, std::string(line) + "\n");
}

void Shell::warn(std::string_view line) const {
  write_all(streams_.err, "glovebox: warning: " + std::string(line) + "\n");
}

void Shell::print_error(const Error& error) const {
  if (globals_.json) {
    write_all(streams_.err, error_json(error) + "\n");
    return;
  }
  const bool red = err_is_terminal() && std::getenv("NO_COLOR") == nullptr;
  write_all(streams_.err,
            (red ? "\x1b[31mglovebox:\x1b[0m " : "glovebox: ") + safe_text(error.text()) + "\n");
}

bool Shell::out_is_terminal() const { return ::isatty(streams_.out) == 1; }
bool Shell::err_is_terminal() const { return ::isatty(streams_.err) == 1; }

bool Shell::colour() const {
  const char* off = std::getenv("NO_COLOR");
  return out_is_terminal() && (off == nullptr || *off == '\0');
}

std::string sandbox_target(std::string_view id, std::string_view rest) {
  std::string target = "/api/v1/sandboxes/" + net::percent_encode(id);
  if (!rest.empty()) target.append("/").append(rest);
  return target;
}

Task<Result<boost::json::array>> list_sandboxes(Shell& shell, std::string query) {
  boost::json::array all;
  std::string cursor;
  constexpr std::size_t kMost = 100'000;  // Against a daemon whose pages never end.
  do {
    std::string target = "/api/v1/sandboxes?limit=1000";
    if (!query.empty()) target += "&" + query;
    if (!cursor.empty()) target += "&cursor=" + net::percent_encode(cursor);
    Result<std::string> body = co_await shell.api().call("GET", target);
    if (!body) co_return std::move(body).error();
    GB_CO_TRY_ASSIGN(const boost::json::object page, parse_object(*body));
    const boost::json::array& sandboxes = array_at(page, "sandboxes");
    if (sandboxes.empty()) break;  // A page with nothing but a cursor leads nowhere.
    for (const boost::json::value& sandbox : sandboxes) {
      if (sandbox.is_object()) all.push_back(sandbox);
    }
    cursor = text_at(page, "next_cursor");
  } while (!cursor.empty() && all.size() < kMost);
  co_return all;
}

Task<Result<std::string>> find_sandbox(Shell& shell, std::string text) {
  if (is_whole_id(text)) co_return text;
  Result<boost::json::array> all = co_await list_sandboxes(shell, "");
  if (!all) co_return std::move(all).error();
  // What lives goes before what has ended, and a name before the beginning of an id.
  std::array<std::vector<std::string>, 4> matches;
  for (const boost::json::value& value : *all) {
    const boost::json::object& sandbox = value.get_object();
    const std::string id = text_at(sandbox, "id");
    const std::string state = text_at(sandbox, "state");
    const std::size_t ended = state == "stopped" || state == "failed" ? 2 : 0;
    if (text_at(sandbox, "name") == text) {
      matches[ended].push_back(id);
    } else if (!text.empty() && (id.starts_with(text) || id.starts_with("sb-" + text))) {
      matches[ended + 1].push_back(id);
    }
  }
  const auto at = std::find_if(matches.begin(), matches.end(),
                               [](const std::vector<std::string>& m) { return !m.empty(); });
  if (at == matches.end()) {
    co_return Error(Errc::kNotFound, "no sandbox has the id or name '" + text +
                                         "'; `glovebox ls` shows what there is");
  }
  const std::vector<std::string>& found = *at;
  if (found.size() > 1) {
    co_return Error(Errc::kInvalid, "'" + text + "' fits " + std::to_string(found.size()) +
                                        " sandboxes, " + found[0] + " and " + found[1] +
                                        " among them: give more of the id");
  }
  co_return found.front();
}

}  // namespace glovebox::cli
