// What the Keeper does when nobody waits: recover, refill, erase, sweep.

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "os/process.h"
#include "os/sys.h"
#include "warden/keeper.h"

namespace glovebox::warden {
namespace {

// 100 ms, 200 ms, … 30 s.
Clock::duration back_off(int failures) {
  using std::chrono::milliseconds;
  return std::min<Clock::duration>(milliseconds(50) * (1 << std::min(failures, 10)),
                                   std::chrono::seconds(30));
}

// Ends exactly that process, also if its cgroup cannot be found any more (a warden that was moved
// to another cgroup looks below that one).
void end_process(const native::BoxIdentity& box) {
  if (box.pid == 0) return;
  const Result<UniqueFd> pidfd = os::pidfd_open(box.pid);
  if (!pidfd) return;
  // Asked after it is held: from here on the number cannot be another's.
  const Result<std::uint64_t> start = os::process_start_time(box.pid);
  if (start && start.value() == box.start_time) {
    (void)os::pidfd_send_signal(pidfd.value().get(), SIGKILL);
  }
}

}  // namespace

bool has_ended(const native::Box& box) {
  pollfd p{box.pidfd(), POLLIN, 0};
  return ::poll(&p, 1, 0) != 0;
}

Result<void> Keeper::recover() {
  GB_TRY_ASSIGN(RecordStore::Loaded loaded, records_.load());
  // Slots first: nothing may take one that a record names.
  for (const Record& r : loaded.records) slots_.reserve(r.box.slot);
  for (Record& r : loaded.records) recover_one(std::move(r));
  for (const RecordStore::Damaged& d : loaded.damaged) {
    // Its instance now has no record, so the sweep below erases it.
    log_.error("a damaged record was moved aside", {{"instance", d.instance}, {"error", d.why}});
  }
  const int unowned = sweep();
  log_.info("recovered", {{"running", running()},
                          {"erasing", erasing_.size()},
                          {"damaged", loaded.damaged.size()},
                          {"unowned", unowned}});
  return {};
}

void Keeper::recover_one(Record record) {
  const std::string instance = record.box.instance;
  const std::uint32_t slot = record.box.slot;
  // A warm sandbox is not worth keeping: it may be of an older agent or configuration.
  if (record.state != RecordState::kRunning) {
    end_process(record.box);
    erase_later(instance, slot, Clock::duration::zero());
    return;
  }
  if (names_.contains(record.name)) {
    log_.error("two records of one name", {{"sandbox", record.name}, {"instance", instance}});
    erase_later(instance, slot, Clock::duration::zero());
    return;
  }
  Result<std::unique_ptr<native::Box>> box = host_.adopt(record.box);
  if (box) {
    const std::string name = record.name;
    Result<void> watched = watch(hold(std::move(record), *std::move(box)));
    if (!watched) log_.error("cannot watch", {{"sandbox", name}, {"error", watched.error()}});
    return;
  }
  if (box.error().code() == Errc::kNotFound) {
    log_.warn("a sandbox ended while no warden ran",
              {{"sandbox", record.name}, {"instance", instance}});
    end_process(record.box);
    erase_later(instance, slot, Clock::duration::zero());
    on_exit_({record.name, "ended while the warden was not running"});
    return;
  }
  // It may well live. It keeps its name and its record until it can be told.
  log_.error("a sandbox could not be taken back",
             {{"sandbox", record.name}, {"instance", instance}, {"error", box.error()}});
  hold(std::move(record), nullptr);
}

int Keeper::sweep() {
  sweep_at_ = after(config_.sweep_every);
  std::vector<std::string> lost;
  for (const auto& [instance, held] : held_) {
    if (!held.box) lost.push_back(instance);
  }
  for (const std::string& instance : lost) {
    Record record = held_.at(instance).record;
    names_.erase(record.name);
    held_.erase(instance);
    recover_one(std::move(record));
  }

  Result<std::vector<std::string>> instances = host_.instances();
  if (!instances) {
    log_.error("cannot list what is on this host", {{"error", instances.error()}});
    return 0;
  }
  std::unordered_set<std::string> owned;
  for (const auto& [instance, held] : held_) owned.insert(instance);
  for (const Erasing& e : erasing_) owned.insert(e.instance);
  int found = 0;
  for (const std::string& instance : *instances) {
    if (owned.contains(instance)) continue;
    ++found;
    log_.warn("resources without an owner", {{"instance", instance}});
    // At once, unlike others: its slot is not known, so it must be gone before the next launch.
    erase_later(instance, std::nullopt, Clock::duration::zero());
    erase_now(erasing_.size() - 1);
  }
  return found;
}

void Keeper::refill() {
  Result<Held*> held = launch("", config_.warm_limits, RecordState::kWarm);
  if (held) {
    warm_.push_back((*held)->record.box.instance);
    return;
  }
  put_off_refill();
  log_.warn("cannot make a warm sandbox",
            {{"failures", refill_failures_}, {"error", held.error()}});
}

void Keeper::put_off_refill() { refill_at_ = after(back_off(++refill_failures_)); }

void Keeper::erase_later(const std::string& instance, std::optional<std::uint32_t> slot,
                         Clock::duration patience) {
  Erasing e;
  e.instance = instance;
  e.slot = slot;
  e.not_before = after(patience);
  erasing_.push_back(std::move(e));
}

void Keeper::erase_when_dead(const std::string& instance, std::uint32_t slot,
                             std::unique_ptr<native::Box> box) {
  if (!box || has_ended(*box)) {
    erase_later(instance, slot, config_.erase_patience);
    return;
  }
  erase_later(instance, slot, config_.death_patience);
  Erasing& e = erasing_.back();
  e.dying = std::move(box);
  Result<Loop::Token> watch =
      loop_.watch(e.dying->pidfd(), EPOLLIN, [this, instance](unsigned) { on_end(instance); });
  if (watch) e.watch = *watch;  // Else it is found dead when its patience is over.
}

void Keeper::on_end(const std::string& instance) {
  for (Erasing& e : erasing_) {
    if (e.instance != instance || !e.dying) continue;
    loop_.unwatch(std::exchange(e.watch, 0));
    e.dying.reset();
    e.not_before = after(config_.erase_patience);
  }
}

std::size_t Keeper::dying() const noexcept {
  return static_cast<std::size_t>(std::count_if(
      erasing_.begin(), erasing_.end(), [](const Erasing& e) { return e.dying != nullptr; }));
}

bool Keeper::erase_now(std::size_t index) {
  Erasing e = std::move(erasing_[index]);
  erasing_.erase(erasing_.begin() + static_cast<std::ptrdiff_t>(index));
  loop_.unwatch(std::exchange(e.watch, 0));
  e.dying.reset();
  Result<void> done = host_.erase(e.instance);
  if (done) done = records_.remove(e.instance);
  if (!done) {
    e.not_before = after(back_off(++e.failures));
    log_.error("cannot erase a sandbox",
               {{"instance", e.instance}, {"failures", e.failures}, {"error", done.error()}});
    erasing_.push_back(std::move(e));
    return false;
  }
  if (e.slot) slots_.give_back(*e.slot);
  return true;
}

bool Keeper::erase_due(Deadline now) {
  const auto it = std::find_if(erasing_.begin(), erasing_.end(),
                               [now](const Erasing& e) { return e.not_before <= now; });
  if (it == erasing_.end()) return false;
  erase_now(static_cast<std::size_t>(it - erasing_.begin()));
  return true;
}

bool Keeper::step() {
  const Deadline now = Clock::now();
  if (behind() && erase_due(now)) return true;
  if (warm_.size() < config_.pool_size && now >= refill_at_) {
    refill();
    return true;
  }
  if (erase_due(now)) return true;
  if (now >= sweep_at_) {
    sweep();
    return true;
  }
  return false;
}

Deadline Keeper::next_due() const {
  Deadline due = sweep_at_;
  if (warm_.size() < config_.pool_size) due = std::min(due, refill_at_);
  for (const Erasing& e : erasing_) due = std::min(due, e.not_before);
  return due;
}

void Keeper::shut_down(Deadline deadline) {
  while (!warm_.empty()) {
    const std::string instance = warm_.front();
    kill(held_.at(instance));
    retire(instance);
  }
  for (std::size_t tries = erasing_.size(); tries > 0 && Clock::now() < deadline; --tries) {
    erase_now(0);
  }
}

}  // namespace glovebox::warden
