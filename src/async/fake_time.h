// FakeTime: a test is the clock. For *_test.cc only, hence the Asio in a header.

#pragma once

#include <algorithm>
#include <vector>

#include "async/coro.h"
#include "async/time_source.h"

namespace glovebox::async {

class FakeTime final : public TimeSource {
 public:
  static constexpr WallTime kFirstWall{Millis(1'796'083'200'000)};  // 2026-12-01T00:00:00Z

  explicit FakeTime(boost::asio::io_context& io, WallTime wall = kFirstWall)
      : io_(io), wall_(wall) {}

  Deadline now() const override { return now_; }
  WallTime wall() const override { return wall_; }
  std::unique_ptr<Alarm> make_alarm() override { return std::make_unique<FakeAlarm>(*this); }

  // Runs what is ready, then goes from deadline to deadline, running what each one causes.
  void advance(Clock::duration d) {
    const Deadline end = now_ + d;
    settle();
    for (;;) {
      const auto first = std::min_element(waiting_.begin(), waiting_.end(), earlier);
      if (first == waiting_.end() || (*first)->deadline > end) break;
      move_to(std::max(now_, (*first)->deadline));
      (*first)->fire();
      settle();
    }
    move_to(end);
  }
  // The same for everything that needs no time to pass.
  void settle() {
    io_.restart();
    while (io_.poll() > 0) {
    }
  }
  // Time passes while the thread is busy: nothing that is due has run yet.
  void stall(Clock::duration d) { move_to(now_ + d); }
  // What an administrator or NTP does.
  void jump_wall(Millis d) { wall_ += d; }
  std::size_t waiting() const { return waiting_.size(); }

 private:
  class FakeAlarm final : public Alarm {
   public:
    explicit FakeAlarm(FakeTime& time) : time_(time), timer_(time.io_.get_executor()) {
      timer_.expires_at(Timer::time_point::max());
    }
    ~FakeAlarm() override { leave(); }
    Task<bool> wait_until(Deadline d) override {
      if (d <= time_.now_) co_return true;
      deadline = d;
      fired_ = false;
      time_.waiting_.push_back(this);
      co_await timer_.async_wait(use_result);
      leave();
      co_return fired_;
    }
    void wake() override {
      leave();
      timer_.cancel();
    }
    void fire() {
      fired_ = true;
      wake();
    }
    Deadline deadline;

   private:
    void leave() { std::erase(time_.waiting_, this); }
    FakeTime& time_;
    Timer timer_;
    bool fired_ = false;
  };

  static bool earlier(const FakeAlarm* a, const FakeAlarm* b) { return a->deadline < b->deadline; }
  void move_to(Deadline t) {
    wall_ += std::chrono::floor<Millis>(t - start_) - std::chrono::floor<Millis>(now_ - start_);
    now_ = t;
  }

  boost::asio::io_context& io_;
  const Deadline start_ = Deadline(std::chrono::hours(1000));
  Deadline now_ = start_;
  WallTime wall_;
  std::vector<FakeAlarm*> waiting_;
};

}  // namespace glovebox::async
