#include "runtime/native/host.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <thread>

#include "os/files.h"
#include "os/process.h"
#include "runtime/native/cgroups.h"
#include "runtime/native/disk.h"
#include "runtime/native/guards.h"
#include "runtime/native/janitor.h"
#include "runtime/native/seccomp_policy.h"
#include "runtime/native/spawner.h"
#include "runtime/native/template_image.h"
#include "runtime/native/template_tree.h"
#include "runtime/native/user_namespace.h"

namespace glovebox::native {
namespace {

constexpr auto kKillPatience = std::chrono::seconds(10);
constexpr auto kFreezePatience = std::chrono::seconds(5);
constexpr std::uint32_t kIdsPerSlot = 65536;
constexpr std::uint64_t kNoDiskLimitBytes = 64ULL << 30;  // Test builds with the disk guard off.
constexpr const char* kImageSuffix = ".img";
constexpr const char* kSocketSuffix = ".sock";

bool is_instance(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

// The host CPUs for a share of `millis`: as many as it takes, so that a program which counts its
// CPUs (sched_getaffinity) sees what it has. 0 is all of them. Slots start at different ones.
std::uint64_t cpu_mask(std::uint32_t millis, std::uint32_t slot) {
  const unsigned host = std::min(64U, std::max(1U, std::thread::hardware_concurrency()));
  const unsigned wanted = std::max(1U, (millis + 999) / 1000);
  if (wanted >= host) return 0;
  std::uint64_t mask = 0;
  for (unsigned i = 0; i < wanted; ++i) mask |= std::uint64_t{1} << ((slot + i) % host);
  return mask;
}

// Changes the thread's network namespace for as long as it lives.
class [[nodiscard]] InNetworkOf {
 public:
  static Result<InNetworkOf> enter(int pidfd) {
    GB_TRY_ASSIGN(const int own, os::retry("open", "/proc/thread-self/ns/net", [] {
                    return ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
                  }));
    InNetworkOf scope{UniqueFd(own)};
    if (::setns(pidfd, CLONE_NEWNET) != 0) {
      const int err = errno;
      scope.own_.reset();
      return Error::from_errno(err, "enter the sandbox's network namespace");
    }
    return scope;
  }
  InNetworkOf(InNetworkOf&&) = default;
  ~InNetworkOf() {
    // Going on in a stranger's network would be a hole, so there is no going on.
    if (own_ && ::setns(own_.get(), CLONE_NEWNET) != 0) std::abort();
  }

 private:
  explicit InNetworkOf(UniqueFd own) : own_(std::move(own)) {}
  UniqueFd own_;
};

class NativeBox final : public Box {
 public:
  NativeBox(BoxIdentity identity, UniqueFd pidfd, BoxCgroups cgroups, std::string socket,
            Unguarded unguarded)
      : identity_(std::move(identity)),
        pidfd_(std::move(pidfd)),
        cgroups_(std::move(cgroups)),
        socket_(std::move(socket)),
        unguarded_(unguarded) {}

  const BoxIdentity& identity() const override { return identity_; }
  int pidfd() const override { return pidfd_.get(); }
  std::string agent_socket() const override { return socket_; }
  bool frozen() const override { return frozen_; }
  void note_frozen(bool frozen) { frozen_ = frozen; }

  Result<void> set_limits(const Limits& limits) override {
    if (limits.memory_bytes != identity_.limits.memory_bytes && !unguarded_.off(Guard::kMemory)) {
      GB_TRY(cgroups_.set_memory(limits.memory_bytes));
    }
    if (limits.pids != identity_.limits.pids && !unguarded_.off(Guard::kPids)) {
      GB_TRY(cgroups_.set_pids(limits.pids));
    }
    if (limits.cpu_millis != identity_.limits.cpu_millis && !unguarded_.off(Guard::kCpu)) {
      GB_TRY(cgroups_.set_cpu(limits.cpu_millis));
      GB_TRY(spread_over_cpus(limits.cpu_millis));
    }
    const std::uint64_t disk = identity_.limits.disk_bytes;
    identity_.limits = limits;
    identity_.limits.disk_bytes = disk;
    return {};
  }

  Result<void> freeze() override {
    if (auto r = cgroups_.set_frozen(true, kFreezePatience); !r) {
      (void)cgroups_.set_frozen(false, kFreezePatience);
      return r;
    }
    frozen_ = true;
    return {};
  }
  Result<void> thaw() override {
    GB_TRY(cgroups_.set_frozen(false, kFreezePatience));
    frozen_ = false;
    return {};
  }

  Result<Usage> usage() const override {
    Usage usage = cgroups_.usage();
    // Through the process, so that no mount is held open here.
    const std::string root = "/proc/" + std::to_string(identity_.pid) + "/root/";
    struct ::statfs fs;
    if (::statfs(root.c_str(), &fs) == 0) {
      usage.disk_used_bytes = (fs.f_blocks - fs.f_bfree) * static_cast<std::uint64_t>(fs.f_bsize);
    }
    return usage;
  }

  Result<std::vector<UniqueFd>> make_sockets(int count, bool ipv6) override {
    GB_TRY_ASSIGN(const auto inside, InNetworkOf::enter(pidfd_.get()));
    std::vector<UniqueFd> sockets;
    for (int i = 0; i < count; ++i) {
      GB_TRY_ASSIGN(const int fd, os::retry("socket", "", [&] {
                      return ::socket(ipv6 ? AF_INET6 : AF_INET,
                                      SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
                    }));
      sockets.emplace_back(fd);
    }
    return sockets;
  }

  std::string exit_reason() const override {
    if (cgroups_.usage().oom_kills > 0) return "its first process ended; it had run out of memory";
    return "its first process ended";
  }

 private:
  Result<void> spread_over_cpus(std::uint32_t millis) {
    ::cpu_set_t set;
    CPU_ZERO(&set);
    const std::uint64_t mask = cpu_mask(millis, identity_.slot);
    for (int cpu = 0; cpu < 64; ++cpu) {
      if (mask == 0 || (mask >> cpu & 1) != 0) CPU_SET(cpu, &set);
    }
    GB_TRY_ASSIGN(const std::vector<pid_t> pids, cgroups_.processes());
    for (const pid_t pid : pids) ::sched_setaffinity(pid, sizeof set, &set);
    return {};
  }

  BoxIdentity identity_;
  UniqueFd pidfd_;
  BoxCgroups cgroups_;
  std::string socket_;
  Unguarded unguarded_;
  bool frozen_ = false;
};

class NativeHost final : public Host {
 public:
  explicit NativeHost(HostConfig config)
      : config_(std::move(config)),
        images_dir_(config_.state_dir + "/images"),
        usr_layer_(config_.state_dir + "/usr-layer"),
        templates_(images_dir_, scratch("image")) {}

  Result<void> prepare() {
    GB_TRY_ASSIGN(unguarded_, Unguarded::parse(config_.unguarded));
    GB_TRY(os::make_dirs(config_.state_dir, 0700));
    GB_TRY(os::make_dirs(config_.agent_socket_dir, 0711));
    GB_TRY(os::make_dirs(images_dir_, 0700));
    GB_TRY(remove_half_made_templates());
    for (const char* name : {"image", "usr", "layer", "cgroup2", "spawner"}) {
      GB_TRY(os::make_dirs(scratch(name), 0700));
    }
    GB_TRY(fill_usr_layer(usr_layer_).context("copy configuration for the host template"));
    // From here on, so that the overlay's options, which a sandbox can read in its mountinfo, name
    // no path of the host.
    GB_TRY(os::retry("chdir", config_.state_dir, [&] { return ::chdir(scratch("").c_str()); }));
    // Its own mount namespace, so that what is mounted for a moment is seen by nobody and cannot
    // outlive it; what the host mounts later still arrives.
    GB_TRY(os::retry("unshare", "mount namespace", [] { return ::unshare(CLONE_NEWNS); }));
    GB_TRY(os::retry("mount", "/",
                     [] { return ::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr); }));
    GB_TRY_ASSIGN(roots_, CgroupRoots::open(config_.cgroup_name, scratch("cgroup2")));
    GB_TRY_ASSIGN(const int agent, os::retry("open", config_.agent_program, [&] {
                    return ::open(config_.agent_program.c_str(), O_PATH | O_CLOEXEC);
                  }));
    agent_.reset(agent);
    GB_TRY_ASSIGN(seccomp_, compile_seccomp_policy());
    GB_TRY(start_spawner());
    GB_TRY(templates_.of_size(image_bytes(Limits{})));
    user_namespaces_.resize(config_.slots);
    return {};
  }

  Result<std::unique_ptr<Box>> launch(const std::string& instance, std::uint32_t slot,
                                      const Limits& limits) override {
    if (!is_instance(instance)) return Error(Errc::kInvalid, "not an instance name: " + instance);
    if (slot >= config_.slots) return Error(Errc::kInvalid, "no such slot");
    if (exists(instance)) return Error(Errc::kConflict, "there is an instance " + instance);
    auto box = try_launch(instance, slot, limits);
    if (!box) (void)erase(instance);
    return std::move(box).context("launch " + instance);
  }

  Result<std::unique_ptr<Box>> adopt(const BoxIdentity& identity) override {
    const auto gone = [&] {
      return Error(Errc::kNotFound, "sandbox " + identity.instance + " no longer runs");
    };
    auto pidfd = os::pidfd_open(identity.pid);
    if (!pidfd) return gone();
    const auto start = os::process_start_time(identity.pid);
    if (!start || *start != identity.start_time) return gone();
    ::pollfd dead{pidfd->get(), POLLIN, 0};
    if (::poll(&dead, 1, 0) != 0) return gone();
    BoxCgroups cgroups(roots_, identity.instance);
    GB_TRY_ASSIGN(const std::vector<pid_t> pids, cgroups.processes());
    if (std::find(pids.begin(), pids.end(), identity.pid) == pids.end()) return gone();
    auto box = std::make_unique<NativeBox>(identity, std::move(*pidfd), std::move(cgroups),
                                           socket_path(identity.instance), unguarded_);
    const auto events = os::read_file(roots_.tracking.get(), identity.instance + "/cgroup.freeze");
    box->note_frozen(events && events->starts_with("1"));
    return std::unique_ptr<Box>(std::move(box));
  }

  Result<void> erase(const std::string& instance) override {
    if (!is_instance(instance)) return Error(Errc::kInvalid, "not an instance name: " + instance);
    BoxCgroups cgroups(roots_, instance);
    if (exists(instance)) {
      discard_disk_of(cgroups);
      GB_TRY(cgroups.kill_all());
      if (!cgroups.wait_empty(kKillPatience)) {
        return Error(Errc::kTimeout, "sandbox " + instance + ": processes that will not die");
      }
    }
    GB_TRY(cgroups.remove());
    ::unlink(socket_path(instance).c_str());
    // The name goes now, the blocks when the janitor closes the file.
    UniqueFd image(::open(image_path(instance).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    ::unlink(image_path(instance).c_str());
    if (image) janitor_.take(std::move(image));
    return {};
  }

  Result<std::vector<std::string>> instances() override {
    std::set<std::string> found;
    for (const UniqueFd* root : {&roots_.tracking, &roots_.memory, &roots_.cpu, &roots_.pids}) {
      if (!*root) continue;
      GB_TRY_ASSIGN(const std::vector<std::string> names, os::list_dir(root->get(), "."));
      for (const std::string& name : names) {
        // Files of the group itself have a dot or an underscore in their names.
        if (is_instance(name) && is_dir(root->get(), name)) found.insert(name);
      }
    }
    GB_TRY(collect(images_dir_, kImageSuffix, found));
    GB_TRY(collect(config_.agent_socket_dir, kSocketSuffix, found));
    return std::vector<std::string>(found.begin(), found.end());
  }

 private:
  bool exists(const std::string& instance) const {
    return ::faccessat(roots_.tracking.get(), instance.c_str(), F_OK, 0) == 0;
  }

  // Through any of its processes: all are in the one mount namespace.
  static void discard_disk_of(const BoxCgroups& cgroups) {
    const auto pids = cgroups.processes();
    if (!pids || pids->empty()) return;
    discard_unwritten("/proc/" + std::to_string(pids->front()) + "/root");
  }

  static bool is_dir(int dir_fd, const std::string& name) {
    struct stat st;
    return ::fstatat(dir_fd, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
  }

  static Result<void> collect(const std::string& dir, std::string_view suffix,
                              std::set<std::string>& found) {
    GB_TRY_ASSIGN(const std::vector<std::string> names, os::list_dir(AT_FDCWD, dir));
    for (const std::string& name : names) {
      if (name.ends_with(suffix)) found.insert(name.substr(0, name.size() - suffix.size()));
    }
    return {};
  }

  std::string scratch(const char* name) const { return config_.state_dir + "/scratch/" + name; }
  std::string socket_path(const std::string& instance) const {
    return config_.agent_socket_dir + "/" + instance + kSocketSuffix;
  }
  std::string image_path(const std::string& instance) const {
    return images_dir_ + "/" + instance + kImageSuffix;
  }
  uid_t uid_base(std::uint32_t slot) const { return config_.uid_base + slot * kIdsPerSlot; }
  std::uint64_t image_bytes(const Limits& limits) const {
    return unguarded_.off(Guard::kDisk) ? kNoDiskLimitBytes : limits.disk_bytes;
  }

  // A template's file has a name only while it is made: one that is there is a crash's.
  Result<void> remove_half_made_templates() {
    GB_TRY_ASSIGN(const std::vector<std::string> names, os::list_dir(AT_FDCWD, images_dir_));
    for (const std::string& name : names) {
      if (!name.ends_with(kImageSuffix)) ::unlink((images_dir_ + "/" + name).c_str());
    }
    return {};
  }

  Result<void> start_spawner() {
    Spawner::Options options;
    options.agent_fd = agent_.get();
    options.seccomp = seccomp_;
    options.scratch = scratch("spawner");
    options.unguarded = unguarded_;
    GB_TRY_ASSIGN(spawner_, Spawner::start(options));
    return {};
  }

  Result<int> user_namespace(std::uint32_t slot) {
    UniqueFd& ns = user_namespaces_[slot];
    if (!ns) {
      const bool forbid_nested = !unguarded_.off(Guard::kNestedUserNamespaces);
      GB_TRY_ASSIGN(ns, make_user_namespace(uid_base(slot), forbid_nested));
    }
    return ns.get();
  }

  Result<UniqueFd> make_image(const std::string& instance, std::uint64_t bytes) {
    GB_TRY_ASSIGN(const int source, templates_.of_size(bytes));
    const std::string path = image_path(instance);
    GB_TRY_ASSIGN(const int raw, os::retry("open", path, [&] {
                    return ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
                  }));
    UniqueFd image(raw);
    GB_TRY(os::copy_sparse(source, image.get()));
    return image;
  }

  // Listens before the agent runs, so that a caller may connect at once and wait for its answer.
  Result<UniqueFd> listen_for_agent(const std::string& instance) {
    const std::string path = socket_path(instance);
    ::sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
      return Error(Errc::kInvalid, "agent socket path is too long: " + path);
    }
    path.copy(address.sun_path, path.size());
    GB_TRY_ASSIGN(const int raw, os::retry("socket", path, [] {
                    return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
                  }));
    UniqueFd listener(raw);
    // The mode of the file is the descriptor's at bind(2): nobody gets in before the chown.
    GB_TRY(os::retry("fchmod", path, [&] { return ::fchmod(raw, 0600); }));
    GB_TRY(os::retry("bind", path, [&] {
      return ::bind(raw, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    }));
    GB_TRY(os::retry("chown", path, [&] {
      return ::lchown(path.c_str(), config_.client_uid, config_.client_gid);
    }));
    GB_TRY(os::retry("listen", path, [&] { return ::listen(raw, 1024); }));
    return listener;
  }

  Result<void> make_cgroups(BoxCgroups& cgroups, std::uint32_t slot, const Limits& limits) {
    GB_TRY(cgroups.make());
    if (!unguarded_.off(Guard::kMemory)) GB_TRY(cgroups.set_memory(limits.memory_bytes));
    if (!unguarded_.off(Guard::kCpu)) GB_TRY(cgroups.set_cpu(limits.cpu_millis));
    if (!unguarded_.off(Guard::kPids)) GB_TRY(cgroups.set_pids(limits.pids));
    return cgroups.delegate(uid_base(slot), uid_base(slot));
  }

  Result<pid_t> spawn(const LaunchPlan& plan) {
    auto pid = spawner_.launch(plan);
    if (pid || pid.error().code() != Errc::kUnavailable) return pid;
    GB_TRY(start_spawner());  // It died; the sandboxes it made live on.
    return spawner_.launch(plan);
  }

  Result<std::unique_ptr<Box>> try_launch(const std::string& instance, std::uint32_t slot,
                                          const Limits& limits) {
    BoxCgroups cgroups(roots_, instance);
    GB_TRY(make_cgroups(cgroups, slot, limits));
    LaunchPlan plan;
    GB_TRY_ASSIGN(plan.user_ns, user_namespace(slot));
    GB_TRY_ASSIGN(const UniqueFd image, make_image(instance, image_bytes(limits)));
    GB_TRY_ASSIGN(const BoxMounts mounts,
                  make_box_mounts({image.get(), plan.user_ns, uid_base(slot), usr_layer_, "image",
                                   "usr", "layer"}));
    GB_TRY_ASSIGN(const UniqueFd listener, listen_for_agent(instance));
    GB_TRY_ASSIGN(const UniqueFd tracking, cgroups.open_tracking());
    GB_TRY_ASSIGN(const std::vector<UniqueFd> tasks, cgroups.open_tasks());
    plan.root = mounts.root.get();
    plan.usr = mounts.usr.get();
    plan.dev = mounts.dev.get();
    plan.listener = listener.get();
    plan.tracking = tracking.get();
    for (const UniqueFd& fd : tasks) plan.cgroup_tasks.push_back(fd.get());
    plan.shm_bytes = std::max<std::uint64_t>(limits.memory_bytes / 2, 1 << 20);
    plan.cpu_mask = unguarded_.off(Guard::kCpu) ? 0 : cpu_mask(limits.cpu_millis, slot);
    plan.uid_base = uid_base(slot);
    GB_TRY_ASSIGN(const pid_t pid, spawn(plan));
    BoxIdentity identity{instance, slot, pid, 0, limits};
    GB_TRY_ASSIGN(UniqueFd pidfd, os::pidfd_open(pid));
    GB_TRY_ASSIGN(identity.start_time, os::process_start_time(pid));
    return std::unique_ptr<Box>(std::make_unique<NativeBox>(std::move(identity), std::move(pidfd),
                                                            std::move(cgroups),
                                                            socket_path(instance), unguarded_));
  }

  HostConfig config_;
  std::string images_dir_;
  std::string usr_layer_;
  Unguarded unguarded_;
  CgroupRoots roots_;
  UniqueFd agent_;
  std::vector<sock_filter> seccomp_;
  Spawner spawner_;
  TemplateImages templates_;
  std::vector<UniqueFd> user_namespaces_;
  Janitor janitor_;
};

}  // namespace

Result<std::unique_ptr<Host>> Host::open(HostConfig config) {
  if (::geteuid() != 0) return Error(Errc::kDenied, "the native runtime needs root");
  auto host = std::make_unique<NativeHost>(std::move(config));
  GB_TRY(host->prepare());
  return std::unique_ptr<Host>(std::move(host));
}

}  // namespace glovebox::native
