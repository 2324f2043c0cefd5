#include "cli/path_spec.h"

namespace glovebox::cli {

Result<PathSpec> parse_path_spec(std::string_view text) {
  if (text.empty()) return Error(Errc::kInvalid, "a path is empty");
  if (text.find('\0') != std::string_view::npos) {
    return Error(Errc::kInvalid, "a path holds a NUL byte");
  }
  PathSpec spec;
  if (text == "-") {
    spec.kind = PathSpec::Kind::kStandard;
    return spec;
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos ||
      text.substr(0, colon).find('/') != std::string_view::npos) {
    spec.path = text;
    return spec;
  }
  if (colon == 0) {
    return Error(Errc::kInvalid,
                 std::string("'").append(text).append("' names no sandbox before its colon"));
  }
  spec.kind = PathSpec::Kind::kRemote;
  spec.sandbox = text.substr(0, colon);
  spec.path = text.substr(colon + 1);
  if (spec.path.empty()) spec.path = ".";
  return spec;
}

std::string base_name(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  const std::size_t slash = path.rfind('/');
  const std::string_view name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  if (name == "." || name == "..") return {};
  return std::string(name);
}

std::string join_path(std::string_view directory, std::string_view name) {
  std::string out(directory);
  if (!out.empty() && !out.ends_with('/')) out += '/';
  return out.append(name);
}

bool is_plain_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
         name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

}  // namespace glovebox::cli
