#include "cli/progress.h"

#include <algorithm>

#include "cli/display.h"
#include "cli/units.h"

namespace glovebox::cli {
namespace {

std::string eta(const ProgressState& state, double rate) {
  if (!state.total_bytes || rate <= 0 || state.done_bytes >= *state.total_bytes) return {};
  return "  " +
         format_duration(static_cast<double>(*state.total_bytes - state.done_bytes) / rate + 0.5);
}

std::string bar(double fraction, std::size_t columns) {
  const auto full = static_cast<std::size_t>(fraction * static_cast<double>(columns));
  std::string out = "[";
  out.append(full, '#');
  out.append(columns - full, '.');
  return out += ']';
}

}  // namespace

std::string progress_line(const ProgressState& state, std::size_t columns) {
  columns = std::max<std::size_t>(columns, 20);
  const double rate =
      state.elapsed_s > 0.2 ? static_cast<double>(state.done_bytes) / state.elapsed_s : 0;
  std::string tail = format_bytes(state.done_bytes);
  double fraction = 0;
  if (state.total_bytes) {
    tail += "/" + format_bytes(*state.total_bytes);
    fraction = *state.total_bytes == 0 ? 1
                                       : std::min(1.0, static_cast<double>(state.done_bytes) /
                                                           static_cast<double>(*state.total_bytes));
  }
  if (rate > 0) tail += "  " + format_bytes(static_cast<std::uint64_t>(rate)) + "/s";
  tail += eta(state, rate);

  const std::size_t bar_columns = 20;
  std::string middle = "  ";
  if (state.total_bytes && columns >= display_width(tail) + bar_columns + 20) {
    middle += bar(fraction, bar_columns) + "  ";
  }
  const std::size_t fixed = display_width(middle) + display_width(tail);
  const std::size_t label_columns = columns > fixed ? columns - fixed : 0;
  std::string line = fit(safe_text(state.label), label_columns);
  line.append(label_columns - display_width(line), ' ');
  return fit(line + middle + tail, columns);
}

}  // namespace glovebox::cli
