#include "async/time_source.h"

#include "async/coro.h"

namespace glovebox::async {
namespace {

class SystemAlarm final : public Alarm {
 public:
  explicit SystemAlarm(const Executor& executor) : timer_(executor) {}

  Task<bool> wait_until(Deadline deadline) override {
    timer_.expires_at(deadline);
    const auto [ec] = co_await timer_.async_wait(use_result);
    co_return !ec;
  }
  void wake() override { timer_.cancel(); }

 private:
  Timer timer_;
};

}  // namespace

Deadline SystemTime::now() const { return Clock::now(); }

WallTime SystemTime::wall() const {
  return std::chrono::floor<Millis>(std::chrono::system_clock::now());
}

std::unique_ptr<Alarm> SystemTime::make_alarm() { return std::make_unique<SystemAlarm>(executor_); }

}  // namespace glovebox::async
