#include "warden/server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "os/files.h"
#include "testing/temp_dir.h"
#include "warden/fake_host.h"
#include "warden/test_fixture.h"
#include "warden/test_peer.h"
#include "warden/warden.h"

namespace glovebox::warden {
namespace {

class ServerTest : public FakeHostTest {
 protected:
  TestPeer peer() {
    TestPeer p(config_.server.socket_path);
    EXPECT_TRUE(p.connected());
    return p;
  }
  TestPeer greeted() {
    TestPeer p = peer();
    EXPECT_TRUE(p.hello());
    return p;
  }
};

TEST_F(ServerTest, HelloTellsVersionAndDirectory) {
  start();
  TestPeer p = peer();
  const auto reply = p.ask(Op::kHello, HelloRequest{});
  ASSERT_TRUE(reply);
  const auto hello = decode_payload<HelloReply>(reply->payload);
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello.value().version, kProtocolVersion);
  EXPECT_EQ(hello.value().agent_socket_dir, "/fake");
}

TEST_F(ServerTest, ASandboxLivesItsLife) {
  start();
  TestPeer p = greeted();
  const auto made = p.ask(Op::kCreate, host_request("a"));
  ASSERT_TRUE(made);
  ASSERT_EQ(made->header.status, 0) << decode_error(*made).text();
  EXPECT_TRUE(decode_payload<CreateReply>(made->payload)->agent_socket.starts_with("/fake/"));
  EXPECT_EQ(p.error_of(Op::kCreate, host_request("a")), Errc::kConflict);
  EXPECT_FALSE(p.error_of(Op::kFreeze, NameRequest{"a"}));
  const auto listed = p.ask(Op::kList, ListRequest{});
  const auto list = decode_payload<ListReply>(listed->payload);
  ASSERT_EQ(list.value().entries.size(), 1U);
  EXPECT_EQ(list.value().entries[0].frozen, 1);
  EXPECT_FALSE(p.error_of(Op::kThaw, NameRequest{"a"}));
  const auto usage = p.ask(Op::kUsage, NameRequest{"a"});
  EXPECT_EQ(decode_payload<UsageReply>(usage->payload)->pids, 3U);
  EXPECT_FALSE(p.error_of(Op::kDestroy, NameRequest{"a"}));
  EXPECT_FALSE(p.error_of(Op::kDestroy, NameRequest{"a"}));
  EXPECT_EQ(p.error_of(Op::kUsage, NameRequest{"a"}), Errc::kNotFound);
}

TEST_F(ServerTest, SocketsComeAsDescriptors) {
  start();
  TestPeer p = greeted();
  ASSERT_FALSE(p.error_of(Op::kCreate, host_request("a")));
  ASSERT_FALSE(p.error_of(Op::kSockets, SocketsRequest{"a", 16, 0}));
  ASSERT_EQ(p.fds.size(), 16U);
  int type = 0;
  socklen_t size = sizeof type;
  EXPECT_EQ(::getsockopt(p.fds[15].get(), SOL_SOCKET, SO_TYPE, &type, &size), 0);
  EXPECT_EQ(type, SOCK_STREAM);
  EXPECT_EQ(p.error_of(Op::kSockets, SocketsRequest{"a", 17, 0}), Errc::kInvalid);
}

struct Rude {
  const char* name;
  std::string first;  // Instead of a proper hello.
};

class RudePeerTest : public ServerTest, public ::testing::WithParamInterface<Rude> {};

TEST_P(RudePeerTest, IsDisconnectedAndOthersAreServed) {
  start();
  TestPeer good = greeted();
  TestPeer rude = peer();
  (void)rude.send(GetParam().first);
  while (!rude.closed()) {  // An error reply may come first.
  }
  EXPECT_FALSE(good.error_of(Op::kCreate, host_request("a")));
}

const Rude kRude[] = {
    {"NoHello", encode({1, Op::kList, 0}, encode_payload(ListRequest{}))},
    {"WrongVersion", encode({1, Op::kHello, 0}, encode_payload(HelloRequest{999}))},
    {"EmptyHello", encode({1, Op::kHello, 0}, "")},
    {"LongHello", encode({1, Op::kHello, 0}, std::string(1000, 'x'))},
    {"Garbage", std::string(100, '\xff')},
    {"OneByte", "x"},
    {"Oversize", std::string(kMessageBytesMax + 1, '\0')},
    {"UnknownOperation", encode({1, static_cast<Op>(77), 0}, "")},
};

INSTANTIATE_TEST_SUITE_P(Table, RudePeerTest, ::testing::ValuesIn(kRude),
                         [](const auto& c) { return c.param.name; });

TEST_F(ServerTest, AfterHelloOnlyWhatIsNoMessageDisconnects) {
  start();
  struct Case {
    const char* name;
    std::string bytes;
    bool answered;
  };
  const std::string create = encode({9, Op::kCreate, 0}, encode_payload(host_request("a")));
  const Case cases[] = {
      {"half a request", create.substr(0, create.size() - 3), true},
      {"a request with more", create + "x", true},
      {"subscribe with fields", encode({9, Op::kSubscribe, 0}, "x"), true},
      {"a lying length", encode({9, Op::kDestroy, 0}, "\xff\xff\xff\xff"), true},
      {"an event", encode({9, Op::kExited, 0}, encode_payload(ExitedEvent{"a", "b"})), false},
      {"a failed request", encode({9, Op::kList, 3}, encode_payload(ListRequest{})), false},
      {"half a header", create.substr(0, 5), false},
      {"too much", std::string(kMessageBytesMax + 1, '\0'), false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    TestPeer p = greeted();
    ASSERT_TRUE(p.send(c.bytes));
    const auto reply = p.receive();
    ASSERT_EQ(reply.has_value(), c.answered);
    if (!reply) continue;
    EXPECT_EQ(reply->header.id, 9U);
    EXPECT_EQ(decode_error(*reply).code(), Errc::kInvalid);
    EXPECT_FALSE(p.error_of(Op::kList, ListRequest{}));
  }
  EXPECT_EQ(world_.sandboxes.size(), 1U);  // The warm one.
}

TEST_F(ServerTest, DescriptorsSentToItAreNotKept) {
  start();
  TestPeer p = greeted();
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  UniqueFd reader(ends[0]);
  {
    UniqueFd writer(ends[1]);
    std::string bytes = encode({5, Op::kList, 0}, encode_payload(ListRequest{}));
    iovec iov{bytes.data(), bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr header{};
    header.msg_iov = &iov;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(c), &ends[1], sizeof(int));
    ASSERT_GT(::sendmsg(p.fd(), &header, 0), 0);
  }
  ASSERT_TRUE(p.receive());
  pollfd ended{reader.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&ended, 1, 5000), 1);
  char byte = 0;
  EXPECT_EQ(::read(reader.get(), &byte, 1), 0);
}

TEST_F(ServerTest, WhoSaysNothingIsDisconnected) {
  config_.server.hello_within = std::chrono::milliseconds(20);
  start();
  TestPeer silent = peer();
  TestPeer good = greeted();
  EXPECT_TRUE(silent.closed());
  EXPECT_FALSE(good.error_of(Op::kList, ListRequest{}));
}

TEST_F(ServerTest, ConnectionsAreBounded) {
  config_.server.connections_max = 3;
  start();
  std::vector<TestPeer> peers;
  peers.reserve(3);
  for (int i = 0; i < 3; ++i) peers.push_back(greeted());
  TestPeer last = peer();
  EXPECT_TRUE(last.closed());
  peers.pop_back();
  // The place is free once the warden has seen the end of it, which it sees before it answers
  // a later request of another.
  ASSERT_FALSE(peers[0].error_of(Op::kList, ListRequest{}));
  EXPECT_TRUE(greeted().connected());
}

TEST_F(ServerTest, TheSocketIsForItsOwnerOnly) {
  start();
  struct stat st{};
  ASSERT_EQ(::stat(config_.server.socket_path.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600U);
  EXPECT_EQ(st.st_uid, config_.server.client_uid);
}

TEST_F(ServerTest, StrangersAreTurnedAwayEvenIfTheyCanConnect) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become somebody else";
  start();
  ASSERT_EQ(::chmod(config_.server.socket_path.c_str(), 0777), 0);
  ASSERT_EQ(::chmod(dir_.path().c_str(), 0755), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresgid(54321, 54321, 54321) != 0 || ::setresuid(54321, 54321, 54321) != 0) ::_exit(9);
    TestPeer stranger(config_.server.socket_path);
    if (!stranger.connected()) ::_exit(8);
    (void)stranger.send(encode({1, Op::kHello, 0}, encode_payload(HelloRequest{})));
    ::_exit(stranger.closed() ? 0 : 7);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(ServerTest, SubscribersAreToldOfDeaths) {
  config_.keeper.pool_size = 0;
  start();
  TestPeer p = greeted();
  TestPeer deaf = greeted();
  ASSERT_FALSE(p.error_of(Op::kCreate, host_request("a")));
  const auto subscribed = p.ask(Op::kSubscribe, std::string_view());
  ASSERT_TRUE(subscribed);
  // Nothing is created or erased meanwhile: the other thread leaves the map alone.
  world_.kill(world_.sandboxes.begin()->first);
  const auto event = p.receive();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->header.op, Op::kExited);
  EXPECT_EQ(event->header.id, 0U);
  EXPECT_EQ(decode_payload<ExitedEvent>(event->payload)->name, "a");
  // The other connection got no event in between.
  EXPECT_FALSE(deaf.error_of(Op::kList, ListRequest{}));
}

TEST_F(ServerTest, DeathsThatNobodyHeardAreKeptForTheNextSubscriber) {
  config_.keeper.pool_size = 0;
  start();
  TestPeer p = greeted();
  ASSERT_FALSE(p.error_of(Op::kCreate, host_request("a")));
  world_.kill(world_.sandboxes.begin()->first);
  while (p.error_of(Op::kUsage, NameRequest{"a"}) != Errc::kNotFound) {
  }
  ASSERT_TRUE(p.ask(Op::kSubscribe, std::string_view()));
  const auto event = p.receive();
  ASSERT_TRUE(event);
  EXPECT_EQ(decode_payload<ExitedEvent>(event->payload)->name, "a");
  // Once only.
  TestPeer later = greeted();
  ASSERT_TRUE(later.ask(Op::kSubscribe, std::string_view()));
  EXPECT_FALSE(later.error_of(Op::kList, ListRequest{}));
}

TEST_F(ServerTest, ARestartTellsWhatDiedMeanwhile) {
  config_.keeper.pool_size = 0;
  start();
  ASSERT_FALSE(greeted().error_of(Op::kCreate, host_request("a")));
  stop();
  world_.kill(world_.sandboxes.begin()->first);
  start();
  TestPeer p = greeted();
  ASSERT_TRUE(p.ask(Op::kSubscribe, std::string_view()));
  const auto event = p.receive();
  ASSERT_TRUE(event);
  EXPECT_EQ(decode_payload<ExitedEvent>(event->payload)->name, "a");
}

// It floods the warden with requests and reads no reply, then everything: nothing is lost, and
// the warden served others meanwhile.
TEST_F(ServerTest, AClientThatDoesNotReadWaitsAlone) {
  start();
  TestPeer slow = greeted();
  TestPeer good = greeted();
  int sent = 0;
  for (; sent < 100'000; ++sent) {
    const std::string bytes =
        encode({1000U + static_cast<unsigned>(sent), Op::kList, 0}, encode_payload(ListRequest{}));
    if (::send(slow.fd(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
      pollfd writable{slow.fd(), POLLOUT, 0};
      if (::poll(&writable, 1, 50) == 0) break;  // Both directions are full.
      --sent;
    }
  }
  ASSERT_LT(sent, 100'000);
  EXPECT_FALSE(good.error_of(Op::kCreate, host_request("a")));
  for (int i = 0; i < sent; ++i) {
    const auto reply = slow.receive();
    ASSERT_TRUE(reply) << i;
    ASSERT_EQ(reply->header.id, 1000U + static_cast<unsigned>(i));
  }
}

TEST(Connection, ASubscriberThatDoesNotReadIsGivenUp) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
  Connection connection{UniqueFd(pair[0])};
  const UniqueFd peer(pair[1]);
  Result<void> sent;
  int count = 0;
  while (sent && count < 1'000'000) {
    sent = connection.send(std::string(100, 'x'));
    ++count;
  }
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code(), Errc::kExhausted);
  EXPECT_TRUE(connection.blocked());
}

TEST(Connection, WhatWasQueuedKeepsItsOrderAndDescriptors) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
  Connection connection{UniqueFd(pair[0])};
  Connection reader{UniqueFd(pair[1])};
  int sent = 0;
  for (; !connection.blocked(); ++sent) ASSERT_TRUE(connection.send(std::to_string(sent)));
  std::vector<UniqueFd> fds;
  fds.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(connection.send(std::to_string(sent++), std::move(fds)));
  std::vector<char> buffer(1024);
  int got = 0;
  while (got < sent) {
    auto message = reader.receive(buffer);
    ASSERT_TRUE(message) << message.error().text();
    if (!*message) {
      ASSERT_TRUE(connection.flush());
      continue;
    }
    ASSERT_EQ(**message, std::to_string(got));
    ++got;
  }
  EXPECT_FALSE(connection.blocked());
}

TEST_F(ServerTest, StoppingLeavesSandboxesAndNoSocket) {
  start();
  ASSERT_FALSE(greeted().error_of(Op::kCreate, host_request("a")));
  stop();
  EXPECT_EQ(world_.sandboxes.size(), 1U);
  EXPECT_NE(::access(config_.server.socket_path.c_str(), F_OK), 0);
  start();
  TestPeer p = greeted();
  EXPECT_FALSE(p.error_of(Op::kUsage, NameRequest{"a"}));
}

TEST_F(ServerTest, ADeadSocketIsReplacedAndALivingOneIsNot) {
  config_.keeper.pool_size = 0;  // A fork at the wrong moment would hold the dead socket open.
  start();
  EXPECT_EQ(listen_at(config_.server.socket_path, 0, 0).error().code(), Errc::kConflict);
  const std::string dead = dir_ / "dead.sock";
  {
    const auto fd = listen_at(dead, ::geteuid(), ::getegid());
    ASSERT_TRUE(fd);
  }
  EXPECT_TRUE(listen_at(dead, ::geteuid(), ::getegid()));
  const std::string file = dir_ / "file";
  ASSERT_TRUE(os::put_file(AT_FDCWD, file, "precious", 0600));
  EXPECT_EQ(listen_at(file, 0, 0).error().code(), Errc::kConflict);
  EXPECT_EQ(listen_at(dir_ / std::string(200, 'a'), 0, 0).error().code(), Errc::kInvalid);
}

TEST_F(ServerTest, AStateDirectoryHasOneWarden) {
  auto first = lock_state_dir(dir_.path(), Clock::now());
  ASSERT_TRUE(first);
  EXPECT_EQ(lock_state_dir(dir_.path(), Clock::now()).error().code(), Errc::kConflict);
  Result<UniqueFd> second;
  std::thread waits([&] { second = lock_state_dir(dir_.path(), after(std::chrono::seconds(10))); });
  first->reset();
  waits.join();
  EXPECT_TRUE(second);
}

}  // namespace
}  // namespace glovebox::warden
