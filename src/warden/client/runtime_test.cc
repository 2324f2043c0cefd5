#include "warden/client/runtime.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <thread>

#include "async/coro.h"
#include "testing/temp_dir.h"
#include "warden/protocol/messages.h"

namespace glovebox::warden {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

UniqueFd unix_listener(const std::string& path, int type) {
  UniqueFd fd(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(fd.get(), 16), 0);
  return fd;
}

// The other side of one connection, driven by a script that blocks.
class Script {
 public:
  explicit Script(const std::string& path)
      : path_(path), listener_(unix_listener(path, SOCK_SEQPACKET)) {}
  ~Script() { ::unlink(path_.c_str()); }

  void accept() {
    fd_.reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(static_cast<bool>(fd_));
    const timeval limit{5, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  void hang_up() { fd_.reset(); }
  std::optional<Message> receive() {
    std::string buffer(kMessageBytesMax, '\0');
    const ssize_t n = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
    if (n <= 0) return std::nullopt;
    return *decode_message(std::string_view(buffer).substr(0, static_cast<std::size_t>(n)));
  }
  Message expect(Op op) {
    const auto m = receive();
    EXPECT_TRUE(m) << "the client hung up or said nothing";
    if (!m) return {};
    EXPECT_EQ(m->header.op, op);
    return *m;
  }
  bool silent(milliseconds time) {
    pollfd p{fd_.get(), POLLIN, 0};
    return ::poll(&p, 1, static_cast<int>(time.count())) == 0;
  }
  void send(const std::string& bytes) {
    EXPECT_EQ(::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void reply(const Message& to, const std::string& payload = {}) {
    send(encode({to.header.id, to.header.op, 0}, payload));
  }
  template <class T>
  void reply(const Message& to, const T& value) {
    reply(to, encode_payload(value));
  }
  void event(const std::string& name, const std::string& reason) {
    send(encode({0, Op::kExited, 0}, encode_payload(ExitedEvent{name, reason})));
  }
  void reply_with_sockets(const Message& to, int count, int family) {
    std::string bytes = encode({to.header.id, to.header.op, 0}, "");
    std::vector<UniqueFd> fds;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kSocketsMax)] = {};
    iovec iov{bytes.data(), bytes.size()};
    msghdr header{};
    header.msg_iov = &iov;
    header.msg_iovlen = 1;
    header.msg_control = control;
    const std::size_t size = sizeof(int) * static_cast<std::size_t>(count);
    header.msg_controllen = CMSG_SPACE(size);
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(size);
    for (int i = 0; i < count; ++i) {
      fds.emplace_back(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      const int fd = fds.back().get();
      std::memcpy(CMSG_DATA(c) + static_cast<std::size_t>(i) * sizeof fd, &fd, sizeof fd);
    }
    ASSERT_GT(::sendmsg(fd_.get(), &header, MSG_NOSIGNAL), 0);
  }
  // Accepts, and answers everything up to a connection that serves.
  void greet(const std::vector<ListEntry>& holds = {}) {
    accept();
    reply(expect(Op::kHello), HelloReply{kProtocolVersion, "/agents"});
    reply(expect(Op::kSubscribe));
    reply(expect(Op::kList), ListReply{holds, 0});
  }

 private:
  std::string path_;
  UniqueFd listener_;
  UniqueFd fd_;
};

class WardenRuntimeTest : public ::testing::Test {
 protected:
  WardenRuntimeTest()
      : null_(::open("/dev/null", O_WRONLY | O_CLOEXEC)),
        log_(null_.get(), log::Level::kDebug, log::Form::kJson) {
    config_.socket_path = dir_ / "warden.sock";
    config_.reconnect_min = milliseconds(1);
    config_.reconnect_max = milliseconds(10);
  }

  void make_runtime() {
    runtime_ = std::make_unique<WardenRuntime>(io_.get_executor(), config_, log_);
    runtime_->on_exit([this](const SandboxId& id, std::string reason) {
      exits_.emplace_back(id.str(), std::move(reason));
      if (on_exit_) on_exit_();
    });
  }
  // Runs `script` as the warden and `body` as the daemon, to the end of both.
  void play(std::function<void(Script&)> script, std::function<Task<void>()> body) {
    make_runtime();
    Script warden(config_.socket_path);
    std::thread other([&] { script(warden); });
    run(std::move(body));
    other.join();
  }
  void run(std::function<Task<void>()> body) {
    bool done = false;
    runtime_->start();
    boost::asio::co_spawn(io_, with_close(std::move(body), done), boost::asio::detached);
    io_.run_for(seconds(20));
    EXPECT_TRUE(done) << "it hangs";
    // What is still pending in a hang must not outlive the runtime.
    if (!done) std::abort();
  }
  Task<void> with_close(std::function<Task<void>()> body, bool& done) {
    co_await body();
    co_await runtime_->close();
    done = true;
  }
  Task<Result<void>> create(std::string name, Deadline deadline = after(seconds(10))) {
    sandbox::LaunchSpec spec;
    spec.id = SandboxId(std::move(name));
    co_return co_await runtime_->create(std::move(spec), deadline);
  }
  // Waits until the listener was called `count` times.
  Task<void> exits(std::size_t count) {
    Timer timer(io_.get_executor(), after(seconds(10)));
    on_exit_ = [&] {
      if (exits_.size() >= count) timer.cancel();
    };
    if (exits_.size() < count) co_await timer.async_wait(use_result);
    on_exit_ = nullptr;
  }

  testing::TempDir dir_;
  UniqueFd null_;
  log::Logger log_;
  ClientConfig config_;
  boost::asio::io_context io_{1};
  std::unique_ptr<WardenRuntime> runtime_;
  std::vector<std::pair<std::string, std::string>> exits_;
  std::function<void()> on_exit_;
};

const CreateReply kMade{"/agents/x.sock"};

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

TEST_F(WardenRuntimeTest, AgentsAreReachedAtTheirSocket) {
  const std::string path = dir_ / "agent.sock";
  const UniqueFd agent = unix_listener(path, SOCK_STREAM);
  play([&](Script& w) { w.greet({{"a", path, 0}, {"b", dir_ / "nobody.sock", 0}}); },
       [&]() -> Task<void> {
         const Deadline d = after(seconds(10));
         // Known only once it is connected.
         Result<UniqueFd> fd = Error(Errc::kNotFound, "");
         while (!fd && fd.error().code() == Errc::kNotFound && Clock::now() < d) {
           Timer pause(io_.get_executor(), after(milliseconds(1)));
           co_await pause.async_wait(use_result);
           fd = co_await runtime_->open_agent(SandboxId("a"), d);
         }
         EXPECT_TRUE(fd);
         const UniqueFd accepted(::accept4(agent.get(), nullptr, nullptr, SOCK_CLOEXEC));
         EXPECT_TRUE(static_cast<bool>(accepted));
         fd = co_await runtime_->open_agent(SandboxId("b"), d);
         EXPECT_EQ(fd.error().code(), Errc::kUnavailable);
         fd = co_await runtime_->open_agent(SandboxId("c"), d);
         EXPECT_EQ(fd.error().code(), Errc::kNotFound);
       });
}

// A listener on loopback and its port.
std::pair<UniqueFd, std::uint16_t> tcp_listener(int family) {
  UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage address{};
  socklen_t size = 0;
  if (family == AF_INET) {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&address);
    v4->sin_family = AF_INET;
    v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    size = sizeof *v4;
  } else {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&address);
    v6->sin6_family = AF_INET6;
    v6->sin6_addr = in6addr_loopback;
    size = sizeof *v6;
  }
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) return {};
  ::listen(fd.get(), 64);
  ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
  // The port is at the same place in both.
  return {std::move(fd), ntohs(reinterpret_cast<sockaddr_in*>(&address)->sin_port)};
}

TEST_F(WardenRuntimeTest, MostConnectionsToAPortNeedNoQuestion) {
  auto [listener, port] = tcp_listener(AF_INET);
  int questions = 0;
  play(
      [&](Script& w) {
        w.greet();
        w.reply(w.expect(Op::kCreate), kMade);
        while (const auto m = w.receive()) {
          EXPECT_EQ(m->header.op, Op::kSockets);
          const auto r = decode_payload<SocketsRequest>(m->payload);
          EXPECT_EQ(r.value().ipv6, 0);
          w.reply_with_sockets(*m, r.value().count, AF_INET);
          ++questions;
        }
      },
      [&]() -> Task<void> {
        const Result<void> made = co_await create("a");
        EXPECT_TRUE(made);
        for (int i = 0; i < 32; ++i) {
          const Result<UniqueFd> fd =
              co_await runtime_->open_port(SandboxId("a"), port, after(seconds(10)));
          EXPECT_TRUE(fd) << fd.error().text();
        }
      });
  EXPECT_LE(questions, 8);
  EXPECT_GE(questions, 4);
}

TEST_F(WardenRuntimeTest, WhatListensOnIpv6OnlyIsReached) {
  auto [listener, port] = tcp_listener(AF_INET6);
  if (!listener) GTEST_SKIP() << "this host has no IPv6 loopback";
  play(
      [&](Script& w) {
        w.greet();
        w.reply(w.expect(Op::kCreate), kMade);
        while (const auto m = w.receive()) {
          const auto r = decode_payload<SocketsRequest>(m->payload);
          w.reply_with_sockets(*m, r.value().count, r.value().ipv6 != 0 ? AF_INET6 : AF_INET);
        }
      },
      [&]() -> Task<void> {
        const Result<void> made = co_await create("a");
        EXPECT_TRUE(made);
        const Result<UniqueFd> fd =
            co_await runtime_->open_port(SandboxId("a"), port, after(seconds(10)));
        EXPECT_TRUE(fd) << fd.error().text();
      });
}

TEST_F(WardenRuntimeTest, APortWithoutAListenerIsUnavailable) {
  auto [listener, port] = tcp_listener(AF_INET);
  listener.reset();
  play(
      [&](Script& w) {
        w.greet();
        w.reply(w.expect(Op::kCreate), kMade);
        while (const auto m = w.receive()) {
          const auto r = decode_payload<SocketsRequest>(m->payload);
          if (r.value().ipv6 != 0) {
            w.send(encode_error(m->header.id, Op::kSockets, Error(Errc::kInternal, "no IPv6")));
          } else {
            w.reply_with_sockets(*m, r.value().count, AF_INET);
          }
        }
      },
      [&]() -> Task<void> {
        const Deadline d = after(seconds(10));
        const Result<void> made = co_await create("a");
        EXPECT_TRUE(made);
        Result<UniqueFd> fd = co_await runtime_->open_port(SandboxId("a"), port, d);
        EXPECT_EQ(fd.error().code(), Errc::kUnavailable);
        EXPECT_NE(fd.error().text().find("nothing listens on port"), std::string::npos);
        fd = co_await runtime_->open_port(SandboxId("a"), 0, d);
        EXPECT_EQ(fd.error().code(), Errc::kInvalid);
        fd = co_await runtime_->open_port(SandboxId("z"), port, d);
        EXPECT_EQ(fd.error().code(), Errc::kNotFound);
      });
}

}  // namespace
}  // namespace glovebox::warden
