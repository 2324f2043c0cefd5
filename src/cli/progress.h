// Progress of a copy, on one line of a terminal that is drawn over.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace glovebox::cli {

struct ProgressState {
  std::string label;  // Made safe when drawn.
  std::uint64_t done_bytes = 0;
  std::optional<std::uint64_t> total_bytes;  // Unknown for a stream.
  double elapsed_s = 0;
};

// One line without a newline, exactly fitting in `columns` (at least 20).
std::string progress_line(const ProgressState& state, std::size_t columns);

}  // namespace glovebox::cli
