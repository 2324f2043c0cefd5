// FakeHost: a Host for tests. Its sandboxes are plain child processes that wait, so pids, pidfds,
// deaths and adoption are real; everything else is a value that a test may look at or set.
//
// A FakeWorld is what outlives a warden: make a second FakeHost over it to test a restart.

#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "os/process.h"
#include "os/sys.h"
#include "runtime/native/host.h"

namespace glovebox::warden {

struct FakeSandbox {
  native::BoxIdentity identity;
  bool frozen = false;
  std::string exit_reason = "killed";
};

struct FakeWorld {
  std::map<std::string, FakeSandbox> sandboxes;
  std::set<std::string> debris;  // Instances with resources but no process.
  std::vector<std::string> calls;

  std::optional<Error> launch_error;
  std::optional<Error> adopt_error;
  std::optional<Error> erase_error;
  std::optional<Error> set_limits_error;
  bool dies_at_once = false;
  // What a sandbox's pidfd is instead, when set: no signal gets through it, and the test says when
  // it is readable.
  UniqueFd pidfd;

  // A sandbox's process reads from the pipe and so ends with the test, however that ends.
  UniqueFd leash_out;
  UniqueFd leash_in;

  FakeWorld() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) ::abort();
    leash_out.reset(ends[0]);
    leash_in.reset(ends[1]);
  }
  FakeWorld(const FakeWorld&) = delete;
  FakeWorld& operator=(const FakeWorld&) = delete;
  ~FakeWorld() {
    while (!sandboxes.empty()) erase(sandboxes.begin()->first);
  }

  int count(std::string_view call) const {
    int n = 0;
    for (const std::string& c : calls) n += c.starts_with(call) ? 1 : 0;
    return n;
  }
  // Ends the sandbox's process and waits until that can be seen, without reaping it.
  void kill(const std::string& instance) {
    const pid_t pid = sandboxes.at(instance).identity.pid;
    ::kill(pid, SIGKILL);
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT);
  }
  void erase(const std::string& instance) {
    debris.erase(instance);
    const auto it = sandboxes.find(instance);
    if (it == sandboxes.end()) return;
    ::kill(it->second.identity.pid, SIGKILL);
    ::waitpid(it->second.identity.pid, nullptr, 0);
    sandboxes.erase(it);
  }
};

class FakeBox final : public native::Box {
 public:
  FakeBox(FakeWorld& world, native::BoxIdentity identity, UniqueFd pidfd)
      : world_(world), identity_(std::move(identity)), pidfd_(std::move(pidfd)) {}

  const native::BoxIdentity& identity() const override { return identity_; }
  int pidfd() const override { return world_.pidfd ? world_.pidfd.get() : pidfd_.get(); }
  std::string agent_socket() const override { return "/fake/" + identity_.instance + ".sock"; }
  Result<void> set_limits(const native::Limits& limits) override {
    if (world_.set_limits_error) return *world_.set_limits_error;
    self().identity.limits = limits;
    return {};
  }
  Result<void> freeze() override {
    self().frozen = true;
    return {};
  }
  Result<void> thaw() override {
    self().frozen = false;
    return {};
  }
  bool frozen() const override { return self().frozen; }
  Result<native::Usage> usage() const override {
    native::Usage u;
    u.cpu_us = 7;
    u.memory_bytes = 1 << 20;
    u.pids = 3;
    return u;
  }
  Result<std::vector<UniqueFd>> make_sockets(int count, bool ipv6) override {
    std::vector<UniqueFd> fds;
    fds.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      fds.emplace_back(
          ::socket(ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    }
    return fds;
  }
  std::string exit_reason() const override { return self().exit_reason; }

 private:
  FakeSandbox& self() const { return world_.sandboxes.at(identity_.instance); }

  FakeWorld& world_;
  native::BoxIdentity identity_;
  UniqueFd pidfd_;
};

class FakeHost final : public native::Host {
 public:
  explicit FakeHost(FakeWorld& world) : world_(world) {}

  Result<std::unique_ptr<native::Box>> launch(const std::string& instance, std::uint32_t slot,
                                              const native::Limits& limits) override {
    world_.calls.push_back("launch " + instance);
    if (world_.launch_error) return *world_.launch_error;
    for (const auto& [other, sandbox] : world_.sandboxes) {
      if (sandbox.identity.slot == slot) return Error(Errc::kInternal, "the slot is in use");
    }
    const pid_t pid = ::fork();
    if (pid < 0) return Error::from_errno(errno, "fork");
    if (pid == 0) wait_for_the_end();
    GB_TRY_ASSIGN(const std::uint64_t start, os::process_start_time(pid));
    world_.sandboxes[instance].identity = {instance, slot, pid, start, limits};
    Result<std::unique_ptr<native::Box>> box = open_box(world_.sandboxes[instance].identity);
    if (world_.dies_at_once) world_.kill(instance);
    return box;
  }
  Result<std::unique_ptr<native::Box>> adopt(const native::BoxIdentity& identity) override {
    world_.calls.push_back("adopt " + identity.instance);
    if (world_.adopt_error) return *world_.adopt_error;
    const auto it = world_.sandboxes.find(identity.instance);
    if (it == world_.sandboxes.end() || it->second.identity.pid != identity.pid ||
        it->second.identity.start_time != identity.start_time || is_dead(identity.pid)) {
      return Error(Errc::kNotFound, "no such process");
    }
    return open_box(identity);
  }
  Result<void> erase(const std::string& instance) override {
    world_.calls.push_back("erase " + instance);
    if (world_.erase_error) return *world_.erase_error;
    world_.erase(instance);
    return {};
  }
  Result<std::vector<std::string>> instances() override {
    std::vector<std::string> all(world_.debris.begin(), world_.debris.end());
    for (const auto& [instance, sandbox] : world_.sandboxes) all.push_back(instance);
    return all;
  }

 private:
  static bool is_dead(pid_t pid) {
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT | WNOHANG);
    return info.si_pid == pid;
  }
  [[noreturn]] void wait_for_the_end() {
    // Holds on to nothing of the test's: an inherited socket would live on here.
    ::dup2(world_.leash_out.get(), 0);
    ::close_range(1, ~0U, 0);
    char byte = 0;
    while (::read(0, &byte, 1) < 0) {
    }
    ::_exit(0);
  }
  Result<std::unique_ptr<native::Box>> open_box(const native::BoxIdentity& identity) {
    GB_TRY_ASSIGN(UniqueFd pidfd, os::pidfd_open(identity.pid));
    return std::unique_ptr<native::Box>(
        std::make_unique<FakeBox>(world_, identity, std::move(pidfd)));
  }

  FakeWorld& world_;
};

}  // namespace glovebox::warden
