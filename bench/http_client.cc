#include "http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace glovebox::bench {
namespace {

constexpr timeval kTimeout{120, 0};

bool is_header(std::string_view line, std::string_view name) {
  return line.size() > name.size() && line[name.size()] == ':' &&
         strncasecmp(line.data(), name.data(), name.size()) == 0;
}

}  // namespace

void Connection::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  buffer_.clear();
  at_ = 0;
}

bool Connection::connect() {
  close();
  const bool local = !target_.unix_path.empty();
  fd_ = ::socket(local ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd_ < 0) return false;
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &kTimeout, sizeof kTimeout);
  ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &kTimeout, sizeof kTimeout);
  if (local) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, target_.unix_path.c_str(), sizeof address.sun_path - 1);
    return ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  const int on = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(target_.port);
  ::inet_pton(AF_INET, target_.host.c_str(), &address.sin_addr);
  return ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

bool Connection::send_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

bool Connection::fill() {
  if (at_ == buffer_.size()) {
    buffer_.clear();
    at_ = 0;
  }
  char chunk[65536];
  const ssize_t n = ::recv(fd_, chunk, sizeof chunk, 0);
  if (n <= 0) return false;
  buffer_.append(chunk, static_cast<std::size_t>(n));
  return true;
}

std::string Connection::head(std::string_view method, std::string_view path,
                             std::uint64_t length) const {
  std::string out;
  out.append(method).append(" ").append(path).append(" HTTP/1.1\r\n");
  if (target_.headers.find("Host:") == std::string::npos) out += "Host: bench\r\n";
  out += target_.headers;
  if (length > 0 || method == "POST" || method == "PUT") {
    out += "Content-Length: " + std::to_string(length) + "\r\n";
  }
  return out + "\r\n";
}

Reply Connection::request(std::string_view method, std::string_view path, std::string_view body,
                          const std::function<void(std::string_view)>& sink) {
  // A connection that the server closed while it was idle is opened again, once.
  for (int attempt = 0; attempt < 2; ++attempt) {
    const bool fresh = fd_ < 0;
    if (fresh && !connect()) break;
    std::string bytes = head(method, path, body.size());
    bytes += body;
    if (send_all(bytes)) {
      Reply reply = read_reply(sink);
      if (reply.status != 0) return reply;
    }
    close();
    if (fresh) break;
  }
  return {};
}

Reply Connection::upload(std::string_view method, std::string_view path, std::string_view block,
                         std::uint64_t size) {
  if (fd_ < 0 && !connect()) return {};
  if (!send_all(head(method, path, size))) return {};
  while (size > 0) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(size, block.size()));
    if (!send_all(block.substr(0, part))) return {};
    size -= part;
  }
  return read_reply({});
}

Reply Connection::read_reply(const std::function<void(std::string_view)>& sink) {
  std::size_t end = 0;
  while ((end = buffer_.find("\r\n\r\n", at_)) == std::string::npos) {
    if (!fill()) return {};
  }
  const std::string_view text = std::string_view(buffer_).substr(at_, end - at_);
  Reply reply;
  bool chunked = false;
  bool keep = true;
  std::uint64_t length = 0;
  if (text.size() > 12) reply.status = std::atoi(text.data() + 9);
  for (std::size_t line_at = text.find("\r\n"); line_at != std::string_view::npos;) {
    const std::string_view line = text.substr(line_at + 2);
    if (is_header(line, "Content-Length")) length = std::strtoull(line.data() + 15, nullptr, 10);
    if (is_header(line, "Transfer-Encoding")) chunked = true;
    if (is_header(line, "Connection")) keep = strncasecmp(line.data() + 11, " close", 6) != 0;
    line_at = text.find("\r\n", line_at + 2);
  }
  at_ = end + 4;
  const auto take = [&](std::uint64_t count) {
    while (count > 0) {
      if (at_ == buffer_.size() && !fill()) return false;
      const auto part =
          static_cast<std::size_t>(std::min<std::uint64_t>(count, buffer_.size() - at_));
      const std::string_view bytes = std::string_view(buffer_).substr(at_, part);
      reply.body_bytes += part;
      if (sink) {
        sink(bytes);
      } else {
        reply.body.append(bytes);
      }
      at_ += part;
      count -= part;
    }
    return true;
  };
  if (chunked) {
    for (;;) {
      std::size_t eol = 0;
      while ((eol = buffer_.find("\r\n", at_)) == std::string::npos) {
        if (!fill()) return {};
      }
      const std::uint64_t size = std::strtoull(buffer_.c_str() + at_, nullptr, 16);
      at_ = eol + 2;
      if (!take(size)) return {};
      while (buffer_.size() - at_ < 2) {
        if (!fill()) return {};
      }
      at_ += 2;
      if (size == 0) break;
    }
  } else if (reply.status != 204 && reply.status != 304 && !take(length)) {
    return {};
  }
  if (!keep) close();
  return reply;
}

}  // namespace glovebox::bench
