#include "net/client.h"

#include <array>

#include "async/coro.h"
#include "net/body_reader.h"
#include "net/head.h"
#include "net/in_buffer.h"
#include "net/serialize.h"
#include "net/stream_impl.h"
#include "net/text.h"

namespace glovebox::net {
namespace {

constexpr std::size_t kHeadBytesMax = 64 << 10;
constexpr int kInterimRepliesMax = 16;

}  // namespace

struct ClientConnection::Impl {
  explicit Impl(Stream s) : stream(std::move(s)), in(stream.impl().loop), body(stream.impl(), in) {}

  Stream stream;
  InBuffer in;
  BodyReader body;
  std::string out;
  bool chunked = false;
  std::uint64_t left = 0;  // Of the request's body, with a length.
  bool sent = true;        // The last request, whole.
  bool keep_alive = true;  // Both sides do, as far as we know.
  bool head_read = true;   // The reply's.
  bool switched = false;   // 101

  Task<Result<std::string_view>> fill_head(Deadline deadline);
  Task<Result<void>> write(std::string_view bytes, Deadline deadline);
};

ClientConnection::ClientConnection(Stream stream)
    : impl_(std::make_unique<Impl>(std::move(stream))) {}
ClientConnection::ClientConnection(ClientConnection&&) noexcept = default;
ClientConnection& ClientConnection::operator=(ClientConnection&&) noexcept = default;
ClientConnection::~ClientConnection() = default;

Task<Result<void>> ClientConnection::Impl::write(std::string_view bytes, Deadline deadline) {
  Result<void> done = co_await stream.write_all(bytes, deadline);
  if (!done) keep_alive = false;
  co_return done;
}

Task<Result<void>> ClientConnection::send_head(std::string_view method, std::string_view target,
                                               const Headers& headers,
                                               std::optional<std::uint64_t> content_length,
                                               bool has_body, Deadline deadline) {
  Impl& impl = *impl_;
  const bool clean = is_field_name(method) && is_field_value(target) && !target.empty() &&
                     target.find_first_of(" \t") == std::string_view::npos;
  if (!clean) co_return Error(Errc::kInvalid, "request line with characters not allowed");
  std::string& out = impl.out;
  out.clear();
  out.append(method).append(" ").append(target).append(" HTTP/1.1\r\n");
  for (const Header& header : headers) {
    if (!append_field(out, header.name, header.value)) {
      co_return Error(Errc::kInvalid, "request header with characters not allowed");
    }
    if (equal_ignoring_case(header.name, "Connection") && list_has(header.value, "close")) {
      impl.keep_alive = false;
    }
  }
  impl.chunked = has_body && !content_length;
  impl.left = content_length.value_or(0);
  if (impl.chunked) {
    out.append("Transfer-Encoding: chunked\r\n");
  } else if (content_length && (has_body || *content_length > 0)) {
    out.append("Content-Length: ");
    append_number(out, *content_length);
    out.append("\r\n");
  }
  out.append("\r\n");
  impl.sent = !impl.chunked && impl.left == 0;
  impl.head_read = false;
  co_return co_await impl.write(out, deadline);
}

Task<Result<void>> ClientConnection::write_body(std::string_view bytes, Deadline deadline) {
  Impl& impl = *impl_;
  if (bytes.empty()) co_return Result<void>();
  if (!impl.chunked) {
    if (bytes.size() > impl.left) {
      co_return Error(Errc::kInternal, "request body longer than its Content-Length");
    }
    impl.left -= bytes.size();
    impl.sent = impl.left == 0;
    co_return co_await impl.write(bytes, deadline);
  }
  char space[24];
  const std::string_view header = chunk_header(bytes.size(), space);
  std::array<::iovec, 3> parts;
  parts[0] = ::iovec{const_cast<char*>(header.data()), header.size()};
  parts[1] = ::iovec{const_cast<char*>(bytes.data()), bytes.size()};
  parts[2] = ::iovec{const_cast<char*>("\r\n"), 2};
  Parts left{parts.data(), parts.size()};
  Result<void> done = co_await impl.stream.impl().write_rest(left, deadline);
  if (!done) impl.keep_alive = false;
  co_return done;
}

Task<Result<void>> ClientConnection::finish_body(Deadline deadline) {
  Impl& impl = *impl_;
  if (impl.chunked) {
    GB_CO_TRY(co_await impl.write("0\r\n\r\n", deadline));
    impl.sent = true;
  }
  if (!impl.sent) co_return Error(Errc::kInternal, "request body shorter than its Content-Length");
  co_return Result<void>();
}

// The bytes of one head, in the buffer.
Task<Result<std::string_view>> ClientConnection::Impl::fill_head(Deadline deadline) {
  HeadScanner scanner;
  for (;;) {
    const HeadScanner::Found found = scanner.scan(in.view());
    if (found == HeadScanner::Found::kBad) co_return Error(Errc::kUnavailable, "malformed reply");
    if (found == HeadScanner::Found::kEnd) co_return in.view().substr(0, scanner.head_bytes());
    const std::span<char> room = in.prepare(kHeadBytesMax);
    if (room.empty()) co_return Error(Errc::kUnavailable, "reply's head over 64 KiB");
    GB_CO_TRY_ASSIGN(const std::size_t n, co_await stream.read_some(room, deadline));
    if (n == 0) co_return Error(Errc::kUnavailable, "connection closed before the reply");
    in.commit(n);
  }
}

Task<Result<ResponseHead>> ClientConnection::read_head(bool to_head, Deadline deadline) {
  Impl& impl = *impl_;
  impl.body.start_none();
  for (int interim = 0; interim <= kInterimRepliesMax; ++interim) {
    Result<std::string_view> bytes = co_await impl.fill_head(deadline);
    if (!bytes) impl.keep_alive = false;
    if (!bytes) co_return std::move(bytes).error();
    std::variant<ResponseHead, HeadFault> parsed = parse_response_head(*bytes);
    impl.in.consume(bytes->size());
    if (const HeadFault* fault = std::get_if<HeadFault>(&parsed)) {
      impl.keep_alive = false;
      co_return Error(Errc::kUnavailable, std::string(fault->message));
    }
    ResponseHead head = std::move(std::get<ResponseHead>(parsed));
    if (head.status < 200 && head.status != 101) continue;
    impl.head_read = true;
    impl.switched = head.status == 101;
    if (to_head || bodiless(head.status)) {
      impl.body.start_none();
    } else if (head.chunked) {
      impl.body.start_chunked();
    } else if (head.content_length) {
      impl.body.start_length(*head.content_length);
    } else {
      impl.body.start_to_end();
      impl.keep_alive = false;
    }
    // Beast calls a reply without length unfit for another, which for these is not so.
    const bool framed = !to_head && !bodiless(head.status);
    if (framed ? !head.keep_alive : list_has(head.headers.get("Connection"), "close")) {
      impl.keep_alive = false;
    }
    co_return head;
  }
  impl.keep_alive = false;
  co_return Error(Errc::kUnavailable, "too many interim replies");
}

Task<Result<std::size_t>> ClientConnection::read_body(std::span<char> into, Deadline deadline) {
  Impl& impl = *impl_;
  Result<std::size_t> n = co_await impl.body.read(into, deadline);
  if (!n) impl.keep_alive = false;
  co_return n;
}

bool ClientConnection::reusable() const noexcept {
  const Impl& impl = *impl_;
  return impl.keep_alive && impl.sent && impl.head_read && impl.body.done() && !impl.switched &&
         impl.in.empty() && impl_->stream.fd() >= 0 && !impl_->stream.peer_gone();
}

Stream& ClientConnection::stream() noexcept { return impl_->stream; }

std::string ClientConnection::take_unread() {
  std::string out(impl_->in.view());
  impl_->in.consume(out.size());
  impl_->in.release_if_empty();
  return out;
}

Task<Result<Response>> request(ClientConnection& connection, std::string_view method,
                               std::string_view target, const Headers& headers,
                               std::string_view body, std::size_t body_bytes_max,
                               Deadline deadline) {
  const bool has_body = !body.empty() || method == "POST" || method == "PUT";
  std::optional<std::uint64_t> length;
  if (has_body) length = body.size();
  GB_CO_TRY(co_await connection.send_head(method, target, headers, length, has_body, deadline));
  // A server may refuse and close before it has read all: then its reply says more than EPIPE.
  const Result<void> sent = co_await connection.write_body(body, deadline);
  Result<ResponseHead> head = co_await connection.read_head(method == "HEAD", deadline);
  if (!sent && !head) co_return sent.error();
  if (!head) co_return std::move(head).error();

  Response reply;
  reply.status = head->status;
  reply.headers = std::move(head->headers);
  std::array<char, 16384> piece;
  for (;;) {
    GB_CO_TRY_ASSIGN(const std::size_t n, co_await connection.read_body(piece, deadline));
    if (n == 0) break;
    if (n > body_bytes_max - reply.body.size()) {
      co_return Error(Errc::kExhausted, "reply over " + std::to_string(body_bytes_max) + " bytes");
    }
    reply.body.append(piece.data(), n);
  }
  co_return reply;
}

}  // namespace glovebox::net
