#include "agent/exec/output_ring.h"

#include <algorithm>
#include <cassert>

namespace glovebox::agent {
namespace {

constexpr std::size_t kBlockMax = 32 << 10;
// Two channels that alternate make many small pieces, and most commands say little.
constexpr std::size_t kBlockMin = 512;
constexpr std::size_t kBlockCost = 96;

}  // namespace

OutputRing::Piece OutputRing::at(std::uint64_t cursor) const {
  assert(cursor >= begin_ && cursor < end_);
  const auto after = std::upper_bound(
      blocks_.begin(), blocks_.end(), cursor,
      [](std::uint64_t wanted, const Block& block) { return wanted < block.cursor; });
  const Block& block = *std::prev(after);
  const auto skip = static_cast<std::size_t>(cursor - block.cursor);
  return {block.channel, cursor, std::string_view(block.bytes.get() + skip, block.size - skip)};
}

std::span<char> OutputRing::prepare(Channel channel) {
  const bool fits = !blocks_.empty() && blocks_.back().channel == channel &&
                    blocks_.back().size < blocks_.back().capacity;
  if (!fits) {
    // What was prepared and not used makes room for the other channel.
    if (!blocks_.empty() && blocks_.back().size == 0) {
      memory_ -= blocks_.back().capacity + kBlockCost;
      blocks_.pop_back();
    }
    while (full()) drop_oldest();
    // Grows with what came before, so that `echo` takes little and a flood takes few blocks.
    const bool more = !blocks_.empty() && blocks_.back().channel == channel;
    const std::size_t size = more ? std::min(kBlockMax, blocks_.back().capacity * 4) : kBlockMin;
    blocks_.push_back({channel, end_, 0, size, std::make_unique_for_overwrite<char[]>(size)});
    memory_ += size + kBlockCost;
  }
  Block& block = blocks_.back();
  return {block.bytes.get() + block.size, block.capacity - block.size};
}

void OutputRing::commit(std::size_t bytes) {
  assert(!blocks_.empty() && blocks_.back().size + bytes <= blocks_.back().capacity);
  blocks_.back().size += bytes;
  end_ += bytes;
}

bool OutputRing::full() const noexcept {
  return blocks_.size() > 1 && memory_ + kBlockMax > capacity_;
}

std::uint64_t OutputRing::oldest_end() const noexcept {
  return blocks_.empty() ? end_ : blocks_.front().cursor + blocks_.front().size;
}

void OutputRing::drop_oldest() {
  if (blocks_.empty()) return;
  memory_ -= blocks_.front().capacity + kBlockCost;
  blocks_.pop_front();
  begin_ = blocks_.empty() ? end_ : blocks_.front().cursor;
}

void OutputRing::clear() {
  while (!blocks_.empty()) drop_oldest();
}

}  // namespace glovebox::agent
