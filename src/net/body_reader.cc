#include "net/body_reader.h"

#include <algorithm>

#include "async/coro.h"

namespace glovebox::net {

ssize_t BodyReader::fail(Error error) {
  fault_ = std::move(error);
  return kFailed;
}

// The peer sends no more: the end of a body that has no other, and an error for the rest.
ssize_t BodyReader::ended() {
  if (kind_ != Kind::kToEnd) return fail(Error(Errc::kUnavailable, "body cut short"));
  kind_ = Kind::kNone;
  return 0;
}

// Decodes what is in the buffer. kWouldBlock: there is too little of it.
BodyReader::Piece BodyReader::piece_from_buffer(std::size_t bytes_max) {
  const std::string_view have = in_->view();
  if (kind_ == Kind::kNone) return {0, nullptr};
  if (kind_ != Kind::kChunked) {
    if (have.empty()) return {};
    std::size_t n = std::min(have.size(), bytes_max);
    if (kind_ == Kind::kLength) {
      n = static_cast<std::size_t>(std::min<std::uint64_t>(n, left_));
      took(n);
    }
    in_->consume(n);
    return {static_cast<ssize_t>(n), &have.front()};
  }
  const ChunkDecoder::Step step = decoder_->step(have, bytes_max);
  in_->consume(step.used);
  switch (step.state) {
    case ChunkDecoder::State::kMore: return {};
    case ChunkDecoder::State::kData:
      return {static_cast<ssize_t>(step.data.size()), step.data.data()};
    case ChunkDecoder::State::kDone:
      kind_ = Kind::kNone;
      decoder_.reset();
      return {0, nullptr};
    case ChunkDecoder::State::kBad: break;
  }
  return {fail(Error(Errc::kInvalid, "malformed chunk")), nullptr};
}

// Reads once into the buffer.
ssize_t BodyReader::fill() {
  if (!stream_->fd) return fail(Error(Errc::kUnavailable, "body: closed"));
  if (!stream_->watch.readable) return kWouldBlock;
  // A chunk's header or the trailers must fit into one block.
  const std::span<char> room = in_->prepare(Loop::kBlockBytes);
  if (room.empty()) return fail(Error(Errc::kInvalid, "chunk header too long"));
  const ssize_t n = stream_->try_read(room.data(), room.size());
  if (n == kFailed) return fail(Error::from_errno(stream_->error, "read body"));
  if (n == 0) return ended();
  if (n > 0) in_->commit(static_cast<std::size_t>(n));
  return n;
}

BodyReader::Piece BodyReader::try_piece() {
  for (;;) {
    const Piece piece = piece_from_buffer(SIZE_MAX);
    if (piece.size != kWouldBlock) return piece;
    const ssize_t n = fill();
    if (n <= 0) return {n, nullptr};
  }
}

ssize_t BodyReader::try_read(std::span<char> into) {
  if (into.empty()) return 0;
  for (;;) {
    const Piece piece = piece_from_buffer(into.size());
    if (piece.size > 0) std::memcpy(into.data(), piece.data, static_cast<std::size_t>(piece.size));
    if (piece.size != kWouldBlock) return piece.size;
    if (kind_ != Kind::kChunked && into.size() >= Loop::kBlockBytes / 4) break;
    const ssize_t n = fill();
    if (n <= 0) return n;
  }
  // The buffer is empty and has nothing to decode: past it.
  if (!stream_->fd) return fail(Error(Errc::kUnavailable, "body: closed"));
  if (!stream_->watch.readable) return kWouldBlock;
  std::size_t size = into.size();
  if (kind_ == Kind::kLength) {
    size = static_cast<std::size_t>(std::min<std::uint64_t>(size, left_));
  }
  const ssize_t n = stream_->try_read(into.data(), size);
  if (n == kFailed) return fail(Error::from_errno(stream_->error, "read body"));
  if (n == 0) return ended();
  if (n > 0 && kind_ == Kind::kLength) took(static_cast<std::uint64_t>(n));
  return n;
}

Task<Result<std::size_t>> BodyReader::read(std::span<char> into, Deadline deadline) {
  if (stream_->owes_yield()) co_await Loop::yield();
  for (;;) {
    const ssize_t n = try_read(into);
    if (n >= 0) co_return static_cast<std::size_t>(n);
    if (n == kFailed) co_return take_fault();
    stream_->busy = 0;
    const Wake wake = co_await stream_->readable(deadline);
    if (wake != Wake::kReady) co_return wake_error(wake, "read body");
  }
}

}  // namespace glovebox::net
