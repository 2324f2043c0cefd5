#include "warden/client/runtime.h"

#include "warden/client/test_script.h"

namespace glovebox::warden {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class WardenRuntimeTest : public ScriptedWardenTest {};

TEST_F(WardenRuntimeTest, PassesOnWhatIsAsked) {
  play(
      [](Script& w) {
        w.greet();
        const Message create = w.expect(Op::kCreate);
        const auto r = decode_payload<CreateRequest>(create.payload);
        ASSERT_TRUE(r);
        EXPECT_EQ(r.value().name, "a");
        EXPECT_EQ(r.value().template_id, "host");
        EXPECT_EQ(r.value().pids, sandbox::Limits().pids);
        w.reply(create, kMade);
        w.reply(w.expect(Op::kFreeze));
        w.reply(w.expect(Op::kThaw));
        UsageReply usage;
        usage.pids = 5;
        usage.oom_kills = 2;
        w.reply(w.expect(Op::kUsage), usage);
        w.reply(w.expect(Op::kList), ListReply{{{"a", "/agents/x.sock", 1}}, 0});
        w.reply(w.expect(Op::kDestroy));
      },
      [this]() -> Task<void> {
        const SandboxId a("a");
        const Deadline d = after(seconds(10));
        const Result<void> made = co_await create("a");
        EXPECT_TRUE(made);
        const Result<void> frozen = co_await runtime_->freeze(a, d);
        EXPECT_TRUE(frozen);
        const Result<void> thawed = co_await runtime_->thaw(a, d);
        EXPECT_TRUE(thawed);
        const Result<sandbox::Usage> usage = co_await runtime_->usage(a, d);
        EXPECT_TRUE(usage);
        EXPECT_EQ(usage.value().pids, 5U);
        EXPECT_EQ(usage.value().oom_kills, 2U);
        const Result<std::vector<sandbox::Live>> list = co_await runtime_->list(d);
        EXPECT_TRUE(list);
        EXPECT_EQ(list.value().size(), 1U);
        EXPECT_TRUE(list.value().at(0).frozen);
        const Result<void> gone = co_await runtime_->destroy(a, d);
        EXPECT_TRUE(gone);
      });
  EXPECT_TRUE(exits_.empty());
}

TEST_F(WardenRuntimeTest, ErrorsKeepTheirCodeAndText) {
  play(
      [](Script& w) {
        w.greet();
        const Message create = w.expect(Op::kCreate);
        w.send(encode_error(create.header.id, Op::kCreate, Error(Errc::kExhausted, "full")));
      },
      [this]() -> Task<void> {
        const Result<void> made = co_await create("a");
        EXPECT_EQ(made.error().code(), Errc::kExhausted);
        EXPECT_EQ(made.error().text(), "full");
      });
}

TEST_F(WardenRuntimeTest, WithoutAWardenCallsEndAtTheirDeadline) {
  make_runtime();
  run([this]() -> Task<void> {
    const Result<void> made = co_await create("a", after(milliseconds(30)));
    EXPECT_EQ(made.error().code(), Errc::kUnavailable);
    EXPECT_FALSE(runtime_->connected());
  });
}

TEST_F(WardenRuntimeTest, CallsWaitForAWardenThatComesLater) {
  make_runtime();
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(30));  // It comes late; that is what is tested.
    Script w(config_.socket_path);
    w.greet();
    w.reply(w.expect(Op::kCreate), kMade);
    (void)w.receive();
  });
  run([this]() -> Task<void> {
    const Result<void> made = co_await create("a");
    EXPECT_TRUE(made);
    EXPECT_TRUE(runtime_->connected());
  });
  other.join();
}

TEST_F(WardenRuntimeTest, ALateReplyIsNobodysReply) {
  play(
      [](Script& w) {
        w.greet();
        const Message first = w.expect(Op::kUsage);
        const Message second = w.expect(Op::kUsage);
        UsageReply usage;
        usage.pids = 1;
        w.reply(first, usage);
        usage.pids = 2;
        w.reply(second, usage);
      },
      [this]() -> Task<void> {
        const SandboxId a("a");
        Result<sandbox::Usage> usage = co_await runtime_->usage(a, after(milliseconds(200)));
        EXPECT_EQ(usage.error().code(), Errc::kTimeout);
        usage = co_await runtime_->usage(a, after(seconds(10)));
        EXPECT_TRUE(usage);
        EXPECT_EQ(usage->pids, 2U);
      });
}

