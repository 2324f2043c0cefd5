// Where a stream of bytes may be cut without cutting a character in two.

#pragma once

#include <cstddef>
#include <string_view>

namespace glovebox::agent {

// How many bytes at the end are the beginning of a UTF-8 character whose rest may still come: 0
// to 3.
std::size_t incomplete_tail(std::string_view text) noexcept;

}  // namespace glovebox::agent
