// Result<T> is a T or an Error. It is a subset of std::expected<T, Error>, by the same names,
// so that it can become an alias when the compiler has <expected>. Unlike it, ignoring a
// Result is a compile error.

#pragma once

#include <optional>
#include <utility>
#include <variant>

#include "base/error.h"

namespace glovebox {

template <class T>
class [[nodiscard]] Result {
 public:
  // An error, never a third state. Asio's co_spawn and || need to default-construct what a
  // coroutine returns (Boost 1.81).
  Result() : Result(Error(Errc::kInternal, "no result")) {}

  // Implicit on purpose: `return value;` and `return Error(...);` both read well.
  // NOLINTBEGIN(google-explicit-constructor)
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}
  // NOLINTEND(google-explicit-constructor)

  bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  // std::get throws on the wrong side: reading a value that is not there is a bug, never silent.
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

  // On failure, says what the caller was doing; on success, does nothing.
  Result context(std::string_view what) && {
    if (!has_value()) state_.template emplace<1>(std::move(*this).error().context(what));
    return std::move(*this);
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool has_value() const noexcept { return !error_; }
  explicit operator bool() const noexcept { return has_value(); }
  const Error& error() const& { return error_.value(); }
  Error&& error() && { return std::move(error_).value(); }
  Result context(std::string_view what) && {
    if (error_) error_ = std::move(*error_).context(what);
    return std::move(*this);
  }

 private:
  std::optional<Error> error_;
};

}  // namespace glovebox

// GB_TRY(expr)            returns the error from this function, or goes on.
// GB_TRY_ASSIGN(x, expr)  the same, and declares or assigns `x` on success.
// GB_CO_TRY / GB_CO_TRY_ASSIGN are for coroutines; `expr` may contain co_await.
#define GB_CAT2(a, b) a##b
#define GB_CAT(a, b) GB_CAT2(a, b)
#define GB_TRY_IMPL(tmp, ret, expr) \
  if (auto tmp = (expr); !tmp) ret std::move(tmp).error()
#define GB_ASSIGN_IMPL(tmp, ret, lhs, expr) \
  auto tmp = (expr);                        \
  if (!tmp) ret std::move(tmp).error();     \
  lhs = std::move(tmp).value()
#define GB_TRY(expr) GB_TRY_IMPL(GB_CAT(gb_try_, __LINE__), return, expr)
#define GB_TRY_ASSIGN(lhs, expr) GB_ASSIGN_IMPL(GB_CAT(gb_try_, __LINE__), return, lhs, expr)
#define GB_CO_TRY(expr) GB_TRY_IMPL(GB_CAT(gb_try_, __LINE__), co_return, expr)
#define GB_CO_TRY_ASSIGN(lhs, expr) GB_ASSIGN_IMPL(GB_CAT(gb_try_, __LINE__), co_return, lhs, expr)
