#include "net/loop.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <bitset>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <ctime>

#include "async/coro.h"
#include "base/unique_fd.h"

namespace glovebox::net {
namespace asio = boost::asio;
namespace {

constexpr auto kTick = std::chrono::milliseconds(64);
constexpr std::size_t kSlots = 512;
constexpr int kEventsMax = 128;
constexpr std::size_t kIdleBlocksMax = 8;  // Few are in use at once: nobody waits with one.
constexpr std::size_t kIdlePipesMax = 16;
constexpr int kPipeBytes = 1 << 20;

using WakeHandler = asio::async_result<asio::use_awaitable_t<Executor>, void(Wake)>::handler_type;

}  // namespace

Error wake_error(Wake wake, std::string_view what) {
  switch (wake) {
    case Wake::kReady: break;
    case Wake::kTimeout: return Error(Errc::kTimeout, std::string(what) + ": timed out");
    case Wake::kClosed: return Error(Errc::kUnavailable, std::string(what) + ": closed");
    case Wake::kCancelled: return Error(Errc::kUnavailable, std::string(what) + ": cancelled");
  }
  return Error(Errc::kInternal, std::string(what) + ": not ready");
}

struct Loop::Impl {
  explicit Impl(asio::io_context& context)
      : io(context),
        timer(context.get_executor()),
        epoll(context.get_executor(), ::epoll_create1(EPOLL_CLOEXEC)) {}

  asio::io_context& io;

  // The wheel. An entry sits in slot tick % kSlots; one further away than a turn is passed over.
  Timer timer;
  Clock::time_point epoch = Clock::now();
  std::uint64_t done_tick = 0;   // Everything due up to here has fired.
  std::uint64_t armed_tick = 0;  // 0: the timer is not running.
  int armed = 0;                 // Entries in the wheel.
  std::array<Link, kSlots> slots;

  // The epoll set, itself watched by Asio while anybody waits.
  asio::posix::basic_stream_descriptor<Executor> epoll;
  bool polling = false;
  bool dispatching = false;
  int waiting = 0;  // Waiters for I/O.
  std::array<::epoll_event, kEventsMax> events{};
  int event_at = 0;
  int event_count = 0;

  Link waiters;  // All of them, for shutdown().

  std::vector<std::unique_ptr<char[]>> blocks;
  std::vector<Pipe> pipes;
  std::string date;
  std::time_t date_second = 0;

  ~Impl() {
    for (const Pipe& pipe : pipes) close_pipe(pipe);
  }

  static void close_pipe(const Pipe& pipe) {
    UniqueFd(pipe.read_fd).reset();
    UniqueFd(pipe.write_fd).reset();
  }

  std::uint64_t tick_at(Clock::time_point t) const {
    return static_cast<std::uint64_t>(std::max<Clock::rep>(0, (t - epoch) / kTick));
  }

  void arm(Timeout& timeout, Deadline at) {
    // Rounded up twice: never early, even by part of a tick.
    timeout.tick_ = std::max(tick_at(at) + 1, done_tick + 1);
    timeout.Link::insert_before(slots[timeout.tick_ % kSlots]);
    ++armed;
    if (armed_tick == 0 || timeout.tick_ < armed_tick) start_timer(timeout.tick_);
  }

  void start_timer(std::uint64_t tick) {
    armed_tick = tick;
    timer.expires_at(epoch + static_cast<Clock::rep>(tick) * kTick);
    timer.async_wait([this](const boost::system::error_code& ec) {
      if (!ec) on_tick();
    });
  }

