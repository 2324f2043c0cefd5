// A connection to an upstream, and the pool of those that wait for another request.

#pragma once

#include <deque>
#include <memory>

#include "net/body_reader.h"
#include "net/in_buffer.h"
#include "net/relay.h"
#include "net/stream_impl.h"

namespace glovebox::net {

struct Upstream {
  explicit Upstream(Stream s)
      : stream(std::move(s)), in(stream.impl().loop), body(stream.impl(), in) {}

  Stream stream;
  InBuffer in;
  BodyReader body;
  std::string out;    // The request's head.
  ResponseView head;  // The reply's, within `in`.
  bool reused = false;
  UpstreamPool::Impl* pool = nullptr;  // While it is in there.
  Deadline expires;
};

struct UpstreamPool::Impl {
  std::size_t idle_max;
  std::chrono::seconds age_max;
  std::deque<std::unique_ptr<Upstream>> idle;  // The newest is at the back.

  // The one used last, which is the least likely to be closed by now. Empty when there is none.
  // `surely_open`: asks the kernel first, which costs a system call.
  std::unique_ptr<Upstream> take(bool surely_open);
  void give(std::unique_ptr<Upstream> upstream);

 private:
  static void hung_up(void* upstream);  // The other end closed it: kept no longer.
};

}  // namespace glovebox::net
