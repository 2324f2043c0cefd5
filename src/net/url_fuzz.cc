// Targets: what is accepted holds what url.h promises.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "net/url.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto decoded = glovebox::net::percent_decode(text);
  if (decoded) {
    auto again = glovebox::net::percent_decode(glovebox::net::percent_encode(*decoded));
    if (!again || *again != *decoded) std::abort();
  }
  auto target = glovebox::net::parse_target(text);
  if (!target) return 0;
  if (target->path.empty() || target->path.front() != '/') std::abort();
  for (const std::string& segment : target->segments) {
    if (segment == "." || segment == "..") std::abort();
    if (segment.find_first_of(std::string_view("/\\\0\r\n", 5)) != std::string::npos) std::abort();
  }
  return 0;
}
