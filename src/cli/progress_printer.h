// Draws a progress line on standard error while something is copied; silent where nobody looks.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/deadline.h"
#include "cli/progress.h"
#include "cli/shell.h"

namespace glovebox::cli {

class ProgressPrinter {
 public:
  explicit ProgressPrinter(const Shell& shell);
  ~ProgressPrinter() { clear(); }
  ProgressPrinter(const ProgressPrinter&) = delete;
  ProgressPrinter& operator=(const ProgressPrinter&) = delete;

  // The bytes of all files so far stay counted; a total is that of this file.
  void begin(std::string label, std::optional<std::uint64_t> total_bytes);
  void add(std::size_t bytes);
  // Takes the line away, so that something else can be printed.
  void clear();

  std::uint64_t bytes_total() const noexcept { return bytes_total_; }

 private:
  void draw();

  int fd_;
  bool active_;
  bool drawn_ = false;
  ProgressState state_;
  Clock::time_point began_;
  Clock::time_point next_;
  std::uint64_t bytes_total_ = 0;
};

}  // namespace glovebox::cli
