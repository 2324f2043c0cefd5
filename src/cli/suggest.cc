#include "cli/suggest.h"

#include "base/edit_distance.h"

namespace glovebox::cli {
std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = 3;
  for (const std::string& candidate : candidates) {
    const std::size_t d = edit_distance(candidate, word);
    if (d >= best_distance) continue;
    best_distance = d;
    best = candidate;
  }
  return best;
}

}  // namespace glovebox::cli
