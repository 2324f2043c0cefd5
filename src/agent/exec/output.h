// Output is what one running command writes, for any number of readers, each at its own cursor.
//
// Backpressure: the command is held up (its pipe is not read) while the ring is full of bytes
// that a reader has not taken yet, so a reader that keeps up loses nothing. A reader that takes
// nothing for kPatience while the command waits for it is waited for no more: it falls behind
// the ring and is told how many bytes it lost. So one that stalls costs the others one pause.

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "agent/common/event.h"
#include "agent/exec/output_ring.h"
#include "async/task.h"
#include "base/deadline.h"

namespace glovebox::agent {

struct ExitInfo {
  int exit_code = 0;  // 128 + signal for a death by signal.
  std::optional<int> signal;
  bool timed_out = false;
  bool oom_killed = false;
  std::chrono::milliseconds duration{0};
};

class Output {
 public:
  static constexpr std::chrono::seconds kPatience{5};
  static constexpr std::size_t kRingBytes = 1 << 20;

  explicit Output(const Executor& executor) : changed_(executor), taken_(executor) {}

  class Reader {
   public:
    // `from` at most output.ring().end(). The output must outlive the reader.
    Reader(Output& output, std::uint64_t from);
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    ~Reader();

    // Bytes that went by unread since the last call.
    std::uint64_t take_lost();
    // The next piece, which counts as taken. Nothing: there is none now.
    std::optional<OutputRing::Piece> next();
    // Until there may be more, or the command has ended, or the deadline.
    Task<void> wait(Deadline deadline);
    std::uint64_t cursor() const noexcept { return cursor_; }

   private:
    friend class Output;
    Output* output_;
    std::uint64_t cursor_;
    std::uint64_t lost_ = 0;
    Deadline last_taken_;
    bool waited_for_ = true;
  };

  const OutputRing& ring() const noexcept { return ring_; }
  void drop_kept() { ring_.clear(); }

  // For the one that reads the pipes. Waits while a reader is to be waited for.
  Task<void> wait_for_room();
  bool held_up() const noexcept { return holding_ > 0; }
  bool has_readers() const noexcept { return !readers_.empty(); }
  std::span<char> prepare(Channel channel) { return ring_.prepare(channel); }
  void commit(std::size_t bytes);

  // The last thing that happens.
  void end(const ExitInfo& exit);
  const std::optional<ExitInfo>& exit() const noexcept { return exit_; }

 private:
  // The time until which to wait for the slowest reader; nothing when nobody is in the way.
  std::optional<Deadline> hold_until() const;
  void give_up_on_stalled();

  OutputRing ring_{kRingBytes};
  Event changed_;  // More output, or the end.
  Event taken_;    // A reader moved on or left.
  std::vector<Reader*> readers_;
  std::optional<ExitInfo> exit_;
  int holding_ = 0;
};

}  // namespace glovebox::agent
