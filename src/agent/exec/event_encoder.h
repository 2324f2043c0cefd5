// EventEncoder turns what a command does into server-sent events, for one subscriber. A character
// is never cut in two: its beginning waits here, a channel, for its rest.

#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "agent/exec/output.h"
#include "agent/exec/output_ring.h"
#include "base/deadline.h"

namespace glovebox::agent {

class EventEncoder {
 public:
  static constexpr std::chrono::milliseconds kTailPatience{100};

  // Each appends whole events to `out`.
  void start(std::string& out, pid_t pid);
  void output(std::string& out, const OutputRing::Piece& piece);
  void lost(std::string& out, std::uint64_t bytes);
  void exit(std::string& out, const ExitInfo& info);

  // Until when to wait for the rest of a character; nothing when none is open. Then flush(), which
  // gives the bytes as they are.
  std::optional<Deadline> flush_at() const;
  void flush(std::string& out);

 private:
  struct Tail {
    std::string bytes;
    std::uint64_t cursor = 0;  // Of its first byte.
    Deadline since;
  };
  Tail& tail_of(Channel channel) { return tails_[channel == Channel::kStdout ? 0 : 1]; }
  void emit(std::string& out, Channel channel, std::string_view bytes);

  std::array<Tail, 2> tails_;
  std::uint64_t cursor_ = 0;  // One past the last byte seen.
};

// {"exit_code":0,...}: the body of an exit event, whose members an ExecResult has as well.
void write_exit(class JsonWriter& json, const ExitInfo& info);

}  // namespace glovebox::agent
