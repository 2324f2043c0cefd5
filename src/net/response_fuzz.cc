// A reply as the client and the relay take it: its head, then a chunked body.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "net/head.h"

using glovebox::net::ChunkDecoder;
using glovebox::net::HeadScanner;
using glovebox::net::ResponseHead;

namespace {

// All data, and how it ended, when `size` bytes arrive at once and `data_max` are taken at once.
std::string decode(std::string_view bytes, std::size_t size, std::size_t data_max) {
  ChunkDecoder decoder;
  std::string out;
  std::size_t begin = 0;
  for (std::size_t end = std::min(size, bytes.size());;) {
    const auto step = decoder.step(bytes.substr(begin, end - begin), data_max);
    if (step.used > end - begin || step.data.size() > data_max) std::abort();
    begin += step.used;
    out += step.data;
    if (step.state == ChunkDecoder::State::kBad) return out + "|bad";
    if (step.state == ChunkDecoder::State::kDone) return out + "|done";
    if (step.state == ChunkDecoder::State::kData) continue;
    if (end == bytes.size()) return out + "|more";
    end = std::min(end + size, bytes.size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  HeadScanner scanner;
  std::string_view body = bytes;
  if (scanner.scan(bytes) == HeadScanner::Found::kEnd) {
    auto parsed = glovebox::net::parse_response_head(bytes.substr(0, scanner.head_bytes()));
    if (const ResponseHead* head = std::get_if<ResponseHead>(&parsed)) {
      if (head->status < 100 || head->status > 599) std::abort();
      if (head->chunked && head->content_length) std::abort();
    }
    body = bytes.substr(scanner.head_bytes());
  }
  if (body.size() > 4096) return 0;
  const std::string whole = decode(body, body.size() + 1, SIZE_MAX);
  if (whole != decode(body, 1, SIZE_MAX) || whole != decode(body, 7, 3)) std::abort();
  return 0;
}
