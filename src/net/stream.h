// Stream is one connected byte stream, TCP or Unix, owned and non-blocking. Every operation has a
// deadline; passing it closes nothing, the caller decides.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "async/task.h"
#include "base/deadline.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace glovebox::net {

class Stream {
 public:
  static Task<Result<Stream>> connect_unix(std::string path, Deadline deadline);
  // `address` is a numeric IPv4 or IPv6 address: no names are looked up here.
  static Task<Result<Stream>> connect_tcp(std::string address, std::uint16_t port,
                                          Deadline deadline);
  // Takes a connected stream socket of any family and makes it non-blocking.
  static Result<Stream> adopt(const Executor& executor, UniqueFd fd);

  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  ~Stream();

  // At least one byte, or 0 when the peer will send no more.
  Task<Result<std::size_t>> read_some(std::span<char> into, Deadline deadline);
  Task<Result<void>> write_all(std::string_view bytes, Deadline deadline);
  // Ends our half. The peer reads end of file; we may go on reading.
  void shutdown_write() noexcept;
  // Ends both halves; pending operations fail with kUnavailable.
  void close() noexcept;

  int fd() const noexcept;  // Borrowed.
  // Completes when the socket can be read (data, end or error), without reading.
  Task<Result<void>> wait_readable(Deadline deadline);
  Task<Result<void>> wait_writable(Deadline deadline);
  // True when the peer has closed or reset: asks the kernel, reads nothing.
  bool peer_gone() const noexcept;

  struct Impl;
  Impl& impl() noexcept { return *impl_; }  // For this folder.

 private:
  explicit Stream(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Copies `from` to `to` until end of file, with bounded memory, then shuts `to`'s write half.
// `idle` bounds each wait. Returns the number of bytes.
Task<Result<std::uint64_t>> pump(Stream& from, Stream& to, Clock::duration idle);

// Both directions at once until both have ended or one has failed: a tunnel after 101 or CONNECT.
Task<Result<void>> tunnel(Stream& a, Stream& b, Clock::duration idle);

}  // namespace glovebox::net
