#include "agent/exec/output.h"

#include <algorithm>

#include "async/coro.h"

namespace glovebox::agent {

Output::Reader::Reader(Output& output, std::uint64_t from)
    : output_(&output), cursor_(from), last_taken_(Clock::now()) {
  output.readers_.push_back(this);
}

Output::Reader::~Reader() {
  std::erase(output_->readers_, this);
  output_->taken_.notify();
}

std::uint64_t Output::Reader::take_lost() {
  const std::uint64_t oldest = output_->ring_.begin();
  if (cursor_ < oldest) {
    lost_ += oldest - cursor_;
    cursor_ = oldest;
  }
  return std::exchange(lost_, 0);
}

std::optional<OutputRing::Piece> Output::Reader::next() {
  const OutputRing& ring = output_->ring_;
  if (cursor_ < ring.begin()) {
    lost_ += ring.begin() - cursor_;
    cursor_ = ring.begin();
  }
  last_taken_ = Clock::now();
  if (cursor_ >= ring.end()) return std::nullopt;
  const OutputRing::Piece piece = ring.at(cursor_);
  cursor_ += piece.bytes.size();
  if (output_->holding_ > 0) output_->taken_.notify();
  return piece;
}

Task<void> Output::Reader::wait(Deadline deadline) {
  const OutputRing& ring = output_->ring_;
  if (cursor_ < ring.end() || output_->exit_) co_return;
  // Whoever waits here has taken all there was: it is not stalled.
  co_await output_->changed_.wait(deadline);
  last_taken_ = Clock::now();
}

std::optional<Deadline> Output::hold_until() const {
  std::optional<Deadline> until;
  if (!ring_.full()) return until;
  for (const Reader* reader : readers_) {
    if (!reader->waited_for_ || reader->cursor_ >= ring_.oldest_end()) continue;
    const Deadline patience = reader->last_taken_ + kPatience;
    until = until ? std::max(*until, patience) : patience;
  }
  return until;
}

void Output::give_up_on_stalled() {
  const Deadline now = Clock::now();
  for (Reader* reader : readers_) {
    const bool in_the_way = reader->cursor_ < ring_.oldest_end();
    if (in_the_way && now >= reader->last_taken_ + kPatience) reader->waited_for_ = false;
  }
}

Task<void> Output::wait_for_room() {
  for (;;) {
    const std::optional<Deadline> until = hold_until();
    if (!until) co_return;
    ++holding_;
    co_await taken_.wait(*until);
    --holding_;
    give_up_on_stalled();
  }
}

void Output::commit(std::size_t bytes) {
  // A reader that had everything until now begins to be late now, not when it last took something.
  const Deadline now = Clock::now();
  for (Reader* reader : readers_) {
    if (reader->cursor_ == ring_.end()) reader->last_taken_ = now;
  }
  ring_.commit(bytes);
  changed_.notify();
}

void Output::end(const ExitInfo& exit) {
  exit_ = exit;
  changed_.notify();
}

}  // namespace glovebox::agent
