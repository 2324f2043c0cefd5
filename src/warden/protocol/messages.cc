#include "warden/protocol/messages.h"

#include "base/wire.h"

namespace glovebox::warden {
namespace {

// One visit a struct serves both directions: `io` is an Encoder or a Decoder.
struct Encoder {
  wire::Writer out;
  template <class T>
  void operator()(const T& field) {
    if constexpr (std::is_integral_v<T>) {
      out.number(field);
    } else {
      out.string(field);
    }
  }
};

struct Decoder {
  wire::Reader in;
  template <class T>
  void operator()(T& field) {
    if constexpr (std::is_integral_v<T>) {
      field = in.number<T>();
    } else {
      field = in.string();
    }
  }
};

// `M` is `const T` when encoding.
void visit(auto& io, auto& m, const HelloRequest*) { io(m.version); }
void visit(auto& io, auto& m, const HelloReply*) {
  io(m.version);
  io(m.agent_socket_dir);
}
void visit(auto& io, auto& m, const CreateRequest*) {
  io(m.name);
  io(m.template_id);
  io(m.memory_bytes);
  io(m.disk_bytes);
  io(m.cpu_millis);
  io(m.pids);
}
void visit(auto& io, auto& m, const CreateReply*) { io(m.agent_socket); }
void visit(auto& io, auto& m, const NameRequest*) { io(m.name); }
void visit(auto& io, auto& m, const UsageReply*) {
  io(m.cpu_us);
  io(m.memory_bytes);
  io(m.memory_limit_bytes);
  io(m.memory_peak_bytes);
  io(m.disk_used_bytes);
  io(m.disk_limit_bytes);
  io(m.pids);
  io(m.pids_limit);
  io(m.cpu_millis);
  io(m.oom_kills);
}
void visit(auto& io, auto& m, const ListRequest*) { io(m.after); }
void visit(auto& io, auto& m, const ListEntry*) {
  io(m.name);
  io(m.agent_socket);
  io(m.frozen);
}
void visit(auto& io, auto& m, const SocketsRequest*) {
  io(m.name);
  io(m.count);
  io(m.ipv6);
}
void visit(auto& io, auto& m, const ExitedEvent*) {
  io(m.name);
  io(m.reason);
}
void visit(Encoder& io, const ListReply& m, const ListReply*) {
  io(static_cast<std::uint32_t>(m.entries.size()));
  for (const ListEntry& e : m.entries) visit(io, e, &e);
  io(m.more);
}
void visit(Decoder& io, ListReply& m, const ListReply*) {
  std::uint32_t count = 0;
  io(count);
  // Stops at the first fault, so a lying count costs nothing.
  for (std::uint32_t i = 0; i < count && io.in.ok(); ++i) {
    ListEntry e;
    visit(io, e, &e);
    m.entries.push_back(std::move(e));
  }
  io(m.more);
}

constexpr auto kOpLast = static_cast<std::uint16_t>(Op::kExited);
constexpr auto kErrcLast = static_cast<std::uint16_t>(Errc::kInternal);

}  // namespace

std::string encode(const Header& header, std::string_view payload) {
  wire::Writer out;
  out.number(header.id).number(static_cast<std::uint16_t>(header.op)).number(header.status);
  std::string bytes = std::move(out).take();
  return bytes.append(payload);
}

Result<Message> decode_message(std::string_view bytes) {
  wire::Reader in(bytes);
  Message m;
  m.header.id = in.number<std::uint32_t>();
  const auto op = in.number<std::uint16_t>();
  m.header.status = in.number<std::uint16_t>();
  if (!in.ok()) return Error(Errc::kInvalid, "warden message: shorter than its header");
  if (op < 1 || op > kOpLast) return Error(Errc::kInvalid, "warden message: no such operation");
  if (m.header.status > kErrcLast + 1)
    return Error(Errc::kInvalid, "warden message: no such status");
  m.header.op = static_cast<Op>(op);
  m.payload = bytes.substr(8);
  return m;
}

template <class T>
std::string encode_payload(const T& value) {
  Encoder io;
  visit(io, value, &value);
  return std::move(io.out).take();
}

template <class T>
Result<T> decode_payload(std::string_view bytes) {
  Decoder io{wire::Reader(bytes)};
  T value{};
  visit(io, value, &value);
  if (!io.in.done()) return Error(Errc::kInvalid, "warden message: wrong length for its kind");
  return value;
}

#define GB_MESSAGE(T)                            \
  template std::string encode_payload(const T&); \
  template Result<T> decode_payload<T>(std::string_view)
GB_MESSAGE(HelloRequest);
GB_MESSAGE(HelloReply);
GB_MESSAGE(CreateRequest);
GB_MESSAGE(CreateReply);
GB_MESSAGE(NameRequest);
GB_MESSAGE(UsageReply);
GB_MESSAGE(ListRequest);
GB_MESSAGE(ListReply);
GB_MESSAGE(SocketsRequest);
GB_MESSAGE(ExitedEvent);
#undef GB_MESSAGE

std::string encode_error(std::uint32_t id, Op op, const Error& error) {
  const auto status = static_cast<std::uint16_t>(static_cast<std::uint16_t>(error.code()) + 1);
  wire::Writer text;
  text.string(error.text());
  return encode({id, op, status}, text.bytes());
}

Error decode_error(const Message& reply) {
  wire::Reader in(reply.payload);
  std::string text = in.string();
  if (!in.done()) text = "the warden failed without a reason";
  return {static_cast<Errc>(reply.header.status - 1), std::move(text)};
}

}  // namespace glovebox::warden
