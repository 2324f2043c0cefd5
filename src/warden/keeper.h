// Keeper: the sandboxes that the warden holds, and what it owes the host for each.
//
// A sandbox goes preparing -> warm -> running -> ending -> gone, or starts at running when no
// warm one fits. Its record is on disk before its first resource is made and is removed after its
// last one is erased; so is its slot. Whatever state a crash leaves, recover() gets from there to
// either "held" or "gone".
//
// Calls run in the caller's thread and block for as long as the host does (milliseconds). What
// nobody waits for, filling the pool and erasing, is done one piece at a time by step(), which
// the caller runs when no request is waiting. A host's calls are not thread-safe, and one core
// more would not help: launches and erases contend for the same kernel locks.

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/deadline.h"
#include "base/log.h"
#include "base/result.h"
#include "runtime/native/host.h"
#include "warden/loop.h"
#include "warden/protocol/messages.h"
#include "warden/record_store.h"
#include "warden/slots.h"

namespace glovebox::warden {

struct KeeperConfig {
  std::uint32_t slots = 4096;          // As in native::HostConfig.
  std::uint32_t sandboxes_max = 2000;  // Clients' sandboxes; the pool comes on top.
  std::uint32_t pool_size = 4;
  native::Limits warm_limits;  // A request must ask for this disk size to get a warm one.
  Clock::duration sweep_every = std::chrono::seconds(30);
  // An erase waits this long for a pause between requests: a create often follows a destroy.
  Clock::duration erase_patience = std::chrono::milliseconds(5);
  // What was killed is erased when it is seen to be dead, so that the erase need not wait for it;
  // after this long it is tried anyway.
  Clock::duration death_patience = std::chrono::seconds(10);
  // With more to erase than this, it is done between requests too.
  std::size_t erasing_max = 32;
};

// Asks the kernel, as the loop may not have seen it yet.
bool has_ended(const native::Box& box);

class Keeper {
 public:
  using ExitSink = std::function<void(ExitedEvent)>;

  // Borrows all of them.
  Keeper(const KeeperConfig& config, native::Host& host, RecordStore& records, Loop& loop,
         log::Logger& log, ExitSink on_exit);
  ~Keeper();  // Leaves every sandbox running.

  // Once, before anything else: takes back what lives, begins to erase what does not, and what
  // has no owner. Sandboxes that died meanwhile are told to the sink.
  Result<void> recover();

  Result<CreateReply> create(const CreateRequest& request);
  Result<void> destroy(const std::string& name);
  Result<void> freeze(const std::string& name);
  Result<void> thaw(const std::string& name);
  Result<UsageReply> usage(const std::string& name);
  // The page after `after`; fits into one message.
  ListReply list(const std::string& after);
  Result<std::vector<UniqueFd>> sockets(const SocketsRequest& request);

  // Does the most urgent piece of background work that is due. False when there was none.
  bool step();
  // When step() has something to do next.
  Deadline next_due() const;
  // True when background work must not wait for a pause any longer.
  bool behind() const { return erasing_.size() > config_.erasing_max; }

  // Erases what has no owner on this host. Returns how much it found.
  int sweep();
  // Erases warm sandboxes and what was being erased, until the deadline; leaves the rest running.
  void shut_down(Deadline deadline);

  std::size_t warm() const noexcept { return warm_.size(); }
  std::size_t running() const noexcept { return names_.size(); }
  std::size_t erasing() const noexcept { return erasing_.size(); }
  std::size_t dying() const noexcept;  // Those of erasing() that were killed and are not yet dead.

 private:
  struct Held {
    Record record;
    std::unique_ptr<native::Box> box;  // Null when adoption failed for a passing reason.
    Loop::Token watch = 0;
    Deadline since;
  };
  struct Erasing {
    std::string instance;
    std::optional<std::uint32_t> slot;  // Unknown for what was found without a record.
    Deadline not_before;
    int failures = 0;
    std::unique_ptr<native::Box> dying;  // While its death is awaited.
    Loop::Token watch = 0;
  };

  Result<Held*> find(const std::string& name);
  Result<native::Box*> find_box(const std::string& name);
  Held& hold(Record record, std::unique_ptr<native::Box> box);
  Result<void> watch(Held& held);

  std::optional<CreateReply> claim(const CreateRequest& request, const native::Limits& limits);
  Result<Held*> launch(const std::string& name, const native::Limits& limits, RecordState state);
  Result<std::uint32_t> take_slot(RecordState for_state);
  void refill();
  void put_off_refill();

  void recover_one(Record record);
  void on_death(const std::string& instance);
  void kill(Held& held);
  void retire(const std::string& instance);
  void erase_later(const std::string& instance, std::optional<std::uint32_t> slot,
                   Clock::duration patience);
  void erase_when_dead(const std::string& instance, std::uint32_t slot,
                       std::unique_ptr<native::Box> box);
  void on_end(const std::string& instance);
  bool erase_now(std::size_t index);
  bool erase_due(Deadline now);

  const KeeperConfig config_;
  native::Host& host_;
  RecordStore& records_;
  Loop& loop_;
  log::Logger& log_;
  ExitSink on_exit_;

  Slots slots_;
  std::unordered_map<std::string, Held> held_;  // By instance.
  std::map<std::string, std::string> names_;    // Name to instance. Ordered: lists are paged.
  std::deque<std::string> warm_;                // Instances, oldest first.
  std::deque<Erasing> erasing_;
  Deadline refill_at_{};
  int refill_failures_ = 0;
  Deadline sweep_at_;
};

}  // namespace glovebox::warden
