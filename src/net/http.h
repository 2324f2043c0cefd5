// HTTP as handlers see it: plain values, no Beast, no Asio types beyond Task.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace glovebox::net {

struct Header {
  std::string name;
  std::string value;
};

// In the order they came. Names compare without regard to case.
class Headers {
 public:
  Headers() = default;
  Headers(std::initializer_list<Header> list) : list_(list) {}

  // The first of that name, or empty.
  std::string_view get(std::string_view name) const noexcept;
  bool has(std::string_view name) const noexcept;
  void add(std::string name, std::string value);
  void set(std::string_view name, std::string value);  // Replaces all of that name.
  void remove(std::string_view name);

  auto begin() const noexcept { return list_.begin(); }
  auto end() const noexcept { return list_.end(); }
  std::size_t size() const noexcept { return list_.size(); }
  void reserve(std::size_t count) { list_.reserve(count); }
  void clear() noexcept { list_.clear(); }

 private:
  std::vector<Header> list_;
};

struct RequestHead {
  std::string method;  // "GET"
  std::string target;  // Origin form as it came: "/a%2Fb?x=1"
  Headers headers;
  std::optional<std::uint64_t> content_length;
  bool chunked = false;
  bool keep_alive = true;
  bool upgrade = false;   // Asks for a protocol switch (Connection: upgrade).
  bool http_1_0 = false;  // Such a client knows no chunked coding.

  bool has_body() const noexcept { return chunked || content_length.value_or(0) > 0; }
};

struct ResponseHead {
  int status = 200;
  Headers headers;
  std::optional<std::uint64_t> content_length;
  bool chunked = false;
  bool keep_alive = true;
};

struct Response {
  int status = 200;
  Headers headers;
  std::string body;
};

std::string_view reason_phrase(int status) noexcept;

}  // namespace glovebox::net
