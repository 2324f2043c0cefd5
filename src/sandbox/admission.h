// Admission: the queue before the node. A create needs a place (it and its memory count until the
// sandbox is gone) and a worker (until it is made). Who came first goes first, also when a later
// and smaller one would fit: otherwise a big one could wait for ever.

#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <utility>

#include "async/task.h"
#include "async/time_source.h"
#include "base/result.h"

namespace glovebox::sandbox {

// Single-threaded. Must outlive what it gives out and its waiters.
class Admission {
 public:
  struct Config {
    std::uint32_t workers = 1;
    std::uint32_t places = 1;
    std::uint64_t memory_bytes = 0;  // 0: not counted.
    std::uint32_t queue_max = 1;
  };

  // Gives one worker back when destroyed.
  class Worker {
   public:
    Worker() = default;
    Worker(Worker&& other) noexcept : from_(std::exchange(other.from_, nullptr)) {}
    Worker& operator=(Worker&& other) noexcept;
    ~Worker() { release(); }
    void release();

   private:
    friend class Admission;
    explicit Worker(Admission* from) : from_(from) {}
    Admission* from_ = nullptr;
  };

  // Gives one place and its memory back when destroyed.
  class Place {
   public:
    Place() = default;
    Place(Place&& other) noexcept
        : from_(std::exchange(other.from_, nullptr)), memory_bytes_(other.memory_bytes_) {}
    Place& operator=(Place&& other) noexcept;
    ~Place() { release(); }
    void release();

   private:
    friend class Admission;
    Place(Admission* from, std::uint64_t memory_bytes) : from_(from), memory_bytes_(memory_bytes) {}
    Admission* from_ = nullptr;
    std::uint64_t memory_bytes_ = 0;
  };

  struct Grant {
    Place place;
    Worker worker;
  };

  // Lets somebody else end a wait. Share it with the one who waits.
  class Ticket {
   public:
    bool waiting() const noexcept { return alarm_ != nullptr; }
    void cancel();

   private:
    friend class Admission;
    async::Alarm* alarm_ = nullptr;
    bool cancelled_ = false;
  };

  Admission(async::TimeSource& time, Config config) : time_(time), config_(config) {}
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // kExhausted when the queue is full or the deadline passes, naming the limit; kUnavailable when
  // the ticket is cancelled.
  Task<Result<Grant>> enter(std::uint64_t memory_bytes, Deadline deadline,
                            std::shared_ptr<Ticket> ticket);
  // A place for a sandbox that is there already, whatever the limit says.
  Place adopt(std::uint64_t memory_bytes);
  // Ends every wait as if cancelled.
  void cancel_all();

  std::uint32_t queue_length() const { return static_cast<std::uint32_t>(queue_.size()); }
  std::uint32_t workers_busy() const { return workers_busy_; }
  std::uint32_t places_used() const { return places_used_; }
  std::uint64_t memory_used() const { return memory_used_; }
  const Config& config() const { return config_; }

 private:
  struct Waiter;
  bool fits(std::uint64_t memory_bytes) const;
  Grant grant(std::uint64_t memory_bytes);
  void serve();  // Lets in from the head of the queue whoever fits.
  Error full(std::string_view why) const;

  async::TimeSource& time_;
  const Config config_;
  std::list<Waiter*> queue_;
  std::uint32_t workers_busy_ = 0;
  std::uint32_t places_used_ = 0;
  std::uint64_t memory_used_ = 0;
};

}  // namespace glovebox::sandbox