  void on_tick() {
    armed_tick = 0;
    const std::uint64_t now = tick_at(Clock::now());
    const std::uint64_t from = done_tick + 1;
    done_tick = std::max(done_tick, now);
    const std::uint64_t turns = std::min<std::uint64_t>(kSlots, now >= from ? now - from + 1 : 0);
    Link due;
    for (std::uint64_t i = 0; i < turns; ++i) {
      Link& slot = slots[(from + i) % kSlots];
      for (Link* at = slot.next; at != &slot;) {
        auto& timeout = static_cast<Timeout&>(*at);
        at = at->next;
        if (timeout.tick_ > now) continue;
        timeout.Link::unlink();
        timeout.Link::insert_before(due);
      }
    }
    while (due.linked()) {
      auto& timeout = static_cast<Timeout&>(*due.next);
      timeout.Link::unlink();
      --armed;
      timeout.fire_(timeout);  // May destroy it, and others in the list.
    }
    if (armed_tick != 0) return;
    for (std::uint64_t i = 1; i <= kSlots; ++i) {
      if (slots[(done_tick + i) % kSlots].linked()) return start_timer(done_tick + i);
    }
  }

  // When nobody waits any more, run() must be able to return.
  void rest() {
    if (waiting > 0 || dispatching) return;
    if (polling) epoll.cancel();
    if (armed > 0 || armed_tick == 0) return;
    armed_tick = 0;
    timer.cancel();
  }

  void start_poll() {
    polling = true;
    epoll.async_wait(asio::posix::descriptor_base::wait_read,
                     [this](const boost::system::error_code& ec) {
                       polling = false;
                       if (!ec) dispatch();
                       if (waiting > 0 && !polling && epoll.is_open()) start_poll();
                     });
  }

  void dispatch() {
    // Whoever starts to wait meanwhile is served by the next round.
    polling = dispatching = true;
    event_count = ::epoll_wait(epoll.native_handle(), events.data(), kEventsMax, 0);
    for (event_at = 0; event_at < event_count; ++event_at) {
      const std::uint32_t bits = events[static_cast<std::size_t>(event_at)].events;
      // Any of these may destroy the watch, which then clears the pointer.
      if (Watch* watch = current()) note(*watch, bits);
      if (Watch* watch = current(); watch && watch->readable) watch->reader_.wake(Wake::kReady);
      if (Watch* watch = current(); watch && watch->writable) watch->writer_.wake(Wake::kReady);
      if (Watch* watch = current(); watch && watch->hung_up) watch->hangup_.wake(Wake::kReady);
      if (Watch* watch = current()) sound_alarm(*watch);
    }
    event_count = 0;
    polling = dispatching = false;
    rest();
  }

  void drop_waiters();

  Watch* current() const {
    return static_cast<Watch*>(events[static_cast<std::size_t>(event_at)].data.ptr);
  }

  static void note(Watch& watch, std::uint32_t bits) {
    const bool broken = (bits & (EPOLLHUP | EPOLLERR)) != 0;
    if (broken) watch.broken = true;
    if (broken || (bits & EPOLLRDHUP) != 0) watch.hung_up = true;
    if (watch.hung_up || (bits & EPOLLIN) != 0) watch.readable = true;
    if (broken || (bits & EPOLLOUT) != 0) watch.writable = true;
  }

  static void sound_alarm(Watch& watch) {
    const Watch::Alarm alarm = watch.alarm_;
    if (alarm.call == nullptr || !(alarm.only_broken ? watch.broken : watch.hung_up)) return;
    watch.alarm_ = Watch::Alarm{};
    alarm.call(alarm.with);
  }

  void forget(const Watch& watch) {
    for (int i = event_at; i < event_count; ++i) {
      // By value: the kernel's structure is packed.
      ::epoll_event& event = events[static_cast<std::size_t>(i)];
      if (event.data.ptr == &watch) event.data.ptr = nullptr;
    }
  }
};

namespace {

// Ties a Loop to its io_context, so that it is found without a registry and dies in order.
class LoopService : public asio::execution_context::service {
 public:
  using key_type = LoopService;
  static const asio::execution_context::id id;

  explicit LoopService(asio::execution_context& context)
      : service(context),
        loop(std::make_unique<Loop::Impl>(static_cast<asio::io_context&>(context))) {}

