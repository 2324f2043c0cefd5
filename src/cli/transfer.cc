#include "cli/transfer.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "async/coro.h"
#include "base/base64.h"
#include "base/text.h"
#include "cli/shell.h"
#include "cli/stdio.h"
#include "net/client.h"
#include "net/url.h"

namespace glovebox::cli {
namespace {

constexpr std::size_t kPieceBytes = 256 << 10;
// Between two pieces; a whole transfer may take as long as it likes.
constexpr std::chrono::minutes kPieceTimeout{5};
constexpr std::size_t kErrorBytesMax = 64 << 10;

// The body of a reply that is small when all is well.
Task<Result<std::string>> read_text(net::ClientConnection& connection) {
  std::string body;
  std::array<char, 4096> buffer{};
  while (body.size() < kErrorBytesMax) {
    Result<std::size_t> got = co_await connection.read_body(buffer, after(kPieceTimeout));
    if (!got) co_return std::move(got).error();
    if (*got == 0) break;
    body.append(buffer.data(), *got);
  }
  co_return body;
}

Task<Result<void>> send_file(net::ClientConnection& connection, int fd,
                             std::optional<std::uint64_t> size, const OnBytes& on_bytes) {
  const Executor executor = co_await boost::asio::this_coro::executor;
  StandardStream source(executor, fd, Direction::kRead);
  std::vector<char> buffer(kPieceBytes);
  std::uint64_t left = size.value_or(UINT64_MAX);
  while (left > 0) {
    const std::span<char> room(buffer.data(), std::min<std::uint64_t>(buffer.size(), left));
    Result<std::size_t> got = co_await source.read_some(room);
    if (!got) co_return std::move(got).error();
    if (*got == 0) break;
    const std::string_view piece(buffer.data(), *got);
    Result<void> sent = co_await connection.write_body(piece, after(kPieceTimeout));
    if (!sent) co_return std::move(sent).error();
    left -= *got;
    if (on_bytes) on_bytes(*got);
  }
  if (size && left > 0) co_return Error(Errc::kConflict, "the file became shorter meanwhile");
  co_return Result<void>();
}

Task<Result<std::unique_ptr<net::ClientConnection>>> connect(Api& api) {
  Result<net::Stream> stream = co_await api.dial();
  if (!stream) co_return std::move(stream).error();
  co_return std::make_unique<net::ClientConnection>(std::move(*stream));
}

// Reads the reply to an upload. A reply that comes early, while we were still sending, says more
// than our broken pipe does.
Task<Result<void>> finish_upload(net::ClientConnection& connection, Result<void> sent) {
  if (sent) sent = co_await connection.finish_body(after(kPieceTimeout));
  if (!sent && sent.error().code() == Errc::kConflict) co_return sent;
  const auto wait = sent ? Clock::duration(kPieceTimeout) : std::chrono::seconds(2);
  Result<net::ResponseHead> head = co_await connection.read_head(false, after(wait));
  if (!head) co_return sent ? std::move(head).error() : std::move(sent).error();
  Result<std::string> body = co_await read_text(connection);
  if (head->status / 100 == 2) co_return sent;
  co_return error_of_reply(head->status, body ? *body : std::string());
}

std::string octal(unsigned mode) {
  std::string out = "0000";
  for (int i = 3; i >= 0; --i, mode >>= 3) out[i] = static_cast<char>('0' + (mode & 7));
  return out;
}

Task<Result<void>> begin_upload(Api& api, net::ClientConnection& connection, const RemotePath& to,
                                std::optional<std::uint64_t> size, unsigned mode) {
  net::Headers headers = api.headers();
  headers.add("Content-Type", "application/octet-stream");
  const std::string target = api.full_target(
      sandbox_target(to.sandbox, "files?" + path_query(to) + "&mode=" + octal(mode & 0777)));
  co_return co_await connection.send_head("PUT", target, headers, size, true, after(kPieceTimeout));
}

}  // namespace

std::string path_query(const RemotePath& at) {
  std::string out = is_utf8(at.path) ? "path=" + net::percent_encode(at.path)
                                     : "path_b64=" + net::percent_encode(to_base64(at.path));
  if (!at.user.empty()) out += "&user=" + net::percent_encode(at.user);
  return out;
}

Task<Result<void>> upload(Api& api, RemotePath to, int fd, std::optional<std::uint64_t> size,
                          unsigned mode, OnBytes on_bytes) {
  Result<std::unique_ptr<net::ClientConnection>> connection = co_await connect(api);
  if (!connection) co_return std::move(connection).error();
  net::ClientConnection& c = **connection;
  const Interrupt::Hook hook(api.interrupt(), [&c] { c.stream().close(); });
  Result<void> sent = co_await begin_upload(api, c, to, size, mode);
  if (!sent) co_return std::move(sent).error();
  sent = co_await send_file(c, fd, size, on_bytes);
  co_return co_await finish_upload(c, std::move(sent));
}

Task<Result<void>> upload_text(Api& api, RemotePath to, std::string text, unsigned mode) {
  Result<std::unique_ptr<net::ClientConnection>> connection = co_await connect(api);
  if (!connection) co_return std::move(connection).error();
  net::ClientConnection& c = **connection;
  const Interrupt::Hook hook(api.interrupt(), [&c] { c.stream().close(); });
  Result<void> sent = co_await begin_upload(api, c, to, text.size(), mode);
  if (sent) sent = co_await c.write_body(text, after(kPieceTimeout));
  co_return co_await finish_upload(c, std::move(sent));
}

Task<Result<void>> download(Api& api, RemotePath from, Sink sink) {
  Result<std::unique_ptr<net::ClientConnection>> connection = co_await connect(api);
  if (!connection) co_return std::move(connection).error();
  net::ClientConnection& c = **connection;
  const Interrupt::Hook hook(api.interrupt(), [&c] { c.stream().close(); });
  const std::string target =
      api.full_target(sandbox_target(from.sandbox, "files?" + path_query(from)));
  const net::Headers headers = api.headers();
  Result<void> asked =
      co_await c.send_head("GET", target, headers, std::nullopt, false, after(kPieceTimeout));
  if (!asked) co_return asked;
  Result<net::ResponseHead> head = co_await c.read_head(false, after(kPieceTimeout));
  if (!head) co_return std::move(head).error();
  if (head->status != 200) {
    Result<std::string> body = co_await read_text(c);
    co_return error_of_reply(head->status, body ? *body : std::string());
  }
  std::vector<char> buffer(kPieceBytes);
  while (true) {
    Result<std::size_t> got = co_await c.read_body(buffer, after(kPieceTimeout));
    if (!got) co_return std::move(got).error();
    if (*got == 0) break;
    Result<void> taken = co_await sink(std::string_view(buffer.data(), *got));
    if (!taken) co_return taken;
  }
  co_return Result<void>();
}

}  // namespace glovebox::cli
