// Base64 by RFC 4648: the standard alphabet with padding, and the URL-safe one without.

#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace glovebox {

std::string to_base64(std::string_view bytes);
std::string to_base64url(std::string_view bytes);

// Strict: refuses foreign characters, wrong padding and non-zero bits that no encoder writes, so
// that each value has one spelling.
std::optional<std::string> from_base64(std::string_view text);
std::optional<std::string> from_base64url(std::string_view text);

}  // namespace glovebox
