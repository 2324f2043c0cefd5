// Loop: what the sockets of one io_context share. Internal to this folder.
//
// Readiness comes from one edge-triggered epoll set of our own, nested in Asio's: a descriptor is
// registered once, and a read that came back short needs no second one to learn that the socket
// is empty. Asio's own operations cost one more system call each. Deadlines are kept in a timer
// wheel with ticks of 64 ms, since a timer per operation costs more than the operation.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "async/task.h"
#include "base/deadline.h"
#include "base/result.h"

namespace glovebox::net {

class Loop;

// Why a wait ended.
enum class Wake : std::uint8_t { kReady, kTimeout, kClosed, kCancelled };

// The error for a wait that did not end with kReady.
Error wake_error(Wake wake, std::string_view what);

struct Link {
  Link* prev = this;
  Link* next = this;

  Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link() { unlink(); }
  bool linked() const noexcept { return next != this; }
  void unlink() noexcept {
    prev->next = next;
    next->prev = prev;
    prev = next = this;
  }
  void insert_before(Link& at) noexcept {
    prev = at.prev;
    next = &at;
    prev->next = this;
    at.prev = this;
  }
};

// A place in the timer wheel. Fires up to one tick late, never early.
class Timeout : private Link {
 public:
  using Fire = void (*)(Timeout&);
  explicit Timeout(Fire fire) : fire_(fire) {}
  ~Timeout() { disarm(); }

  void arm(Loop& loop, Deadline at);  // Replaces an earlier one. Deadline::max() means never.
  void disarm() noexcept;

 private:
  friend class Loop;
  Fire fire_;
  Loop* loop_ = nullptr;
  std::uint64_t tick_ = 0;
};

// At most one coroutine that waits for something.
class Waiter : private Timeout {
 public:
  // `io` says that what is waited for comes from the epoll set, which then keeps run() alive.
  Waiter(Loop& loop, bool io) : Timeout(&Waiter::timed_out), loop_(loop), io_(io) {
    node_.owner = this;
  }
  ~Waiter();

  bool waiting() const noexcept { return waiting_; }
  // One at a time. Another coroutine must end it: wake() is not called from inside.
  Task<Wake> wait(Deadline deadline);
  // Resumes the coroutine here and now. Only for the event loop's own callbacks.
  void wake(Wake why);
  // Resumes it from the event loop, soon.
  void post(Wake why);

 private:
  friend class Loop;
  struct Access;
  static void timed_out(Timeout& timeout);
  void leave() noexcept;

  struct Node : net::Link {
    Waiter* owner = nullptr;
  };

  Loop& loop_;
  bool io_;
  bool waiting_ = false;
  Node node_;
  alignas(void*) std::array<std::byte, 2 * sizeof(void*)> handler_;
};

// A latch: wait() returns once set() was called.
class Event {
 public:
  explicit Event(Loop& loop) : waiter_(loop, false) {}
  void set() {
    set_ = true;
    waiter_.post(Wake::kReady);
  }
  void reset() noexcept { set_ = false; }
  bool is_set() const noexcept { return set_; }
  Task<Wake> wait(Deadline deadline);

 private:
  Waiter waiter_;
  bool set_ = false;
};

// One descriptor in the epoll set. It does not own the descriptor; remove() it before closing.
class Watch {
 public:
  explicit Watch(Loop& loop)
      : loop_(loop), reader_(loop, true), writer_(loop, true), hangup_(loop, true) {}
  ~Watch() { remove(); }
  Watch(const Watch&) = delete;

  Result<void> add(int fd);
  void remove() noexcept;  // Waits that are pending end with kClosed, from the event loop.
  bool added() const noexcept { return fd_ >= 0; }
  Loop& loop() const noexcept { return loop_; }

  // What the last event or system call told. The caller clears them when the kernel says EAGAIN.
  bool readable = true;
  bool writable = true;
  // The peer will send no more, or the connection is broken. Bytes may still wait to be read.
  bool hung_up = false;
  bool broken = false;  // Both directions are over (EPOLLHUP or EPOLLERR).

  Task<Wake> wait_readable(Deadline deadline) { return reader_.wait(deadline); }
  Task<Wake> wait_writable(Deadline deadline);
  Task<Wake> wait_hangup(Deadline deadline);
  void interrupt_reader() { reader_.post(Wake::kCancelled); }

  // Called once from the event loop at `hung_up` (or `broken`, if `only_broken`); not a coroutine.
  struct Alarm {
    void (*call)(void*) = nullptr;
    void* with = nullptr;
    bool only_broken = false;
  };
  void set_alarm(Alarm alarm);
  void clear_alarm() noexcept { alarm_ = Alarm{}; }

 private:
  friend class Loop;
  Loop& loop_;
  int fd_ = -1;
  bool reports_writable_ = false;
  Waiter reader_;
  Waiter writer_;
  Waiter hangup_;
  Alarm alarm_;
};

class Loop {
 public:
  static Loop& of(const Executor& executor);
  static Task<Loop*> here();  // Of the coroutine that asks.

  // Lets others run. For loops that might never have to wait.
  static Task<void> yield();
  Task<void> sleep(Clock::duration d);

  // Pooled blocks for input; all of one size.
  static constexpr std::size_t kBlockBytes = 16 << 10;
  std::unique_ptr<char[]> take_block();
  void give_block(std::unique_ptr<char[]> block);

  // Pooled pipes for splice(2), always empty. Both ends non-blocking.
  struct Pipe {
    int read_fd = -1;
    int write_fd = -1;
    std::size_t capacity = 0;
  };
  Result<Pipe> take_pipe();
  void give_pipe(Pipe pipe, bool empty) noexcept;

  const std::string& http_date();  // "Tue, 01 Dec 2026 01:00:00 GMT", of the current second.

  struct Impl;
  Impl& impl() noexcept { return *impl_; }

  explicit Loop(std::unique_ptr<Impl> impl);
  ~Loop();

 private:
  friend class Timeout;
  friend class Waiter;
  friend class Watch;
  std::unique_ptr<Impl> impl_;
};

}  // namespace glovebox::net
