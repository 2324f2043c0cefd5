// A warden played by a test, and what runs a WardenRuntime against it.

#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "async/coro.h"
#include "base/log.h"
#include "testing/temp_dir.h"
#include "warden/client/runtime.h"
#include "warden/protocol/messages.h"

namespace glovebox::warden {

inline UniqueFd unix_listener(const std::string& path, int type) {
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
  bool silent(std::chrono::milliseconds time) {
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

class ScriptedWardenTest : public ::testing::Test {
 protected:
  ScriptedWardenTest()
      : null_(::open("/dev/null", O_WRONLY | O_CLOEXEC)),
        log_(null_.get(), log::Level::kDebug, log::Form::kJson) {
    config_.socket_path = dir_ / "warden.sock";
    config_.reconnect_min = std::chrono::milliseconds(1);
    config_.reconnect_max = std::chrono::milliseconds(10);
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
    io_.run_for(std::chrono::seconds(20));
    EXPECT_TRUE(done) << "it hangs";
    // What is still pending in a hang must not outlive the runtime.
    if (!done) std::abort();
  }
  Task<void> with_close(std::function<Task<void>()> body, bool& done) {
    co_await body();
    co_await runtime_->close();
    done = true;
  }
  Task<Result<void>> create(std::string name, Deadline deadline = after(std::chrono::seconds(10))) {
    sandbox::LaunchSpec spec;
    spec.id = SandboxId(std::move(name));
    co_return co_await runtime_->create(std::move(spec), deadline);
  }
  // Waits until the listener was called `count` times.
  Task<void> exits(std::size_t count) {
    Timer timer(io_.get_executor(), after(std::chrono::seconds(10)));
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

inline const CreateReply kMade{"/agents/x.sock"};

}  // namespace glovebox::warden
