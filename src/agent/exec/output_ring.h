// OutputRing keeps the newest bytes a command has written, in order, both channels together. A
// cursor is a count of bytes since the start, so it means the same to every reader at any time.
// Memory is taken as output comes and is bounded by the capacity, however small the pieces are.

#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string_view>

namespace glovebox::agent {

enum class Channel : std::uint8_t { kStdout = 1, kStderr = 2 };

class OutputRing {
 public:
  struct Piece {
    Channel channel = Channel::kStdout;
    std::uint64_t cursor = 0;  // Of its first byte.
    std::string_view bytes;    // Valid until the ring changes.
  };

  explicit OutputRing(std::size_t capacity_bytes) : capacity_(capacity_bytes) {}

  std::uint64_t begin() const noexcept { return begin_; }  // The oldest byte kept.
  std::uint64_t end() const noexcept { return end_; }      // One past the newest.
  std::size_t memory() const noexcept { return memory_; }

  // What one channel wrote at `cursor`, which lies in [begin, end): as much as lies together.
  Piece at(std::uint64_t cursor) const;

  // Room to read into, at least one byte; what was read is then committed. Nothing between.
  std::span<char> prepare(Channel channel);
  void commit(std::size_t bytes);

  // True when the next prepare() would have to drop the oldest piece first.
  bool full() const noexcept;
  // Where that piece ends: who has read up to here loses nothing.
  std::uint64_t oldest_end() const noexcept;
  void drop_oldest();
  void clear();  // Drops all that is kept.

 private:
  struct Block {
    Channel channel;
    std::uint64_t cursor;
    std::size_t size;
    std::size_t capacity;
    std::unique_ptr<char[]> bytes;
  };

  std::size_t capacity_;
  std::deque<Block> blocks_;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
  std::size_t memory_ = 0;  // With what each block costs besides its bytes.
};

}  // namespace glovebox::agent
