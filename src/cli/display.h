// Text for a terminal. Names, labels and file names come from strangers: what a terminal would act
// on (control characters, escape sequences, direction overrides) is shown, never sent.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace glovebox::cli {

// `text` on one line: control characters and broken bytes as \xNN, invisible and direction-changing
// ones as \u{NNNN}, and a backslash as itself.
std::string safe_text(std::string_view text);

// Columns that `text` takes on a terminal; wide East Asian characters count two.
std::size_t display_width(std::string_view text) noexcept;

// Cuts to `columns`, ending in an ellipsis when something was cut. Never in mid-character.
std::string fit(std::string_view text, std::size_t columns);

// A table with columns padded to their widest cell, two spaces apart. Cells are made safe here.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}

  // Short rows are filled with empty cells.
  void add(std::vector<std::string> cells);
  std::size_t size() const noexcept { return rows_.size() - 1; }
  // Lines with a newline each; the header first. A cell over `cell_columns_max` is cut.
  std::string render(std::size_t cell_columns_max = 60) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace glovebox::cli
