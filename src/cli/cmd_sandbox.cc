// create, ls, info, rm, pause, resume, extend.

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <cmath>
#include <utility>

#include "async/coro.h"
#include "base/time.h"
#include "cli/commands.h"
#include "cli/display.h"
#include "cli/json.h"
#include "cli/sandbox_request.h"
#include "cli/units.h"
#include "net/url.h"

namespace glovebox::cli {
namespace {

namespace json = boost::json;

// Seconds from now until an RFC 3339 time; negative for the past, 0 for what is no time.
double seconds_until(const std::string& text) {
  const std::optional<WallTime> at = parse_rfc3339(text);
  if (!at) return 0;
  const auto now = std::chrono::system_clock::now();
  return std::chrono::duration<double>(*at - now).count();
}

std::string age(const json::object& sandbox, std::string_view key) {
  const std::string at = text_at(sandbox, key);
  return at.empty() ? "-" : format_duration(-seconds_until(at));
}

std::string time_left(const json::object& sandbox) {
  const std::string at = text_at(sandbox, "expires_at");
  // Rounded: what was given ten minutes a moment ago has ten, not nine.
  return at.empty() ? "-" : format_duration(seconds_until(at) + 0.5);
}

std::string labels_text(const json::object& sandbox) {
  std::string out;
  const json::object& labels = object_at(sandbox, "labels");
  for (const auto& [key, value] : labels) {
    if (!out.empty()) out += ',';
    out.append(std::string_view(key)).append("=").append(text_at(labels, key));
  }
  return out.empty() ? "-" : out;
}

std::string or_dash(std::string text) { return text.empty() ? "-" : text; }

std::string query_of(const ListOptions& options) {
  std::string query;
  const auto add = [&](std::string_view key, std::string_view value) {
    if (!query.empty()) query += '&';
    query.append(key).append("=").append(net::percent_encode(value));
  };
  for (const auto& [key, value] : options.labels) add("label", key + "=" + value);
  if (!options.state.empty()) {
    add("state", options.state);
  } else if (!options.all) {
    add("state", "creating,running,pausing,paused,resuming,stopping");
  }
  return query;
}

std::string limits_text(const json::object& sandbox) {
  const json::object& limits = object_at(sandbox, "limits");
  std::string out = format_bytes(static_cast<std::uint64_t>(number_at(limits, "memory_bytes")));
  out += " memory, ";
  out += format_bytes(static_cast<std::uint64_t>(number_at(limits, "disk_bytes")));
  std::string cpus = std::to_string(number_at(limits, "cpus"));
  cpus.erase(cpus.find_last_not_of('0') + 1);
  if (cpus.ends_with('.')) cpus.pop_back();
  out += " disk, " + cpus + " CPUs, ";
  out += std::to_string(static_cast<std::int64_t>(number_at(limits, "pids"))) + " processes";
  return out;
}

void print_info(const Shell& shell, const json::object& sandbox) {
  std::string out;
  const auto line = [&](std::string_view key, std::string_view value) {
    out.append(key).append(":");
    out.append(key.size() < 14 ? 14 - key.size() : 1, ' ');
    out.append(safe_text(value)).append("\n");
  };
  line("Id", text_at(sandbox, "id"));
  line("Name", or_dash(text_at(sandbox, "name")));
  line("State", text_at(sandbox, "state"));
  const std::string reason = text_at(sandbox, "reason");
  if (!reason.empty()) line("Reason", reason);
  line("Template", text_at(sandbox, "template"));
  line("Isolation", text_at(sandbox, "isolation") + " (" + text_at(sandbox, "runtime") + ")");
  line("Created", text_at(sandbox, "created_at") + " (" + age(sandbox, "created_at") + " ago)");
  const std::string ended = text_at(sandbox, "ended_at");
  if (!ended.empty()) {
    line("Ended", ended + " (" + age(sandbox, "ended_at") + " ago)");
  } else if (!text_at(sandbox, "expires_at").empty()) {
    line("Expires", text_at(sandbox, "expires_at") + " (in " + time_left(sandbox) + ", then " +
                        or_dash(text_at(sandbox, "on_timeout")) + ")");
  }
  if (number_at(sandbox, "idle_timeout_s") > 0) {
    line("Idle timeout", format_duration(number_at(sandbox, "idle_timeout_s")));
  }
  line("Limits", limits_text(sandbox));
  line("Labels", labels_text(sandbox));
  shell.out(out);
}

}  // namespace

Task<Result<int>> execute(Shell& shell, CreateOptions options) {
  GB_CO_TRY_ASSIGN(std::string body, create_request_json(options.sandbox));
  Result<std::string> reply =
      co_await shell.api().call("POST", "/api/v1/sandboxes", std::move(body), kCreateTimeout);
  if (!reply) co_return std::move(reply).context("create").error();
  GB_CO_TRY_ASSIGN(const json::object sandbox, parse_object(*reply));
  if (shell.json()) {
    shell.out_json(sandbox);
  } else {
    shell.out(safe_text(text_at(sandbox, "id")) + "\n");
  }
  co_return kExitOk;
}

Task<Result<int>> execute(Shell& shell, ListOptions options) {
  Result<json::array> listed = co_await list_sandboxes(shell, query_of(options));
  if (!listed) co_return std::move(listed).error();
  if (shell.json()) {
    json::object out;
    out["sandboxes"] = std::move(*listed);
    shell.out_json(out);
    co_return kExitOk;
  }
  if (shell.quiet()) {
    std::string ids;
    for (const json::value& value : *listed) {
      ids += safe_text(text_at(value.get_object(), "id")) + "\n";
    }
    shell.out(ids);
    co_return kExitOk;
  }
  Table table({"ID", "NAME", "STATE", "TEMPLATE", "RUNTIME", "AGE", "EXPIRES", "LABELS"});
  for (const json::value& value : *listed) {
    const json::object& s = value.get_object();
    const bool ended = !text_at(s, "ended_at").empty();
    table.add({text_at(s, "id"), or_dash(text_at(s, "name")), text_at(s, "state"),
               text_at(s, "template"), or_dash(text_at(s, "runtime")), age(s, "created_at"),
               ended ? "-" : time_left(s), labels_text(s)});
  }
  shell.out(table.render(shell.out_is_terminal() ? 40 : 4096));
  co_return kExitOk;
}

Task<Result<int>> execute(Shell& shell, InfoOptions options) {
  json::array all;
  for (const std::string& name : options.sandboxes) {
    Result<std::string> id = co_await find_sandbox(shell, name);
    if (!id) co_return std::move(id).error();
    Result<std::string> reply = co_await shell.api().call("GET", sandbox_target(*id, ""));
    if (!reply) co_return std::move(reply).error();
    GB_CO_TRY_ASSIGN(json::object sandbox, parse_object(*reply));
    if (!shell.json()) {
      if (!all.empty()) shell.out("\n");
      print_info(shell, sandbox);
    }
    all.push_back(std::move(sandbox));
  }
  if (shell.json()) {
    if (all.size() == 1) {
      shell.out_json(all.front());
    } else {
      shell.out_json(all);
    }
  }
  co_return kExitOk;
}

Task<Result<int>> execute(Shell& shell, RemoveOptions options) {
  std::vector<std::string> ids;
  if (options.all || !options.labels.empty()) {
    ListOptions which;
    which.labels = options.labels;
    Result<json::array> listed = co_await list_sandboxes(shell, query_of(which));
    if (!listed) co_return std::move(listed).error();
    for (const json::value& s : *listed) ids.push_back(text_at(s.get_object(), "id"));
  }
  int code = kExitOk;
  for (const std::string& name : options.sandboxes) {
    Result<std::string> id = co_await find_sandbox(shell, name);
    if (id) {
      ids.push_back(std::move(*id));
    } else {
      shell.print_error(id.error());
      code = kExitError;
    }
  }
  json::array removed;
  for (const std::string& id : ids) {
    const Result<std::string> reply = co_await shell.api().call("DELETE", sandbox_target(id, ""));
    if (!reply) {
      Result<std::string> failed = reply;
      shell.print_error(std::move(failed).context("remove " + id).error());
      code = kExitError;
      continue;
    }
    removed.emplace_back(id);
    if (!shell.json() && !shell.quiet()) shell.out(safe_text(id) + "\n");
  }
  if (shell.json()) {
    json::object out;
    out["removed"] = std::move(removed);
    shell.out_json(out);
  }
  co_return code;
}

Task<Result<int>> execute(Shell& shell, StateOptions options) {
  int code = kExitOk;
  for (const std::string& name : options.sandboxes) {
    Result<std::string> id = co_await find_sandbox(shell, name);
    Result<std::string> reply = Error(Errc::kInternal, "not asked");
    if (id) {
      reply = co_await shell.api().call("POST", sandbox_target(*id, options.verb));
    } else {
      reply = id.error();
    }
    if (!reply) {
      shell.print_error(std::move(reply).context(options.verb + " " + name).error());
      code = kExitError;
      continue;
    }
    GB_CO_TRY_ASSIGN(const json::object sandbox, parse_object(*reply));
    if (shell.json()) {
      shell.out_json(sandbox);
    } else if (!shell.quiet()) {
      shell.out(safe_text(*id + " " + text_at(sandbox, "state")) + "\n");
    }
  }
  co_return code;
}

Task<Result<int>> execute(Shell& shell, ExtendOptions options) {
  Result<std::string> id = co_await find_sandbox(shell, options.sandbox);
  if (!id) co_return std::move(id).error();
  json::object body;
  body["timeout_s"] = options.timeout_s;
  Result<std::string> reply =
      co_await shell.api().call("POST", sandbox_target(*id, "extend"), to_text(body));
  if (!reply) co_return std::move(reply).context("extend " + *id).error();
  GB_CO_TRY_ASSIGN(const json::object sandbox, parse_object(*reply));
  if (shell.json()) {
    shell.out_json(sandbox);
  } else if (!shell.quiet()) {
    shell.out(safe_text(*id + " expires at " + text_at(sandbox, "expires_at")) + "\n");
  }
  co_return kExitOk;
}

}  // namespace glovebox::cli
