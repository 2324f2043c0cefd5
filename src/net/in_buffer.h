// Bytes that were read and not yet used. Holds memory only while it holds bytes, since most
// connections are idle most of the time.

#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "net/loop.h"

namespace glovebox::net {

class InBuffer {
 public:
  explicit InBuffer(Loop& loop) : loop_(&loop) {}
  InBuffer(const InBuffer&) = delete;
  InBuffer& operator=(const InBuffer&) = delete;
  ~InBuffer() { drop(); }

  std::string_view view() const noexcept { return {data_.get() + begin_, end_ - begin_}; }
  bool empty() const noexcept { return begin_ == end_; }
  std::size_t size() const noexcept { return end_ - begin_; }
  void consume(std::size_t n) noexcept { begin_ += n; }
  void commit(std::size_t n) noexcept { end_ += n; }

  // Room to read into: what there is, or else more, up to `bytes_max` in all. Empty when full.
  std::span<char> prepare(std::size_t bytes_max) {
    if (empty()) begin_ = end_ = 0;
    if (!data_) {
      data_ = loop_->take_block();
      capacity_ = Loop::kBlockBytes;
    }
    if (begin_ > 0 && end_ == capacity_) {
      std::memmove(data_.get(), data_.get() + begin_, size());
      end_ = size();
      begin_ = 0;
    }
    if (end_ == capacity_ && capacity_ < bytes_max) grow();
    return {data_.get() + end_, capacity_ - end_};
  }

  // To be called when there may be nothing to do for long.
  void release_if_empty() {
    if (empty()) drop();
  }

 private:
  void grow() {
    std::unique_ptr<char[]> bigger(new char[capacity_ * 2]);
    std::memcpy(bigger.get(), data_.get() + begin_, size());
    const std::size_t old = std::exchange(capacity_, capacity_ * 2);
    if (old == Loop::kBlockBytes) loop_->give_block(std::move(data_));
    data_ = std::move(bigger);
    end_ = size();
    begin_ = 0;
  }
  void drop() {
    if (data_ && capacity_ == Loop::kBlockBytes) loop_->give_block(std::move(data_));
    data_.reset();
    begin_ = end_ = capacity_ = 0;
  }

  Loop* loop_;
  std::unique_ptr<char[]> data_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace glovebox::net
