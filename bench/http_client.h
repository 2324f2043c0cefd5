// A blocking HTTP/1.1 client for the load generator. It shares no code with what it measures, and
// does as little as it can: one connection, Content-Length or chunked replies, no redirects.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace glovebox::bench {

struct Target {
  std::string unix_path;  // Or:
  std::string host;       // A numeric IPv4 address.
  std::uint16_t port = 0;
  std::string headers;  // "Name: value\r\n" lines that every request carries.
};

struct Reply {
  int status = 0;  // 0: the connection failed.
  std::string body;
  std::uint64_t body_bytes = 0;
};

class Connection {
 public:
  explicit Connection(Target target) : target_(std::move(target)) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { close(); }

  // Connects when it is not connected. Keeps the body unless `sink` takes it.
  Reply request(std::string_view method, std::string_view path, std::string_view body = {},
                const std::function<void(std::string_view)>& sink = {});
  // Sends `size` bytes made by repeating `block`, with a Content-Length.
  Reply upload(std::string_view method, std::string_view path, std::string_view block,
               std::uint64_t size);
  void close();

 private:
  bool connect();
  bool send_all(std::string_view bytes);
  bool fill();
  Reply read_reply(const std::function<void(std::string_view)>& sink);
  std::string head(std::string_view method, std::string_view path, std::uint64_t length) const;

  Target target_;
  int fd_ = -1;
  std::string buffer_;
  std::size_t at_ = 0;
};

}  // namespace glovebox::bench
