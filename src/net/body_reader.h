// The body of one message as it is read from a stream: a length, chunks, or all until the end.

#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "async/task.h"
#include "base/deadline.h"
#include "base/result.h"
#include "net/head.h"
#include "net/in_buffer.h"
#include "net/stream_impl.h"

namespace glovebox::net {

class BodyReader {
 public:
  enum class Kind { kNone, kLength, kChunked, kToEnd };

  BodyReader(Stream::Impl& stream, InBuffer& in) : stream_(&stream), in_(&in) {}

  void start_none() noexcept { kind_ = Kind::kNone; }
  void start_length(std::uint64_t bytes) noexcept {
    kind_ = bytes > 0 ? Kind::kLength : Kind::kNone;
    left_ = bytes;
  }
  void start_chunked() {
    kind_ = Kind::kChunked;
    decoder_.emplace();
  }
  void start_to_end() noexcept { kind_ = Kind::kToEnd; }

  bool done() const noexcept { return kind_ == Kind::kNone; }
  Kind kind() const noexcept { return kind_; }
  std::uint64_t left() const noexcept { return left_; }  // Of kLength.
  // The bytes of a kLength body went another way than through read().
  void took(std::uint64_t bytes) noexcept {
    left_ -= bytes;
    if (left_ == 0) kind_ = Kind::kNone;
  }

  // What can be had without waiting: bytes, 0 at the end, kWouldBlock, or kFailed with an error
  // in `fault`.
  ssize_t try_read(std::span<char> into);
  // The same, but points into the buffer where it can: the next call invalidates it.
  struct Piece {
    ssize_t size = kWouldBlock;
    const char* data = nullptr;
  };
  Piece try_piece();
  // From what was read already. Leaves earlier pieces valid.
  Piece buffered_piece() { return piece_from_buffer(SIZE_MAX); }

  // At least one byte, or 0 at the end of the body.
  Task<Result<std::size_t>> read(std::span<char> into, Deadline deadline);

  Error take_fault() { return std::move(*fault_); }

 private:
  Piece piece_from_buffer(std::size_t bytes_max);
  ssize_t fill();
  ssize_t fail(Error error);
  ssize_t ended();

  Stream::Impl* stream_;
  InBuffer* in_;
  Kind kind_ = Kind::kNone;
  std::uint64_t left_ = 0;
  std::optional<ChunkDecoder> decoder_;
  std::optional<Error> fault_;
};

}  // namespace glovebox::net
