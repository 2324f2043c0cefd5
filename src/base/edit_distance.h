// How far apart two words are, for guessing what a person may have meant.

#pragma once

#include <cstddef>
#include <string_view>

namespace glovebox {

// Levenshtein's: letters added, removed or replaced. Takes a.size() * b.size() steps, so the
// caller bounds what comes from strangers.
std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace glovebox
