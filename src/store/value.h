// Value is one argument of a statement: null, integer, text or bytes. It borrows; use it in the
// call it is passed to.

#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/time.h"

namespace glovebox::store {

struct Blob {
  std::string_view bytes;
};

class Value {
 public:
  // NOLINTBEGIN(google-explicit-constructor): arguments of query() and run().
  Value(std::nullptr_t) {}
  template <std::integral T>
  Value(T n) : v_(static_cast<std::int64_t>(n)) {}
  Value(std::string_view text) : v_(text) {}
  Value(const std::string& text) : v_(std::string_view(text)) {}
  Value(const char* text) : v_(std::string_view(text)) {}
  Value(Blob blob) : v_(blob) {}
  Value(WallTime t) : v_(to_unix_ms(t)) {}
  Value(Millis d) : v_(static_cast<std::int64_t>(d.count())) {}
  template <class T>
  Value(const std::optional<T>& o) {
    if (o) *this = Value(*o);
  }
  // NOLINTEND(google-explicit-constructor)

  using Variant = std::variant<std::nullptr_t, std::int64_t, std::string_view, Blob>;
  const Variant& get() const noexcept { return v_; }

 private:
  Variant v_;
};

}  // namespace glovebox::store
