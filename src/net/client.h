// Client: HTTP/1.1 requests over one connection, one after another.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "async/task.h"
#include "base/deadline.h"
#include "base/result.h"
#include "net/http.h"
#include "net/stream.h"

namespace glovebox::net {

class ClientConnection {
 public:
  explicit ClientConnection(Stream stream);
  ClientConnection(ClientConnection&&) noexcept;
  ClientConnection& operator=(ClientConnection&&) noexcept;
  ~ClientConnection();

  // Adds nothing but Content-Length or Transfer-Encoding: Host is the caller's.
  // Without a length, and with `has_body`, the body is chunked.
  Task<Result<void>> send_head(std::string_view method, std::string_view target,
                               const Headers& headers, std::optional<std::uint64_t> content_length,
                               bool has_body, Deadline deadline);
  Task<Result<void>> write_body(std::string_view bytes, Deadline deadline);
  Task<Result<void>> finish_body(Deadline deadline);

  // Skips 1xx but 101. `to_head` says the request was HEAD, whose reply has no body.
  Task<Result<ResponseHead>> read_head(bool to_head, Deadline deadline);
  Task<Result<std::size_t>> read_body(std::span<char> into, Deadline deadline);  // 0 at the end.

  // True when the last reply was read to its end and both sides keep the connection.
  bool reusable() const noexcept;
  Stream& stream() noexcept;
  std::string take_unread();  // After 101: bytes that belong to the new protocol.

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A whole request and its whole reply. kExhausted when the reply's body is over `body_bytes_max`.
Task<Result<Response>> request(ClientConnection& connection, std::string_view method,
                               std::string_view target, const Headers& headers,
                               std::string_view body, std::size_t body_bytes_max,
                               Deadline deadline);

}  // namespace glovebox::net
