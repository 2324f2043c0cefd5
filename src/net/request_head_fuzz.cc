// The path of a request's head, as the server takes it: scan piece by piece, then parse.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "net/head.h"
#include "net/text.h"

using glovebox::net::HeadFault;
using glovebox::net::HeadScanner;
using glovebox::net::RequestHead;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  HeadScanner whole;
  const HeadScanner::Found found = whole.scan(bytes);

  // However the bytes arrive, the answer is the same.
  HeadScanner pieces;
  HeadScanner::Found last = HeadScanner::Found::kMore;
  for (std::size_t n = 1; n <= size && last == HeadScanner::Found::kMore; ++n) {
    last = pieces.scan(bytes.substr(0, n));
  }
  if (last != found) std::abort();
  if (found != HeadScanner::Found::kEnd) return 0;
  if (pieces.head_bytes() != whole.head_bytes()) std::abort();

  auto parsed = glovebox::net::parse_request_head(bytes.substr(0, whole.head_bytes()));
  if (const HeadFault* fault = std::get_if<HeadFault>(&parsed)) {
    if (fault->status < 400) std::abort();
    return 0;
  }
  const RequestHead& head = std::get<RequestHead>(parsed);
  // What a handler and an upstream may rely on.
  if (head.target != "*" && head.target.front() != '/') std::abort();
  if (head.chunked && head.content_length) std::abort();
  if (head.chunked != head.headers.has("Transfer-Encoding")) std::abort();
  for (const auto& header : head.headers) {
    if (header.value.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos) {
      std::abort();
    }
  }
  return 0;
}
