#include <set>

#include "async/coro.h"
#include "warden/client/runtime.h"
#include "warden/test_fixture.h"

namespace glovebox::warden {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class JointTest : public FakeHostTest {
 protected:
  JointTest() : log_(null_.get(), log::Level::kDebug, log::Form::kJson) {
    client_.socket_path = config_.server.socket_path;
    client_.reconnect_min = milliseconds(1);
    client_.reconnect_max = milliseconds(10);
  }

  void play(std::function<Task<void>()> body) {
    runtime_ = std::make_unique<WardenRuntime>(io_.get_executor(), client_, log_);
    runtime_->on_exit([this](const SandboxId& id, const std::string&) { exits_.insert(id.str()); });
    runtime_->start();
    bool done = false;
    boost::asio::co_spawn(io_, with_close(std::move(body), done), boost::asio::detached);
    io_.run_for(seconds(60));
    if (!done) {
      ADD_FAILURE() << "it hangs";
      std::abort();  // What is pending must not outlive the runtime.
    }
  }
  Task<void> with_close(std::function<Task<void>()> body, bool& done) {
    co_await body();
    co_await runtime_->close();
    done = true;
  }
  Task<Result<void>> create(std::string name) {
    sandbox::LaunchSpec spec;
    spec.id = SandboxId(std::move(name));
    co_return co_await runtime_->create(std::move(spec), after(seconds(50)));
  }
  Task<std::set<std::string>> names() {
    const Result<std::vector<sandbox::Live>> all = co_await runtime_->list(after(seconds(50)));
    EXPECT_TRUE(all) << all.error().text();
    std::set<std::string> found;
    if (all) {
      for (const sandbox::Live& l : all.value()) found.insert(l.id.str());
    }
    co_return found;
  }

  ClientConfig client_;
  log::Logger log_;
  boost::asio::io_context io_{1};
  std::unique_ptr<WardenRuntime> runtime_;
  std::set<std::string> exits_;
};

TEST_F(JointTest, ASandboxLivesItsLife) {
  start();
  play([this]() -> Task<void> {
    const SandboxId a("a");
    const Deadline d = after(seconds(50));
    Result<void> done = co_await create("a");
    EXPECT_TRUE(done) << done.error().text();
    done = co_await create("a");
    EXPECT_EQ(done.error().code(), Errc::kConflict);
    done = co_await runtime_->freeze(a, d);
    EXPECT_TRUE(done);
    const auto list = co_await runtime_->list(d);
    EXPECT_TRUE(list.value().at(0).frozen);
    done = co_await runtime_->thaw(a, d);
    EXPECT_TRUE(done);
    const auto usage = co_await runtime_->usage(a, d);
    EXPECT_EQ(usage.value().pids_limit, sandbox::Limits().pids);
    // The fake's sockets are of this host; nothing listens on port 1.
    const auto port = co_await runtime_->open_port(a, 1, d);
    EXPECT_EQ(port.error().code(), Errc::kUnavailable);
    done = co_await runtime_->destroy(a, d);
    EXPECT_TRUE(done);
    const std::set<std::string> left = co_await names();
    EXPECT_TRUE(left.empty());
  });
  EXPECT_TRUE(exits_.empty());
}

TEST_F(JointTest, RefusalsArriveAsTheyWereMeant) {
  config_.keeper.sandboxes_max = 1;
  start();
  play([this]() -> Task<void> {
    Result<void> done = co_await create("Not A Name");
    EXPECT_EQ(done.error().code(), Errc::kInvalid);
    done = co_await create("a");
    EXPECT_TRUE(done);
    done = co_await create("b");
    EXPECT_EQ(done.error().code(), Errc::kExhausted);
    done = co_await runtime_->freeze(SandboxId("z"), after(seconds(50)));
    EXPECT_EQ(done.error().code(), Errc::kNotFound);
    done = co_await runtime_->destroy(SandboxId("z"), after(seconds(50)));
    EXPECT_TRUE(done);
  });
}

TEST_F(JointTest, AHundredAtOnceAllSucceed) {
  constexpr int kCount = 100;
  start();
  int made = 0;
  const auto one = [&](std::string name, Timer& all) -> Task<void> {
    const Result<void> done = co_await create(std::move(name));
    EXPECT_TRUE(done) << done.error().text();
    if (++made == kCount) all.cancel();
  };
  play([&]() -> Task<void> {
    Timer all(io_.get_executor(), after(seconds(50)));
    for (int i = 0; i < kCount; ++i) {
      std::string name = "sb-" + std::to_string(i);
      boost::asio::co_spawn(io_, one(std::move(name), all), boost::asio::detached);
    }
    co_await all.async_wait(use_result);
    const std::set<std::string> held = co_await names();
    EXPECT_EQ(held.size(), static_cast<std::size_t>(kCount));
  });
  EXPECT_EQ(made, kCount);
}

// Restarts while creates are under way: each of them succeeds, none of them twice, and nothing is
// told to have ended.
TEST_F(JointTest, RestartsOfTheWardenAreNotSeen) {
  constexpr int kCount = 60;
  start();
  std::atomic<bool> finished = false;
  std::thread restarts([&] {
    while (!finished) {
      std::this_thread::sleep_for(milliseconds(7));  // Any moment will do.
      stop();
      start();
    }
  });
  play([&]() -> Task<void> {
    for (int i = 0; i < kCount; ++i) {
      std::string name = "sb-" + std::to_string(i);
      const Result<void> done = co_await create(std::move(name));
      EXPECT_TRUE(done) << done.error().text();
      Timer pause(io_.get_executor(), after(milliseconds(2)));
      co_await pause.async_wait(use_result);
    }
    finished = true;
    const std::set<std::string> held = co_await names();
    EXPECT_EQ(held.size(), static_cast<std::size_t>(kCount));
  });
  finished = true;
  restarts.join();
  EXPECT_TRUE(exits_.empty());
}

TEST_F(JointTest, ADeathIsHeardAlsoOfOneThatDiedWithoutAWarden) {
  config_.keeper.pool_size = 0;
  start();
  play([this]() -> Task<void> {
    Result<void> done = co_await create("a");
    EXPECT_TRUE(done);
    stop();
    world_.kill(world_.sandboxes.begin()->first);
    start();
    const Deadline d = after(seconds(50));
    while (exits_.empty() && Clock::now() < d) {
      Timer pause(io_.get_executor(), after(milliseconds(1)));
      co_await pause.async_wait(use_result);
    }
  });
  EXPECT_EQ(exits_, std::set<std::string>{"a"});
}

}  // namespace
}  // namespace glovebox::warden
