// The target of a request, taken apart by RFC 3986 with the strictness a router needs: what is
// matched is what is forwarded. Percent-decoding happens once, after splitting.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace glovebox::net {

struct Target {
  std::string path;                   // Raw, starts with '/'.
  std::string query;                  // Raw, without '?'.
  std::vector<std::string> segments;  // Decoded parts of the path between slashes.
  std::vector<std::pair<std::string, std::string>> params;  // Decoded, '+' is a space.

  std::optional<std::string> param(std::string_view name) const;
};

// Refuses: no leading '/', broken percent escapes, control bytes, NUL, "." and ".." segments
// (plain or encoded), an encoded '/' or '\' in a segment, and more than 8 KiB.
Result<Target> parse_target(std::string_view target);

std::string percent_encode(std::string_view text);  // Everything but unreserved characters.
Result<std::string> percent_decode(std::string_view text);

}  // namespace glovebox::net
