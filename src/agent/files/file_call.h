// What every file call has: whose rights it uses, and where its paths lead.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agent/common/acting_as.h"
#include "agent/common/json_fields.h"
#include "agent/common/users.h"
#include "agent/files/tree.h"
#include "base/result.h"
#include "net/url.h"

namespace glovebox::agent {

class FileCall {
 public:
  // From the query: user, root, root_b64.
  static Result<FileCall> from_query(Users& users, const net::Target& target);

  const User& user() const noexcept { return user_; }
  Tree& tree() noexcept { return *tree_; }
  // Never keep it across a co_await.
  Result<ActingAs> act() const { return ActingAs::begin(user_); }

 private:
  User user_;
  std::optional<Tree> tree_;
};

// The parameter `name`, or `name`_b64 decoded; kInvalid when neither or both are there.
Result<std::string> path_param(const net::Target& target, std::string_view name);
Result<std::string> path_member(JsonFields& json, const std::string& name);

// 0, 1, false or true.
Result<bool> flag_param(const net::Target& target, std::string_view name, bool otherwise);
Result<std::uint64_t> number_param(const net::Target& target, std::string_view name,
                                   std::uint64_t otherwise, std::uint64_t least,
                                   std::uint64_t most);

}  // namespace glovebox::agent