  Loop loop;

 private:
  void shutdown() override;
};

const asio::execution_context::id LoopService::id;

}  // namespace

// What only this file may do with a Waiter: its handler is Asio's, and no header names Asio.
struct Waiter::Access {
  static_assert(sizeof(WakeHandler) <= sizeof(Waiter::handler_));

  static WakeHandler& handler(Waiter& waiter) {
    return *std::launder(reinterpret_cast<WakeHandler*>(waiter.handler_.data()));
  }

  static WakeHandler take(Waiter& waiter) {
    WakeHandler out = std::move(handler(waiter));
    handler(waiter).~WakeHandler();
    waiter.leave();
    auto slot = asio::get_associated_cancellation_slot(out);
    if (slot.is_connected()) slot.clear();
    return out;
  }

  static void start(Waiter& waiter, WakeHandler handler, Deadline deadline) {
    auto slot = asio::get_associated_cancellation_slot(handler);
    if (slot.is_connected()) {
      slot.assign([&waiter](asio::cancellation_type type) {
        if (type != asio::cancellation_type::none) waiter.post(Wake::kCancelled);
      });
    }
    new (waiter.handler_.data()) WakeHandler(std::move(handler));
    Loop::Impl& loop = waiter.loop_.impl();
    waiter.waiting_ = true;
    waiter.node_.insert_before(loop.waiters);
    waiter.arm(waiter.loop_, deadline);
    if (waiter.io_) {
      ++loop.waiting;
      if (!loop.polling) loop.start_poll();
    }
  }
};

void Timeout::arm(Loop& loop, Deadline at) {
  disarm();
  if (at == Deadline::max()) return;
  loop_ = &loop;
  loop.impl().arm(*this, at);
}

void Timeout::disarm() noexcept {
  if (!linked()) return;
  unlink();
  --loop_->impl().armed;
  loop_->impl().rest();
}

Waiter::~Waiter() {
  if (waiting_) post(Wake::kClosed);
}

void Waiter::leave() noexcept {
  Loop::Impl& loop = loop_.impl();
  waiting_ = false;
  node_.unlink();
  disarm();
  if (!io_) return;
  --loop.waiting;
  loop.rest();
}

Task<Wake> Waiter::wait(Deadline deadline) {
  return asio::async_initiate<const asio::use_awaitable_t<Executor>, void(Wake)>(
      [this, deadline](WakeHandler handler) { Access::start(*this, std::move(handler), deadline); },
      use_task);
}

void Waiter::wake(Wake why) {
  if (!waiting_) return;
  WakeHandler handler = Access::take(*this);
  std::move(handler)(why);
}

void Waiter::post(Wake why) {
  if (!waiting_) return;
  const Executor executor = loop_.impl().io.get_executor();
  asio::post(executor, [handler = Access::take(*this), why]() mutable { std::move(handler)(why); });
}

void Waiter::timed_out(Timeout& timeout) { static_cast<Waiter&>(timeout).wake(Wake::kTimeout); }

Task<Wake> Event::wait(Deadline deadline) {
  Wake wake = Wake::kReady;
  if (!set_) wake = co_await waiter_.wait(deadline);
  co_return wake;
}

Result<void> Watch::add(int fd) {
  ::epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP | EPOLLET;
  event.data.ptr = this;
  Loop::Impl& loop = loop_.impl();
  if (::epoll_ctl(loop.epoll.native_handle(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return Error::from_errno(errno, "epoll_ctl");
  }
  fd_ = fd;
  return {};
}

Task<Wake> Watch::wait_writable(Deadline deadline) {
  if (fd_ < 0) co_return Wake::kClosed;
  if (!reports_writable_) {
    // Only now: a Unix socket would report every read of its peer. Modifying reports the present
    // state as well, so that nothing is missed.
    ::epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    event.data.ptr = this;
    ::epoll_ctl(loop_.impl().epoll.native_handle(), EPOLL_CTL_MOD, fd_, &event);
    reports_writable_ = true;
  }
  co_return co_await writer_.wait(deadline);
}

Task<Wake> Watch::wait_hangup(Deadline deadline) {
  if (fd_ < 0) co_return Wake::kClosed;
  if (hung_up) co_return Wake::kReady;
  co_return co_await hangup_.wait(deadline);
}

void Watch::remove() noexcept {
  if (fd_ < 0) return;
  Loop::Impl& loop = loop_.impl();
  // Not left to close(): a duplicate of the descriptor elsewhere would keep it in the set.
  ::epoll_ctl(loop.epoll.native_handle(), EPOLL_CTL_DEL, fd_, nullptr);
  fd_ = -1;
  loop.forget(*this);
  alarm_ = Alarm{};
  reader_.post(Wake::kClosed);
  writer_.post(Wake::kClosed);
  hangup_.post(Wake::kClosed);
}

void Watch::set_alarm(Alarm alarm) { alarm_ = alarm; }

Loop::Loop(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Loop::~Loop() = default;

namespace {

void LoopService::shutdown() { loop.impl().drop_waiters(); }

}  // namespace

void Loop::Impl::drop_waiters() {
  // A coroutine that waits is owned by its waiter, which may live in that very coroutine.
  while (waiters.linked()) {
    Waiter& waiter = *static_cast<Waiter::Node*>(waiters.next)->owner;
    const WakeHandler dropped = Waiter::Access::take(waiter);
  }
}

Loop& Loop::of(const Executor& executor) {
  return asio::use_service<LoopService>(static_cast<asio::execution_context&>(executor.context()))
      .loop;
}

Task<Loop*> Loop::here() {
  const Executor executor = co_await asio::this_coro::executor;
  co_return &of(executor);
}

Task<void> Loop::yield() {
  const Executor executor = co_await asio::this_coro::executor;
  co_await asio::post(executor, use_task);
}

Task<void> Loop::sleep(Clock::duration d) {
  Waiter waiter(*this, false);
  co_await waiter.wait(after(d));
}

std::unique_ptr<char[]> Loop::take_block() {
  auto& blocks = impl_->blocks;
  if (blocks.empty()) return std::unique_ptr<char[]>(new char[kBlockBytes]);
  std::unique_ptr<char[]> block = std::move(blocks.back());
  blocks.pop_back();
  return block;
}

void Loop::give_block(std::unique_ptr<char[]> block) {
  if (impl_->blocks.size() < kIdleBlocksMax) impl_->blocks.push_back(std::move(block));
}

Result<Loop::Pipe> Loop::take_pipe() {
  auto& pipes = impl_->pipes;
  if (!pipes.empty()) {
    const Pipe pipe = pipes.back();
    pipes.pop_back();
    return pipe;
  }
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC) != 0) return Error::from_errno(errno, "pipe2");
  Pipe pipe{ends[0], ends[1], 64 << 10};
  // Refused when the user's share of pipe memory is used up; a small pipe works too.
  const int size = ::fcntl(pipe.write_fd, F_SETPIPE_SZ, kPipeBytes);
  if (size > 0) pipe.capacity = static_cast<std::size_t>(size);
  return pipe;
}

void Loop::give_pipe(Pipe pipe, bool empty) noexcept {
  if (empty && impl_->pipes.size() < kIdlePipesMax) {
    impl_->pipes.push_back(pipe);
  } else {
    Impl::close_pipe(pipe);
  }
}

const std::string& Loop::http_date() {
  const std::time_t now = std::time(nullptr);
  if (now != impl_->date_second) {
    std::tm tm{};
    ::gmtime_r(&now, &tm);
    std::array<char, 64> text{};
    const std::size_t n = std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &tm);
    impl_->date.assign(text.data(), n);
    impl_->date_second = now;
  }
  return impl_->date;
}

}  // namespace glovebox::net
