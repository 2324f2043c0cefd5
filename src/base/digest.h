#pragma once

#include <string>
#include <string_view>

namespace glovebox {

// 32 bytes.
std::string sha256(std::string_view bytes);

// Takes the same time wherever the first difference is. Different lengths are unequal at once.
bool equal_in_constant_time(std::string_view a, std::string_view b);

}  // namespace glovebox
