#include "agent/exec/output_tail.h"

#include <algorithm>

#include "agent/common/utf8.h"
#include "async/coro.h"
#include "base/base64.h"
#include "base/text.h"

namespace glovebox::agent {
namespace {

constexpr std::size_t kChunkBytes = 32 << 10;

}  // namespace

void OutputTail::append(std::string_view bytes) {
  while (!bytes.empty()) {
    if (chunks_.empty() || chunks_.back().size() >= kChunkBytes) chunks_.emplace_back();
    std::string& chunk = chunks_.back();
    const std::size_t n = std::min(bytes.size(), kChunkBytes - chunk.size());
    chunk.append(bytes.substr(0, n));
    bytes.remove_prefix(n);
    size_ += n;
    budget_used_ += n;
    while (chunks_.size() > 1 && (size_ > kBytesMax || budget_used_ > kBudgetBytes)) drop_front();
  }
}

void OutputTail::drop_front() {
  size_ -= chunks_.front().size();
  budget_used_ -= chunks_.front().size();
  chunks_.pop_front();
  truncated_ = true;
}

void OutputTail::settle() {
  if (!truncated_ || chunks_.empty()) return;
  std::string& first = chunks_.front();
  std::size_t cut = 0;
  while (cut < 3 && cut < first.size() && (static_cast<unsigned char>(first[cut]) & 0xc0) == 0x80) {
    ++cut;
  }
  first.erase(0, cut);
  size_ -= cut;
  budget_used_ -= cut;
}

bool OutputTail::is_text() const {
  std::string carry;
  for (const std::string& chunk : chunks_) {
    const std::string text = carry + chunk;
    const std::size_t open = incomplete_tail(text);
    if (!is_utf8(std::string_view(text).substr(0, text.size() - open))) return false;
    carry = text.substr(text.size() - open);
  }
  return carry.empty();
}

Task<Result<void>> OutputTail::write_json(
    std::function<Task<Result<void>>(std::string)> write) const {
  const bool text = is_text();
  std::string carry;
  std::string out = "\"";
  for (const std::string& chunk : chunks_) {
    std::string bytes = std::move(carry) + chunk;
    // Neither a character nor a group of three bytes may be cut between two parts.
    const std::size_t open = text ? incomplete_tail(bytes) : bytes.size() % 3;
    carry = bytes.substr(bytes.size() - open);
    bytes.resize(bytes.size() - open);
    if (text) {
      std::string quoted;
      append_json_string(quoted, bytes);
      out.append(quoted, 1, quoted.size() - 2);
    } else {
      out.append(to_base64(bytes));
    }
    Result<void> written = co_await write(std::move(out));
    if (!written) co_return written;
    out.clear();
  }
  if (!text) out.append(to_base64(carry));
  out.append("\"");
  Result<void> written = co_await write(std::move(out));
  co_return written;
}

}  // namespace glovebox::agent
