#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/text.h"
#include "config/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = glovebox::config::parse(text, "f");
  if (!config && !glovebox::is_utf8(config.error().text())) std::abort();
  if (config && (config.value().socket.empty() || config.value().limits.memory_bytes == 0)) {
    std::abort();
  }
  return 0;
}
