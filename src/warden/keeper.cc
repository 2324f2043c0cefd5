#include "warden/keeper.h"

#include <signal.h>
#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "os/sys.h"
#include "warden/names.h"
#include "warden/requests.h"

namespace glovebox::warden {
namespace {

// A list's page stays below a message's size, whatever the paths' lengths.
constexpr std::size_t kListBytesMax = kMessageBytesMax - 1024;

bool same_but_disk(const native::Limits& a, const native::Limits& b) {
  return a.memory_bytes == b.memory_bytes && a.cpu_millis == b.cpu_millis && a.pids == b.pids;
}

}  // namespace

Keeper::Keeper(const KeeperConfig& config, native::Host& host, RecordStore& records, Loop& loop,
               log::Logger& log, ExitSink on_exit)
    : config_(config),
      host_(host),
      records_(records),
      loop_(loop),
      log_(log),
      on_exit_(std::move(on_exit)),
      slots_(config.slots),
      sweep_at_(after(config.sweep_every)) {}

Keeper::~Keeper() {
  for (auto& [instance, held] : held_) loop_.unwatch(held.watch);
  for (const Erasing& e : erasing_) loop_.unwatch(e.watch);
}

Result<Keeper::Held*> Keeper::find(const std::string& name) {
  GB_TRY(check_name(name));
  const auto it = names_.find(name);
  if (it == names_.end()) return Error(Errc::kNotFound, "no sandbox " + name);
  return &held_.at(it->second);
}

Result<native::Box*> Keeper::find_box(const std::string& name) {
  GB_TRY_ASSIGN(Held * held, find(name));
  if (!held->box) {
    return Error(Errc::kUnavailable, "sandbox " + name + " could not be taken back yet");
  }
  return held->box.get();
}

Keeper::Held& Keeper::hold(Record record, std::unique_ptr<native::Box> box) {
  const std::string instance = record.box.instance;
  if (!record.name.empty()) names_[record.name] = instance;
  Held& held = held_[instance];
  held.record = std::move(record);
  held.box = std::move(box);
  held.since = Clock::now();
  return held;
}

Result<void> Keeper::watch(Held& held) {
  const std::string& instance = held.record.box.instance;
  GB_TRY_ASSIGN(held.watch, loop_.watch(held.box->pidfd(), EPOLLIN,
                                        [this, instance](unsigned) { on_death(instance); }));
  return {};
}

Result<CreateReply> Keeper::create(const CreateRequest& request) {
  GB_TRY_ASSIGN(const native::Limits limits, check_create(request));
  if (names_.contains(request.name)) {
    return Error(Errc::kConflict, "there is a sandbox " + request.name + " already");
  }
  if (names_.size() >= config_.sandboxes_max) {
    return Error(Errc::kExhausted, "this host holds its " + std::to_string(config_.sandboxes_max) +
                                       " sandboxes already");
  }
  if (std::optional<CreateReply> claimed = claim(request, limits)) return *std::move(claimed);
  Result<Held*> held = launch(request.name, limits, RecordState::kRunning);
  if (!held) return std::move(held).context("create " + request.name).error();
  return CreateReply{(*held)->box->agent_socket()};
}

std::optional<CreateReply> Keeper::claim(const CreateRequest& request,
                                         const native::Limits& limits) {
  // The disk's size is fixed at launch.
  if (limits.disk_bytes != config_.warm_limits.disk_bytes) return std::nullopt;
  while (!warm_.empty()) {
    const std::string instance = warm_.front();
    Held& held = held_.at(instance);
    if (has_ended(*held.box)) {
      on_death(instance);
      continue;
    }
    warm_.pop_front();
    Record record = held.record;
    record.state = RecordState::kRunning;
    record.name = request.name;
    record.box.limits = limits;
    Result<void> done;
    if (!same_but_disk(held.record.box.limits, limits)) done = held.box->set_limits(limits);
    if (done) done = records_.put(record);
    if (!done) {
      log_.warn("a warm sandbox could not be claimed",
                {{"sandbox", request.name}, {"instance", instance}, {"error", done.error()}});
      kill(held);
      retire(instance);
      return std::nullopt;
    }
    held.record = std::move(record);
    names_[request.name] = instance;
    refill_failures_ = 0;
    log_.debug("claimed", {{"sandbox", request.name}, {"instance", instance}});
    return CreateReply{held.box->agent_socket()};
  }
  return std::nullopt;
}

Result<Keeper::Held*> Keeper::launch(const std::string& name, const native::Limits& limits,
                                     RecordState state) {
  const Deadline begin = Clock::now();
  Record record;
  GB_TRY_ASSIGN(record.box.instance, make_instance_name());
  GB_TRY_ASSIGN(record.box.slot, take_slot(state));
  record.name = name;
  record.box.limits = limits;
  const std::string instance = record.box.instance;
  const std::uint32_t slot = record.box.slot;

  Result<void> written = records_.put(record);
  if (!written) {
    slots_.give_back(slot);
    return std::move(written).error();
  }
  Result<std::unique_ptr<native::Box>> box = host_.launch(instance, slot, limits);
  if (!box) {
    // The host promises to leave nothing; the erase also covers a promise that was broken.
    erase_later(instance, slot, config_.erase_patience);
    return std::move(box).error();
  }
  record.state = state;
  record.box = (*box)->identity();
  record.box.limits = limits;
  Held& held = hold(record, *std::move(box));
  Result<void> kept = records_.put(record);
  if (kept) kept = watch(held);
  if (!kept) {
    kill(held);
    retire(instance);
    return std::move(kept).error();
  }
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
  log_.debug("launched", {{"sandbox", name}, {"instance", instance}, {"us", us.count()}});
  return &held;
}

Result<std::uint32_t> Keeper::take_slot(RecordState for_state) {
  // The pool must not keep a client's sandbox from being made.
  if (for_state == RecordState::kRunning && held_.size() >= config_.slots && !warm_.empty()) {
    const std::string instance = warm_.back();
    kill(held_.at(instance));
    retire(instance);
  }
  for (std::size_t tries = erasing_.size() + 1; tries > 0; --tries) {
    if (const auto slot = slots_.take()) return *slot;
    if (!erasing_.empty()) erase_now(0);
  }
  return Error(Errc::kExhausted, "no range of user ids is free");
}

Result<void> Keeper::destroy(const std::string& name) {
  Result<Held*> held = find(name);
  if (!held) {
    if (held.error().code() == Errc::kNotFound) return {};
    return std::move(held).error();
  }
  const std::string instance = (*held)->record.box.instance;
  kill(**held);
  retire(instance);
  log_.debug("destroyed", {{"sandbox", name}, {"instance", instance}});
  return {};
}

// From here on nothing inside runs any more, or only until the kernel has delivered the signal;
// the first process takes all others of its pid namespace with it.
void Keeper::kill(Held& held) {
  if (!held.box) return;
  (void)os::pidfd_send_signal(held.box->pidfd(), SIGKILL);
  // cgroup v1: a frozen process dies only once it is thawed.
  if (held.box->frozen()) (void)held.box->thaw();
}

void Keeper::retire(const std::string& instance) {
  const auto it = held_.find(instance);
  if (it == held_.end()) return;
  Held& held = it->second;
  loop_.unwatch(held.watch);
  const auto name = names_.find(held.record.name);
  if (name != names_.end() && name->second == instance) names_.erase(name);
  std::erase(warm_, instance);
  held.record.state = RecordState::kEnding;
  if (Result<void> marked = records_.put(held.record); !marked) {
    // After a crash its process will be found dead instead.
    log_.warn("a record could not be marked", {{"instance", instance}, {"error", marked.error()}});
  }
  erase_when_dead(instance, held.record.box.slot, std::move(held.box));
  held_.erase(it);
}

void Keeper::on_death(const std::string& instance) {
  const auto it = held_.find(instance);
  if (it == held_.end()) return;
  Held& held = it->second;
  ExitedEvent event{held.record.name, held.box->exit_reason()};
  const bool warm = event.name.empty();
  log_.warn(warm ? "a warm sandbox died" : "a sandbox ended by itself",
            {{"sandbox", event.name}, {"instance", instance}, {"reason", event.reason}});
  if (warm && Clock::now() - held.since < std::chrono::seconds(10)) put_off_refill();
  retire(instance);
  if (!warm) on_exit_(std::move(event));
}

Result<void> Keeper::freeze(const std::string& name) {
  GB_TRY_ASSIGN(native::Box * box, find_box(name));
  if (box->frozen()) return {};
  return box->freeze().context("freeze " + name);
}

Result<void> Keeper::thaw(const std::string& name) {
  GB_TRY_ASSIGN(native::Box * box, find_box(name));
  if (!box->frozen()) return {};
  return box->thaw().context("thaw " + name);
}

Result<UsageReply> Keeper::usage(const std::string& name) {
  GB_TRY_ASSIGN(native::Box * box, find_box(name));
  Result<native::Usage> u = box->usage();
  if (!u) return std::move(u).context("usage of " + name).error();
  const native::Limits& l = held_.at(names_.at(name)).record.box.limits;
  UsageReply r;
  r.cpu_us = u->cpu_us;
  r.memory_bytes = u->memory_bytes;
  r.memory_limit_bytes = l.memory_bytes;
  r.memory_peak_bytes = u->memory_peak_bytes;
  r.disk_used_bytes = u->disk_used_bytes;
  r.disk_limit_bytes = l.disk_bytes;
  r.pids = u->pids;
  r.pids_limit = l.pids;
  r.cpu_millis = l.cpu_millis;
  r.oom_kills = u->oom_kills;
  return r;
}

ListReply Keeper::list(const std::string& after) {
  ListReply reply;
  std::size_t bytes = 0;
  for (auto it = names_.upper_bound(after); it != names_.end(); ++it) {
    const Held& held = held_.at(it->second);
    ListEntry entry{it->first, held.box ? held.box->agent_socket() : "",
                    static_cast<std::uint8_t>(held.box && held.box->frozen() ? 1 : 0)};
    bytes += entry.name.size() + entry.agent_socket.size() + 16;
    if (bytes > kListBytesMax) {
      reply.more = 1;
      break;
    }
    reply.entries.push_back(std::move(entry));
  }
  return reply;
}

Result<std::vector<UniqueFd>> Keeper::sockets(const SocketsRequest& request) {
  GB_TRY(check_sockets(request));
  GB_TRY_ASSIGN(native::Box * box, find_box(request.name));
  return box->make_sockets(request.count, request.ipv6 != 0).context("sockets of " + request.name);
}

}  // namespace glovebox::warden
