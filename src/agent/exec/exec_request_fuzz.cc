// Any bytes as an ExecRequest: no crash, and what is accepted keeps the kernel's limits.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "agent/exec/exec_request.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto request = glovebox::agent::parse_exec_request(text);
  if (request) {
    if (request->args.empty() == request->shell_line.empty()) std::abort();
    for (const auto& arg : request->args) {
      if (arg.find('\0') != std::string::npos || arg.size() >= 128 << 10) std::abort();
    }
    for (const auto& [name, value] : request->env) {
      if (name.empty() || name.find('=') != std::string::npos) std::abort();
    }
  }
  [[maybe_unused]] const auto env = glovebox::agent::parse_default_env(text);
  return 0;
}
