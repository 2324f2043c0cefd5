// Heads of HTTP/1 messages, and chunked bodies. Beast's parser does the parsing; what it lets
// through but two implementations could understand differently is refused here, because behind
// such differences requests are smuggled (RFC 9112, 11.2).

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "net/http.h"

namespace glovebox::net {

// Finds the end of a head in bytes that arrive piece by piece, and refuses what makes the lines
// of a head ambiguous: a line feed without carriage return, and folded lines.
class HeadScanner {
 public:
  enum class Found { kMore, kEnd, kBad };
  // `bytes` are all so far, from the start of the head.
  Found scan(std::string_view bytes) noexcept;
  std::size_t head_bytes() const noexcept { return at_; }  // After kEnd, with its empty line.
  void reset() noexcept { *this = HeadScanner(); }

 private:
  std::size_t at_ = 0;          // Everything before was looked at.
  std::size_t line_start_ = 0;  // Of the line that is not yet complete.
};

// Why a head was refused, as the status that the server answers.
struct HeadFault {
  HeadFault() = default;  // Asio needs it of what a coroutine returns.
  HeadFault(int s, std::string_view m) : status(s), message(m) {}
  int status = 400;
  std::string_view message;
};

inline constexpr std::size_t kHeaderCountMax = 256;

// `head` is complete, with its empty line.
std::variant<RequestHead, HeadFault> parse_request_head(std::string_view head);
// Into a head that may be an old one, whose memory is used again. A status of 200 is none.
HeadFault parse_request_head(std::string_view head, RequestHead& into);

// For a reply the fault's status means nothing.
std::variant<ResponseHead, HeadFault> parse_response_head(std::string_view head);

// The same without copies, for the relay: valid as long as the bytes are.
struct FieldView {
  std::string_view name;
  std::string_view value;
};
struct ResponseView {
  int status = 0;
  std::optional<std::uint64_t> content_length;
  bool chunked = false;
  bool keep_alive = false;
  std::vector<FieldView> fields;
};
HeadFault parse_response_head(std::string_view head, ResponseView& into);

// True when a reply of this status never has a body (RFC 9112, 6.3).
constexpr bool bodiless(int status) noexcept {
  return (status >= 100 && status < 200) || status == 204 || status == 304;
}

// Decodes a chunked body. Trailers are read and dropped.
class ChunkDecoder {
 public:
  ChunkDecoder();
  ChunkDecoder(ChunkDecoder&&) noexcept;
  ChunkDecoder& operator=(ChunkDecoder&&) noexcept;
  ~ChunkDecoder();

  enum class State { kData, kMore, kDone, kBad };
  struct Step {
    State state = State::kMore;
    std::size_t used = 0;   // Bytes of `bytes` that are done with.
    std::string_view data;  // For kData: at least one byte, within `bytes`.
  };
  // What was not used must be given again, with more behind it after kMore. Yields at most
  // `data_max` bytes at once.
  Step step(std::string_view bytes, std::size_t data_max);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace glovebox::net
