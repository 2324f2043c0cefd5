// Between JSON and the domain's values. Pure functions, so that they can be tested and fuzzed.

#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "sandbox/sandbox.h"
#include "sandbox/service.h"

namespace glovebox::api::native {

// An empty body is {}: everything at its default.
Result<sandbox::CreateSpec> decode_create(std::string_view body);

// {"timeout_s": N} or {"expires_at": "…"}.
Result<std::variant<Millis, WallTime>> decode_extend(std::string_view body);

// For calls that take nothing: an empty body or {}.
Result<void> decode_nothing(std::string_view body);

struct ListQuery {
  sandbox::Filter filter;
  int limit = 100;
  std::string cursor;
};
using Params = std::vector<std::pair<std::string, std::string>>;  // Decoded.
Result<ListQuery> decode_list(const Params& params);

std::string encode(const sandbox::Sandbox& sandbox);
std::string encode(const sandbox::Page& page);
std::string encode(const sandbox::Usage& usage);

}  // namespace glovebox::api::native
