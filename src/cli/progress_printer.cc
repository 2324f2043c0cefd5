#include "cli/progress_printer.h"

#include <unistd.h>

#include <utility>

#include "cli/terminal.h"

namespace glovebox::cli {
namespace {

constexpr std::chrono::milliseconds kRedrawEvery{100};
// Small files come and go without a line.
constexpr std::chrono::milliseconds kFirstDraw{300};

}  // namespace

ProgressPrinter::ProgressPrinter(const Shell& shell)
    : fd_(shell.streams().err),
      active_(shell.err_is_terminal() && !shell.quiet() && !shell.json()),
      began_(Clock::now()),
      next_(began_ + kFirstDraw) {}

void ProgressPrinter::begin(std::string label, std::optional<std::uint64_t> total_bytes) {
  state_.label = std::move(label);
  state_.total_bytes = total_bytes;
  state_.done_bytes = 0;
  began_ = Clock::now();
}

void ProgressPrinter::add(std::size_t bytes) {
  bytes_total_ += bytes;
  state_.done_bytes += bytes;
  if (active_ && Clock::now() >= next_) draw();
}

void ProgressPrinter::draw() {
  const auto now = Clock::now();
  next_ = now + kRedrawEvery;
  state_.elapsed_s = std::chrono::duration<double>(now - began_).count();
  const WindowSize size = window_size(fd_).value_or(WindowSize{});
  // One column is left free: terminals differ in what happens after the last.
  const std::string line =
      "\r" + progress_line(state_, static_cast<std::size_t>(size.cols) - 1) + "\x1b[K";
  drawn_ = ::write(fd_, line.data(), line.size()) > 0;
}

void ProgressPrinter::clear() {
  if (!drawn_) return;
  drawn_ = false;
  constexpr std::string_view kErase = "\r\x1b[K";
  const ssize_t ignored = ::write(fd_, kErase.data(), kErase.size());
  static_cast<void>(ignored);
}

}  // namespace glovebox::cli
