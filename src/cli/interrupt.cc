#include "cli/interrupt.h"

#include <boost/asio/signal_set.hpp>
#include <utility>

#include "async/coro.h"

namespace glovebox::cli {

Interrupt::Hook::Hook(Interrupt& owner, std::function<void()> cancel)
    : owner_(owner), at_(owner.hooks_.insert(owner.hooks_.end(), std::move(cancel))) {
  if (owner.signal_ != 0 && owner.armed_) (*at_)();
}

Interrupt::Hook::~Hook() { owner_.hooks_.erase(at_); }

void Interrupt::raise(int signal) {
  if (signal_ == 0) signal_ = signal;
  if (!armed_) return;
  for (const auto& cancel : hooks_) cancel();
}

struct SignalWatch::Impl : std::enable_shared_from_this<Impl> {
  Impl(const Executor& executor, std::function<void(int)> h)
      : set(executor), handler(std::move(h)) {}

  void wait() {
    set.async_wait([self = shared_from_this()](boost::system::error_code error, int signal) {
      if (error || self->stopped) return;
      self->handler(signal);
      self->wait();
    });
  }

  boost::asio::basic_signal_set<Executor> set;
  std::function<void(int)> handler;
  bool stopped = false;
};

SignalWatch::SignalWatch(const Executor& executor, std::initializer_list<int> signals,
                         std::function<void(int)> handler)
    : impl_(std::make_shared<Impl>(executor, std::move(handler))) {
  boost::system::error_code ignored;
  for (const int signal : signals) impl_->set.add(signal, ignored);
  impl_->wait();
}

SignalWatch::~SignalWatch() {
  impl_->stopped = true;
  boost::system::error_code ignored;
  impl_->set.clear(ignored);
  impl_->set.cancel(ignored);
}

}  // namespace glovebox::cli
