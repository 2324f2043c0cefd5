// Writer and Reader: the plain binary form of the warden's protocol and of its records on disk.
//
// Little-endian fixed-width integers; a string is its length in 4 bytes and its bytes. There is no
// self-description: both ends are built from one header. A Reader never reads past its input and
// never allocates more than the input's own size; after any fault it yields zeros and ok() is
// false, so a decoder reads all its fields and checks once.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace glovebox::wire {

class Writer {
 public:
  template <class T>
    requires std::is_integral_v<T>
  Writer& number(T value) {
    auto bits = static_cast<std::make_unsigned_t<T>>(value);
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      out_.push_back(static_cast<char>(bits & 0xff));
      bits = static_cast<decltype(bits)>(sizeof(T) > 1 ? bits >> 8 : 0);
    }
    return *this;
  }
  Writer& string(std::string_view text) {
    number(static_cast<std::uint32_t>(text.size()));
    out_.append(text);
    return *this;
  }
  const std::string& bytes() const noexcept { return out_; }
  std::string take() && { return std::move(out_); }

 private:
  std::string out_;
};

class Reader {
 public:
  // Borrows `in`, which must outlive the Reader.
  explicit Reader(std::string_view in) : in_(in) {}

  template <class T>
    requires std::is_integral_v<T>
  T number() {
    if (!has(sizeof(T))) return 0;
    std::make_unsigned_t<T> bits = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      bits |= static_cast<decltype(bits)>(
          static_cast<std::uint64_t>(static_cast<unsigned char>(in_[i])) << (8 * i));
    }
    in_.remove_prefix(sizeof(T));
    return static_cast<T>(bits);
  }
  std::string string() {
    const auto size = number<std::uint32_t>();
    if (!has(size)) return {};
    std::string text(in_.substr(0, size));
    in_.remove_prefix(size);
    return text;
  }
  // True when no read went past the end.
  bool ok() const noexcept { return ok_; }
  // True when, besides, nothing is left over: a longer message is from another version.
  bool done() const noexcept { return ok_ && in_.empty(); }

 private:
  bool has(std::size_t n) {
    if (in_.size() < n) ok_ = false;
    return ok_;
  }
  std::string_view in_;
  bool ok_ = true;
};

}  // namespace glovebox::wire
