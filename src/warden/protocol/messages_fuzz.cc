// Bytes from the daemon reach root through these decoders.

#include "warden/protocol/messages.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace glovebox::warden;  // NOLINT(google-build-using-namespace)
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto message = decode_message(bytes);
  const std::string_view payload = message ? std::string_view(message->payload) : bytes;
  (void)decode_payload<HelloRequest>(payload);
  (void)decode_payload<CreateRequest>(payload);
  (void)decode_payload<NameRequest>(payload);
  (void)decode_payload<ListRequest>(payload);
  (void)decode_payload<ListReply>(payload);
  (void)decode_payload<SocketsRequest>(payload);
  (void)decode_payload<ExitedEvent>(payload);
  return 0;
}
