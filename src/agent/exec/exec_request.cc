#include "agent/exec/exec_request.h"

#include <cmath>
#include <optional>

#include "base/base64.h"

namespace glovebox::agent {
namespace {

// MAX_ARG_STRLEN of the kernel is 128 KiB with the terminating NUL.
constexpr std::size_t kArgBytesMax = (128 << 10) - 1;
constexpr std::size_t kAllBytesMax = 2 << 20;
constexpr std::size_t kEnvCountMax = 10'000;
constexpr std::size_t kStdinBytesMax = 8 << 20;
constexpr std::size_t kTagBytesMax = 1024;
constexpr double kTimeoutSecondsMax = 30.0 * 86400;

Error invalid(std::string_view field, std::string_view what) {
  return {Errc::kInvalid, "\"" + std::string(field) + "\" " + std::string(what)};
}

Result<void> check_env(const EnvList& env, std::size_t& total) {
  if (env.size() > kEnvCountMax) return invalid("env", "has more than 10000 variables");
  for (const auto& [name, value] : env) {
    if (name.empty() || name.find('=') != std::string::npos) {
      return invalid("env", "has a name that is empty or contains '='");
    }
    if (name.find('\0') != std::string::npos || value.find('\0') != std::string::npos) {
      return invalid("env", "must not contain NUL");
    }
    // The kernel sees "name=value" as one string.
    if (name.size() + 1 + value.size() > kArgBytesMax) {
      return invalid("env", "has a variable longer than 128 KiB: " + name.substr(0, 64));
    }
    total += name.size() + value.size() + 2;
  }
  return {};
}

Result<void> check_sizes(const ExecRequest& request) {
  std::size_t total = request.shell_line.size();
  if (request.shell_line.size() > kArgBytesMax) return invalid("cmd", "is longer than 128 KiB");
  for (const std::string& arg : request.args) {
    if (arg.size() > kArgBytesMax) return invalid("args", "has one longer than 128 KiB");
    total += arg.size() + 1;
  }
  GB_TRY(check_env(request.env, total));
  if (total > kAllBytesMax) {
    return Error(Errc::kInvalid, "\"args\" and \"env\" are longer than 2 MiB together");
  }
  return {};
}

Result<void> read_command(JsonFields& json, ExecRequest& request) {
  const auto line = json.text("cmd");
  const auto args = json.texts("args");
  if (line && args) return Error(Errc::kInvalid, "give either \"cmd\" or \"args\", not both");
  if (line) request.shell_line = *line;
  if (args) request.args = *args;
  if (args && (args->empty() || args->front().empty())) {
    json.fail("args", "must begin with a program");
  }
  if (line && line->empty()) json.fail("cmd", "must not be empty");
  if (!json.has("cmd") && !json.has("args")) {
    return Error(Errc::kInvalid, "\"cmd\" or \"args\" is missing");
  }
  return {};
}

Result<void> read_stdin(JsonFields& json, ExecRequest& request) {
  const auto encoded = json.text("stdin_b64");
  if (encoded && json.has("stdin")) {
    return Error(Errc::kInvalid, "give either \"stdin\" or \"stdin_b64\", not both");
  }
  if (encoded) {
    std::optional<std::string> bytes = from_base64(*encoded);
    if (!bytes) return invalid("stdin_b64", "is not base64");
    request.stdin_bytes = std::move(*bytes);
    request.stdin_mode = StdinMode::kFed;
  } else if (json.is_text("stdin")) {
    request.stdin_bytes = json.any_text("stdin").value_or("");
    request.stdin_mode = StdinMode::kFed;
  } else if (json.is_boolean("stdin")) {
    if (json.boolean("stdin").value_or(false)) request.stdin_mode = StdinMode::kOpen;
  } else if (json.has("stdin")) {
    return invalid("stdin", "must be true, false or a string");
  }
  if (request.stdin_bytes.size() > kStdinBytesMax) {
    return invalid("stdin", "is longer than 8 MiB: leave it open and write to it");
  }
  return {};
}

Result<void> read_timeout(JsonFields& json, ExecRequest& request) {
  const auto seconds = json.number("timeout_s");
  if (!seconds) return {};
  if (*seconds <= 0 || *seconds > kTimeoutSecondsMax) {
    return invalid("timeout_s", "must be more than 0 and at most 2592000");
  }
  request.timeout = std::chrono::milliseconds(std::llround(std::ceil(*seconds * 1000)));
  return {};
}

Result<void> read_pty(JsonFields& json, ExecRequest& request) {
  auto pty = json.object("pty");
  if (!pty) return {};
  GB_TRY_ASSIGN(request.pty, parse_window_size(*pty).context("\"pty\""));
  if (request.stdin_mode == StdinMode::kFed) {
    return invalid("stdin", "cannot be fed and closed on a terminal");
  }
  return {};
}

}  // namespace

Result<WindowSize> parse_window_size(JsonFields& json) {
  const auto cols = json.integer("cols");
  const auto rows = json.integer("rows");
  GB_TRY(json.finish());
  WindowSize size;
  if (cols && (*cols < 1 || *cols > 4096)) return invalid("cols", "must be 1 to 4096");
  if (rows && (*rows < 1 || *rows > 4096)) return invalid("rows", "must be 1 to 4096");
  if (cols) size.cols = static_cast<std::uint16_t>(*cols);
  if (rows) size.rows = static_cast<std::uint16_t>(*rows);
  return size;
}

Result<ExecRequest> parse_exec_request(std::string_view text) {
  GB_TRY_ASSIGN(JsonFields json, JsonFields::parse(text));
  ExecRequest request;
  GB_TRY(read_command(json, request));
  GB_TRY(read_stdin(json, request));
  GB_TRY(read_timeout(json, request));
  GB_TRY(read_pty(json, request));
  request.cwd = json.text("cwd");
  if (request.cwd && request.cwd->empty()) json.fail("cwd", "must not be empty");
  if (request.cwd && request.cwd->size() >= 4096) json.fail("cwd", "is longer than 4095 bytes");
  if (auto user = json.text("user")) request.user = std::move(*user);
  if (request.user.empty() || request.user.size() > 256) json.fail("user", "is not a user");
  if (auto env = json.text_map("env")) request.env = std::move(*env);
  if (auto tag = json.text("tag")) request.tag = std::move(*tag);
  if (request.tag.size() > kTagBytesMax) json.fail("tag", "is longer than 1024 bytes");
  request.kill_on_disconnect = json.boolean("kill_on_disconnect").value_or(false);
  request.background = json.boolean("background").value_or(false);
  GB_TRY(json.finish());
  GB_TRY(check_sizes(request));
  return request;
}

Result<EnvList> parse_default_env(std::string_view header) {
  if (header.empty()) return EnvList();
  const std::optional<std::string> text = from_base64(header);
  if (!text) return Error(Errc::kInvalid, "Glovebox-Default-Env is not base64");
  GB_TRY_ASSIGN(JsonFields json, JsonFields::parse(R"({"env":)" + *text + "}"));
  std::optional<EnvList> env = json.text_map("env");
  GB_TRY(json.finish());
  std::size_t total = 0;
  GB_TRY(check_env(env.value_or(EnvList()), total));
  return std::move(env).value_or(EnvList());
}

}  // namespace glovebox::agent
