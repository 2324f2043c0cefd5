// The warden's protocol: one SOCK_SEQPACKET message a request, a reply or an event.
//
// A message is a Header and the fields of one struct below, in their order (base/wire.h). The
// warden answers each request once, with the same `id`, in any order. An event has id 0.
// Messages are at most kMessageBytesMax; the socket itself keeps their boundaries.
// The warden checks the peer's uid (SO_PEERCRED) once, when a connection is accepted.
// It closes a connection that breaks these rules; a request that it understands but refuses is
// answered with an error.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace glovebox::warden {

inline constexpr std::uint32_t kProtocolVersion = 1;
inline constexpr std::size_t kMessageBytesMax = 64 << 10;  // Fits any socket's default buffer.
inline constexpr std::size_t kSocketsMax = 16;             // SocketsRequest::count

enum class Op : std::uint16_t {
  kHello = 1,  // HelloRequest -> HelloReply; must come first.
  kCreate,     // CreateRequest -> CreateReply
  kDestroy,    // NameRequest -> empty; succeeds when there is none of that name.
  kFreeze,     // NameRequest -> empty
  kThaw,       // NameRequest -> empty
  kUsage,      // NameRequest -> UsageReply
  kList,       // ListRequest -> ListReply
  kSockets,    // SocketsRequest -> empty, with that many descriptors (SCM_RIGHTS)
  kSubscribe,  // empty -> empty; from then on this connection gets kExited events.
  kExited,     // event: ExitedEvent
};

struct Header {
  std::uint32_t id = 0;
  Op op = Op::kHello;
  // Replies only: 0 is success, else 1 + Errc, and the payload is the error's text (one string).
  std::uint16_t status = 0;
};

struct HelloRequest {
  std::uint32_t version = kProtocolVersion;
};
struct HelloReply {
  std::uint32_t version = kProtocolVersion;
  std::string agent_socket_dir;  // Agents listen at <dir>/<instance>.sock.
};

struct CreateRequest {
  std::string name;  // [a-z0-9-]{1,64}, chosen by the caller.
  std::string template_id;
  std::uint64_t memory_bytes = 0;
  std::uint64_t disk_bytes = 0;
  std::uint32_t cpu_millis = 0;
  std::uint32_t pids = 0;
};
struct CreateReply {
  std::string agent_socket;  // Path of the agent's listening Unix stream socket, on the host.
};

struct NameRequest {
  std::string name;
};

struct UsageReply {
  std::uint64_t cpu_us = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_limit_bytes = 0;
  std::uint64_t memory_peak_bytes = 0;
  std::uint64_t disk_used_bytes = 0;
  std::uint64_t disk_limit_bytes = 0;
  std::uint32_t pids = 0;
  std::uint32_t pids_limit = 0;
  std::uint32_t cpu_millis = 0;
  std::uint64_t oom_kills = 0;
};

// A list is read a page at a time: ask again with `after` set to the last name while `more`.
struct ListRequest {
  std::string after;  // Empty for the first page.
};
struct ListEntry {
  std::string name;
  std::string agent_socket;
  std::uint8_t frozen = 0;
};
struct ListReply {
  std::vector<ListEntry> entries;  // Sorted by name.
  std::uint8_t more = 0;
};

// Unconnected, non-blocking TCP sockets that live in the sandbox's network namespace. The daemon
// connects them itself to 127.0.0.1 or ::1, so no descriptor it uses was ever held by the sandbox.
struct SocketsRequest {
  std::string name;
  std::uint8_t count = 1;
  std::uint8_t ipv6 = 0;
};

struct ExitedEvent {
  std::string name;
  std::string reason;
};

// encode() makes a whole message; decode() of a payload fails with kInvalid on any fault.
std::string encode(const Header& header, std::string_view payload);
struct Message {
  Header header;
  std::string payload;
};
Result<Message> decode_message(std::string_view bytes);

// encode_payload(T) and decode_payload<T>(bytes) exist for each struct above.
template <class T>
std::string encode_payload(const T& value);
template <class T>
Result<T> decode_payload(std::string_view bytes);

// The payload of a failed reply, and back.
std::string encode_error(std::uint32_t id, Op op, const Error& error);
Error decode_error(const Message& reply);

}  // namespace glovebox::warden
