// A whole warden over a fake host, on a thread of its own.

#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "testing/temp_dir.h"
#include "warden/fake_host.h"
#include "warden/warden.h"

namespace glovebox::warden {

class FakeHostTest : public ::testing::Test {
 protected:
  FakeHostTest()
      : stop_(::eventfd(0, EFD_CLOEXEC)), null_(::open("/dev/null", O_WRONLY | O_CLOEXEC)) {
    config_.state_dir = dir_.path();
    config_.keeper.pool_size = 1;
    config_.server.socket_path = dir_ / "warden.sock";
    config_.server.client_uid = ::geteuid();
    config_.server.client_gid = ::getegid();
    config_.server.agent_socket_dir = "/fake";
  }
  void TearDown() override { stop(); }

  void start() {
    ASSERT_FALSE(thread_.joinable());
    ready_ = false;
    thread_ = std::thread([this] {
      FakeHost host(world_);
      log::Logger log(null_.get(), log::Level::kDebug, log::Form::kJson);
      const auto tell = [this] {
        ready_ = true;
        ready_.notify_one();
      };
      ended_ = run(config_, host, stop_.get(), log, tell);
      tell();  // Should it have failed before it was ready.
    });
    ready_.wait(false);
  }
  void stop() {
    if (!thread_.joinable()) return;
    const std::uint64_t one = 1;
    ASSERT_EQ(::write(stop_.get(), &one, sizeof one), 8);
    thread_.join();
    std::uint64_t value = 0;
    ASSERT_EQ(::read(stop_.get(), &value, sizeof value), 8);
    EXPECT_TRUE(ended_) << ended_.error().text();
  }

  testing::TempDir dir_;
  FakeWorld world_;
  WardenConfig config_;
  UniqueFd stop_;
  UniqueFd null_;
  std::thread thread_;
  std::atomic<bool> ready_ = false;
  Result<void> ended_;
};

}  // namespace glovebox::warden
