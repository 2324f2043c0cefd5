// Events: any cut of the bytes gives the same ones, and what is formatted is read back.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "net/sse.h"

using glovebox::net::SseEvent;
using glovebox::net::SseParser;

namespace {

std::string all(std::string_view bytes, std::size_t size) {
  SseParser parser;
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    for (const SseEvent& e : parser.feed(bytes.substr(at, size))) {
      out += e.event + "|" + e.id + "|" + e.data + "\n";
    }
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string whole = all(bytes, bytes.size() + 1);
  if (whole != all(bytes, 1) || whole != all(bytes, 5)) std::abort();

  SseEvent event;
  event.data = bytes;
  SseParser parser;
  const auto back = parser.feed(glovebox::net::format_sse(event));
  if (back.size() != 1 || parser.failed()) std::abort();
  if (bytes.find('\r') == std::string_view::npos && back[0].data != event.data) std::abort();
  return 0;
}
