// The names of files under construction. A watch does not report them.

#pragma once

#include <string>
#include <string_view>

namespace glovebox::agent {

std::string temporary_name();
bool is_temporary_name(std::string_view name) noexcept;

}  // namespace glovebox::agent
