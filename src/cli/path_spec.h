// What `glovebox cp` is given: a local path, "-", or "SANDBOX:/path".

#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace glovebox::cli {

struct PathSpec {
  enum class Kind { kLocal, kRemote, kStandard };
  Kind kind = Kind::kLocal;
  std::string sandbox;  // kRemote only.
  std::string path;     // Empty remote paths are the user's home: ".".

  bool remote() const noexcept { return kind == Kind::kRemote; }
};

// As scp does it: a colon before any slash makes it remote, so "./a:b" is a local file of that
// name. "-" is the standard stream.
Result<PathSpec> parse_path_spec(std::string_view text);

// The last component, or empty for "/", ".", ".." and what ends in them.
std::string base_name(std::string_view path);
std::string join_path(std::string_view directory, std::string_view name);

// True for a name that a sandbox gave and that may be made in a local directory: one component,
// not "." or "..", no '/' or NUL, at most 255 bytes.
bool is_plain_name(std::string_view name) noexcept;

}  // namespace glovebox::cli
