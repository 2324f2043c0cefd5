// ActingAs gives this thread a user's rights over files while it lives: file system ids and
// supplementary groups. The kernel then makes every permission check as for that user, and root's
// power over files is gone from the effective set (capabilities(7), "Effect of user ID changes").
//
// Never keep one across a co_await: the next coroutine on the thread would inherit it. A kernel
// that refuses to give the rights back ends the program.

#pragma once

#include "agent/common/users.h"
#include "base/result.h"

namespace glovebox::agent {

class [[nodiscard]] ActingAs {
 public:
  // kInvalid when the ids do not exist in this user namespace.
  static Result<ActingAs> begin(const User& user);
  ActingAs(ActingAs&& other) noexcept : active_(std::exchange(other.active_, false)) {}
  ActingAs& operator=(ActingAs&&) = delete;
  ~ActingAs();

 private:
  explicit ActingAs(bool active) : active_(active) {}
  bool active_;
};

}  // namespace glovebox::agent