TEST_F(WardenRuntimeTest, ACreateThatTookEffectBeforeTheConnectionEndedIsNotRepeated) {
  play(
      [](Script& w) {
        w.greet();
        (void)w.expect(Op::kCreate);
        w.hang_up();
        w.greet({{"a", "/agents/x.sock", 0}});
        w.reply(w.expect(Op::kFreeze));
      },
      [this]() -> Task<void> {
        const Result<void> made = co_await create("a");
        EXPECT_TRUE(made);
        const Result<void> frozen = co_await runtime_->freeze(SandboxId("a"), after(seconds(10)));
        EXPECT_TRUE(frozen);
      });
}

TEST_F(WardenRuntimeTest, ACreateThatGotLostIsSentAgain) {
  play(
      [](Script& w) {
        w.greet();
        (void)w.expect(Op::kCreate);
        w.hang_up();
        w.greet();
        w.reply(w.expect(Op::kCreate), kMade);
      },
      [this]() -> Task<void> {
        const Result<void> made = co_await create("a");
        EXPECT_TRUE(made);
      });
}

TEST_F(WardenRuntimeTest, ExitsAreToldOnceAndOnlyOfWhatItHolds) {
  play(
      [](Script& w) {
        w.greet({{"a", "/agents/a.sock", 0}, {"b", "/agents/b.sock", 0}});
        w.event("stranger", "x");
        w.event("a", "out of memory");
        w.event("a", "again");
        w.reply(w.expect(Op::kDestroy));
        w.event("b", "we killed it ourselves");
        w.reply(w.expect(Op::kList), ListReply{});
      },
      [this]() -> Task<void> {
        co_await exits(1);
        const Result<void> gone = co_await runtime_->destroy(SandboxId("b"), after(seconds(10)));
        EXPECT_TRUE(gone);
        const auto list = co_await runtime_->list(after(seconds(10)));
        EXPECT_TRUE(list);
      });
  ASSERT_EQ(exits_.size(), 1U);
  EXPECT_EQ(exits_[0].first, "a");
  EXPECT_EQ(exits_[0].second, "out of memory");
}

TEST_F(WardenRuntimeTest, AnExitRightBehindACreateIsTold) {
  play(
      [](Script& w) {
        w.greet();
        w.reply(w.expect(Op::kCreate), kMade);
        w.event("a", "died young");
      },
      [this]() -> Task<void> {
        const Result<void> made = co_await create("a");
        EXPECT_TRUE(made);
        co_await exits(1);
      });
  ASSERT_EQ(exits_.size(), 1U);
}

TEST_F(WardenRuntimeTest, WhatVanishedMeanwhileIsToldAfterReconnecting) {
  play(
      [](Script& w) {
        w.greet({{"a", "/agents/a.sock", 0}, {"b", "/agents/b.sock", 0}});
        w.hang_up();
        w.greet({{"b", "/agents/b.sock", 0}});
      },
      [this]() -> Task<void> { co_await exits(1); });
  ASSERT_EQ(exits_.size(), 1U);
  EXPECT_EQ(exits_[0].first, "a");
}

TEST_F(WardenRuntimeTest, ALongListComesInPages) {
  play(
      [](Script& w) {
        w.greet();
        w.reply(w.expect(Op::kList), ListReply{{{"a", "", 0}, {"b", "", 0}}, 1});
        const Message next = w.expect(Op::kList);
        EXPECT_EQ(decode_payload<ListRequest>(next.payload)->after, "b");
        w.reply(next, ListReply{{{"c", "", 0}}, 0});
      },
      [this]() -> Task<void> {
        const auto list = co_await runtime_->list(after(seconds(10)));
        EXPECT_TRUE(list);
        EXPECT_EQ(list.value().size(), 3U);
      });
}

