// What a person may have meant.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace glovebox::cli {

// The candidate that is most like `word`, or empty when none is: at most two letters apart.
std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace glovebox::cli
