// WebSocket: messages over an upgraded connection (RFC 6455), either end. No compression.

#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "async/task.h"
#include "base/deadline.h"
#include "base/result.h"
#include "net/http.h"
#include "net/stream.h"

namespace glovebox::net {

class WebSocket {
 public:
  struct Message {
    bool binary = false;
    bool closed = false;  // The peer ended the conversation properly; `data` is empty.
    std::string data;
  };

  virtual ~WebSocket() = default;

  // Answers pings by itself. kExhausted for a message over 1 MiB. One reader at a time. A read
  // that timed out goes on: the next call takes it up, and nothing is lost.
  virtual Task<Result<Message>> read(Deadline deadline) = 0;
  // One writer at a time. A write that timed out ends the connection: a frame was half sent.
  virtual Task<Result<void>> write_text(std::string_view text, Deadline deadline) = 0;
  virtual Task<Result<void>> write_binary(std::string_view bytes, Deadline deadline) = 0;
  virtual Task<Result<void>> ping(Deadline deadline) = 0;
  virtual Task<void> close(std::string_view reason, Deadline deadline) = 0;

  // The client's handshake on a fresh connection.
  static Task<Result<std::unique_ptr<WebSocket>>> connect(Stream stream, std::string host,
                                                          std::string target, Headers headers,
                                                          Deadline deadline);
};

}  // namespace glovebox::net
