// OutputTail keeps the end of one channel for an answer that is given as a whole. All tails of
// the agent share one budget, so that many long answers at once cannot exhaust its memory: what
// exceeds it is cut off at the front, as is what exceeds a tail's own limit.

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "async/task.h"
#include "base/result.h"

namespace glovebox::agent {

class OutputTail {
 public:
  static constexpr std::size_t kBytesMax = 8 << 20;
  static constexpr std::size_t kBudgetBytes = 64 << 20;

  // Borrows `budget_used`, the bytes of all tails together.
  explicit OutputTail(std::size_t& budget_used) : budget_used_(budget_used) {}
  OutputTail(const OutputTail&) = delete;
  OutputTail& operator=(const OutputTail&) = delete;
  ~OutputTail() { budget_used_ -= size_; }

  void append(std::string_view bytes);
  std::size_t size() const noexcept { return size_; }
  bool truncated() const noexcept { return truncated_; }
  // After the last append(): takes off the rest of a character that was cut at the front.
  void settle();
  bool is_text() const;  // Whole UTF-8.

  // The value as a JSON string (base64 of it unless is_text()), in parts of at most some 200 KiB.
  Task<Result<void>> write_json(std::function<Task<Result<void>>(std::string)> write) const;

 private:
  void drop_front();

  std::size_t& budget_used_;
  std::deque<std::string> chunks_;
  std::size_t size_ = 0;
  bool truncated_ = false;
};

}  // namespace glovebox::agent
