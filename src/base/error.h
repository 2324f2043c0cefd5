// Error says what went wrong in two forms: a code that a program acts on, a text a person reads.
//
// The code is small and closed, so each protocol adapter can switch over all of it once.
// The text reads outermost first: "create box b-17: mount /proc: Operation not permitted".

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace glovebox {

enum class Errc : std::uint8_t {
  kInvalid,       // The caller's request can never work as it is.
  kNotFound,      // The named thing does not exist.
  kConflict,      // It exists, but its state forbids this.
  kUnauthorized,  // No credential, or none that is known.
  kDenied,        // Policy or the kernel refused.
  kTooLarge,      // It is bigger than is taken here.
  kExhausted,     // A limit or quota is used up; freeing something may help.
  kUnavailable,   // Passing fault; the same call may work later.
  kTimeout,       // A deadline passed.
  kInternal,      // We broke a promise of our own.
};

std::string_view to_string(Errc code) noexcept;

class Error {
 public:
  Error(Errc code, std::string text) : code_(code), text_(std::move(text)) {}

  // Maps errno to a code; ENOENT becomes kNotFound, EPERM kDenied, and so on.
  static Error from_errno(int err, std::string_view what);

  Errc code() const noexcept { return code_; }
  int sys_errno() const noexcept { return errno_; }  // 0 when no system call was involved.
  const std::string& text() const noexcept { return text_; }

  // Puts `what` in front of the text: the caller knows more than the callee did.
  Error context(std::string_view what) &&;

 private:
  Errc code_;
  int errno_ = 0;
  std::string text_;
};

}  // namespace glovebox
