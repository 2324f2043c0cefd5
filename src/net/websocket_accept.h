// The server's half of the WebSocket handshake, for connection.cc.

#pragma once

#include <memory>
#include <string_view>

#include "async/task.h"
#include "base/deadline.h"
#include "net/http.h"
#include "net/stream.h"
#include "net/websocket.h"

namespace glovebox::net {

// Empty when `head` asks properly for a WebSocket; else why it does not, for a 400, or for a 426
// when it asks for none of our version.
struct HandshakeFault {
  int status = 0;
  std::string_view message;
};
HandshakeFault check_websocket_request(const RequestHead& head);

// Answers 101. `head` has passed the check.
Task<Result<std::unique_ptr<WebSocket>>> accept_websocket(Stream stream, const RequestHead& head,
                                                          std::string request_id,
                                                          Deadline deadline);

}  // namespace glovebox::net
