#include "warden/client/dial.h"

#include "warden/client/test_script.h"

namespace glovebox::warden {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class DialTest : public ScriptedWardenTest {};

TEST_F(DialTest, AgentsAreReachedAtTheirSocket) {
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

TEST_F(DialTest, MostConnectionsToAPortNeedNoQuestion) {
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

TEST_F(DialTest, WhatListensOnIpv6OnlyIsReached) {
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

TEST_F(DialTest, APortWithoutAListenerIsUnavailable) {
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
