// What a caller wants run: the ExecRequest of docs/api/contract.md, checked.

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/common/json_fields.h"
#include "base/result.h"

namespace glovebox::agent {

using EnvList = std::vector<std::pair<std::string, std::string>>;

struct WindowSize {
  std::uint16_t cols = 80;
  std::uint16_t rows = 24;
};

enum class StdinMode : std::uint8_t {
  kNone,  // /dev/null
  kOpen,  // Stays open for the caller to write and close.
  kFed,   // Gets `stdin_bytes`, then ends.
};

struct ExecRequest {
  std::string shell_line;         // Either this, for the shell,
  std::vector<std::string> args;  // or this: a program and its arguments.
  std::optional<std::string> cwd;
  std::string user = "user";
  EnvList env;
  std::optional<std::chrono::milliseconds> timeout;
  StdinMode stdin_mode = StdinMode::kNone;
  std::string stdin_bytes;
  std::optional<WindowSize> pty;
  bool kill_on_disconnect = false;
  bool background = false;
  std::string tag;
};

inline constexpr std::size_t kExecBodyBytesMax = 16 << 20;  // stdin travels in it, escaped.

// kInvalid naming the field at fault.
Result<ExecRequest> parse_exec_request(std::string_view json);

// {"cols": 80, "rows": 24}
Result<WindowSize> parse_window_size(JsonFields& json);

// The value of a Glovebox-Default-Env header: base64 of a JSON object of strings.
Result<EnvList> parse_default_env(std::string_view header);

}  // namespace glovebox::agent
