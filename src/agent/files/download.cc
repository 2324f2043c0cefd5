#include "agent/files/download.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include "agent/common/reply.h"
#include "agent/files/byte_range.h"
#include "agent/files/fs_error.h"
#include "async/coro.h"

namespace glovebox::agent {
namespace {

constexpr std::size_t kBufferBytes = 256 << 10;

struct OpenFile {
  UniqueFd fd;
  struct stat st{};
};

Result<OpenFile> open_regular(FileCall& call, const std::string& path) {
  GB_TRY_ASSIGN(const ActingAs rights, call.act());
  OpenFile file;
  // Without O_NONBLOCK, opening a FIFO waits for a writer.
  GB_TRY_ASSIGN(file.fd, call.tree().open_file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  if (::fstat(file.fd.get(), &file.st) != 0) return fs_error(errno, path);
  if (S_ISDIR(file.st.st_mode)) return fs_error(EISDIR, path);
  if (!S_ISREG(file.st.st_mode)) return fs_error(ENXIO, path);
  return file;
}

std::string etag_of(const struct stat& st) {
  char text[80];
  std::snprintf(text, sizeof text, "\"%llx-%llx-%llx%09lx\"",
                static_cast<unsigned long long>(st.st_ino),
                static_cast<unsigned long long>(st.st_size),
                static_cast<unsigned long long>(st.st_mtim.tv_sec),
                static_cast<unsigned long>(st.st_mtim.tv_nsec));
  return text;
}

std::string http_date(time_t time) {
  struct tm parts{};
  ::gmtime_r(&time, &parts);
  char text[40];
  // The C locale is in force: nothing here ever calls setlocale().
  const std::size_t n = std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return {text, n};
}

// If-None-Match: "*" or a list, in which weak and strong tags compare alike.
bool matches(std::string_view header, std::string_view etag) {
  return header == "*" || header.find(etag) != std::string_view::npos;
}

struct Plan {
  int status = 200;
  ByteRange range;
  net::Headers headers;
};

Plan plan_reply(const net::RequestHead& head, const struct stat& st) {
  const auto size = static_cast<std::uint64_t>(st.st_size);
  const std::string etag = etag_of(st);
  Plan plan;
  plan.headers.add("Content-Type", "application/octet-stream");
  plan.headers.add("ETag", etag);
  plan.headers.add("Last-Modified", http_date(st.st_mtim.tv_sec));
  plan.headers.add("Accept-Ranges", "bytes");
  plan.range = {0, size};
  if (head.headers.has("If-None-Match") && matches(head.headers.get("If-None-Match"), etag)) {
    plan.status = 304;
    return plan;
  }
  const std::string_view if_range = head.headers.get("If-Range");
  if (!if_range.empty() && if_range != etag) return plan;
  switch (parse_range(head.headers.get("Range"), size, plan.range)) {
    case RangeKind::kNone: break;
    case RangeKind::kOne:
      plan.status = 206;
      plan.headers.add("Content-Range", "bytes " + std::to_string(plan.range.first) + "-" +
                                            std::to_string(plan.range.first + plan.range.size - 1) +
                                            "/" + std::to_string(size));
      break;
    case RangeKind::kUnsatisfiable:
      plan.status = 416;
      plan.headers.add("Content-Range", "bytes */" + std::to_string(size));
      break;
  }
  return plan;
}

Result<std::size_t> read_at(const UniqueFd& fd, std::string& buffer, std::size_t n,
                            std::uint64_t offset) {
  for (;;) {
    const ssize_t got = ::pread(fd.get(), buffer.data(), n, static_cast<off_t>(offset));
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) return fs_error(errno, "read");
  }
}

Task<Result<void>> send_range(net::Exchange& exchange, const UniqueFd& fd, ByteRange range) {
  std::string buffer(std::min<std::uint64_t>(kBufferBytes, range.size), '\0');
  while (range.size > 0) {
    const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), range.size));
    Result<std::size_t> n = read_at(fd, buffer, want, range.first);
    if (!n) co_return std::move(n).error();
    // The length is promised already, so the reply ends as one that was cut.
    if (*n == 0) co_return Error(Errc::kUnavailable, "the file became shorter");
    const std::string_view bytes(buffer.data(), *n);
    Result<void> sent = co_await exchange.write(bytes);
    if (!sent) co_return sent;
    range.first += *n;
    range.size -= *n;
  }
  Result<void> sent = co_await exchange.finish();
  co_return sent;
}

// Kernel files (/proc/meminfo) say that they have no bytes: theirs is known when they end.
Task<Result<void>> send_to_end(net::Exchange& exchange, const UniqueFd& fd, Plan& plan) {
  std::string buffer(64 << 10, '\0');
  std::uint64_t offset = 0;
  Result<std::size_t> n = read_at(fd, buffer, buffer.size(), offset);
  if (!n) co_return std::move(n).error();
  net::Headers headers = plan.headers;
  std::optional<std::uint64_t> length;
  if (*n == 0) length = 0;
  Result<void> sent = co_await exchange.start(200, std::move(headers), length);
  while (sent && n && *n > 0) {
    const std::string_view bytes(buffer.data(), *n);
    sent = co_await exchange.write(bytes);
    offset += *n;
    n = read_at(fd, buffer, buffer.size(), offset);
  }
  if (!sent) co_return sent;
  if (!n) co_return std::move(n).error();
  sent = co_await exchange.finish();
  co_return sent;
}

}  // namespace

Task<Result<void>> download(net::Exchange& exchange, FileCall call, std::string path) {
  GB_CO_TRY_ASSIGN(const OpenFile file, open_regular(call, path));
  Plan plan = plan_reply(exchange.head(), file.st);
  const bool head_only = exchange.head().method == "HEAD";
  if (plan.status == 416) {
    net::Response reply = error_reply(Error(Errc::kInvalid, path + ": no such range"));
    reply.status = 416;
    reply.headers.add("Content-Range", std::string(plan.headers.get("Content-Range")));
    Result<void> sent = co_await exchange.respond(std::move(reply));
    co_return sent;
  }
  if (file.st.st_size == 0 && plan.status == 200 && !head_only) {
    Result<void> sent = co_await send_to_end(exchange, file.fd, plan);
    co_return sent;
  }
  std::optional<std::uint64_t> length = plan.range.size;
  if (plan.status == 304) length = 0;
  net::Headers headers = plan.headers;
  Result<void> sent = co_await exchange.start(plan.status, std::move(headers), length);
  if (!sent) co_return sent;
  if (plan.status == 304 || head_only) {
    sent = co_await exchange.finish();
  } else {
    sent = co_await send_range(exchange, file.fd, plan.range);
  }
  co_return sent;
}

}  // namespace glovebox::agent