TEST_F(WardenRuntimeTest, RequestsInFlightAreBoundedAndKeepTheirOrder) {
  config_.in_flight_max = 2;
  config_.waiting_max = 2;
  int finished = 0;
  play(
      [](Script& w) {
        w.greet();
        std::vector<Message> requests;
        requests.push_back(w.expect(Op::kCreate));
        requests.push_back(w.expect(Op::kCreate));
        EXPECT_TRUE(w.silent(milliseconds(50)));
        for (std::size_t i = 0; i < 4; ++i) {
          const auto r = decode_payload<CreateRequest>(requests[i].payload);
          EXPECT_EQ(r.value().name, std::string(1, static_cast<char>('a' + i)));
          w.reply(requests[i], kMade);
          if (i < 2) requests.push_back(w.expect(Op::kCreate));
        }
      },
      [&]() -> Task<void> {
        Timer all(io_.get_executor(), after(seconds(10)));
        const auto one = [&](std::string name) -> Task<void> {
          const Result<void> made = co_await create(std::move(name));
          EXPECT_TRUE(made);
          if (++finished == 4) all.cancel();
        };
        for (const char* name : {"a", "b", "c", "d"}) {
          boost::asio::co_spawn(io_, one(name), boost::asio::detached);
        }
        // After those four have begun; the queue is then full.
        co_await boost::asio::post(io_, use_task);
        const Result<void> fifth = co_await create("e");
        EXPECT_EQ(fifth.error().code(), Errc::kExhausted);
        co_await all.async_wait(use_result);
      });
  EXPECT_EQ(finished, 4);
}

TEST_F(WardenRuntimeTest, NonsenseFromTheWardenEndsTheConnectionOnly) {
  play(
      [](Script& w) {
        w.greet();
        (void)w.expect(Op::kUsage);
        w.send("nonsense");
        w.greet();
        w.reply(w.expect(Op::kUsage), UsageReply{});
      },
      [this]() -> Task<void> {
        const auto usage = co_await runtime_->usage(SandboxId("a"), after(seconds(10)));
        EXPECT_TRUE(usage);
      });
}

TEST_F(WardenRuntimeTest, AnotherVersionIsNotTalkedTo) {
  play(
      [](Script& w) {
        w.accept();
        const Message hello = w.expect(Op::kHello);
        w.send(encode_error(hello.header.id, Op::kHello, Error(Errc::kInvalid, "version")));
        w.hang_up();
      },
      [this]() -> Task<void> {
        const auto usage = co_await runtime_->usage(SandboxId("a"), after(milliseconds(300)));
        EXPECT_EQ(usage.error().code(), Errc::kUnavailable);
      });
}

TEST_F(WardenRuntimeTest, AWardenThatHangsInTheHandshakeIsLeft) {
  config_.handshake_within = milliseconds(30);
  play(
      [](Script& w) {
        w.accept();
        (void)w.expect(Op::kHello);
        EXPECT_FALSE(w.receive());  // It hung up.
        w.greet();
        w.reply(w.expect(Op::kUsage), UsageReply{});
      },
      [this]() -> Task<void> {
        const auto usage = co_await runtime_->usage(SandboxId("a"), after(seconds(10)));
        EXPECT_TRUE(usage);
      });
}

TEST_F(WardenRuntimeTest, ClosingEndsWhatIsInFlight) {
  bool ended = false;
  // Out here, as its coroutine outlives the body.
  const auto one = [&]() -> Task<void> {
    const auto usage = co_await runtime_->usage(SandboxId("a"), after(seconds(60)));
    EXPECT_EQ(usage.error().code(), Errc::kUnavailable);
    ended = true;
  };
  play(
      [](Script& w) {
        w.greet();
        (void)w.expect(Op::kUsage);
        w.reply(w.expect(Op::kCreate), kMade);
        EXPECT_FALSE(w.receive());
      },
      [&]() -> Task<void> {
        boost::asio::co_spawn(io_, one(), boost::asio::detached);
        co_await boost::asio::post(io_, use_task);
        const Result<void> made = co_await create("b");
        EXPECT_TRUE(made);
      });
  EXPECT_TRUE(ended);
}

TEST_F(WardenRuntimeTest, NothingIsDoneAfterClosing) {
  make_runtime();
  run([]() -> Task<void> { co_return; });
  Errc code = Errc::kInternal;
  const auto late = [&]() -> Task<void> {
    const Result<void> made = co_await create("a");
    code = made.error().code();
  };
  boost::asio::co_spawn(io_, late(), boost::asio::detached);
  io_.restart();
  io_.run_for(seconds(10));
  EXPECT_EQ(code, Errc::kUnavailable);
}

}  // namespace
}  // namespace glovebox::warden
