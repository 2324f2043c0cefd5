// Moving bytes from one stream to another without looking at them.

#pragma once

#include <cstdint>

#include "async/task.h"
#include "base/deadline.h"
#include "base/result.h"
#include "net/loop.h"
#include "net/stream_impl.h"

namespace glovebox::net {

// The end of patience with a transfer, put off by every byte in either of its directions.
class Patience {
 public:
  explicit Patience(Clock::duration idle) : idle_(idle), until_(after(idle)) {}
  void renew() { until_ = after(idle_); }
  Deadline until() const noexcept { return until_; }
  bool over() const { return Clock::now() >= until_; }

 private:
  Clock::duration idle_;
  Deadline until_;
};

// What a transfer did, and on which side it failed if it did.
struct Moved {
  enum class End { kAll, kFromEnded, kFromFailed, kToFailed };
  std::uint64_t bytes = 0;
  End end = End::kAll;
  Error error = Error(Errc::kInternal, "nothing moved");

  Moved() = default;  // Asio needs it of what a coroutine returns.
};

// Moves `bytes_max` bytes, or all until the end of `from`. Bytes that come in bulk stay in the
// kernel (splice); `bulk` says that they will.
Task<Moved> move_bytes(Stream::Impl& from, Stream::Impl& to, std::uint64_t bytes_max, bool bulk,
                       Patience& patience);

}  // namespace glovebox::net
