#include "sandbox/admission.h"

#include <cassert>
#include <optional>
#include <string>

#include "async/coro.h"

namespace glovebox::sandbox {

// Lives in the frame of enter(), so it leaves the queue even when that frame is destroyed.
struct Admission::Waiter {
  Admission& from;
  std::uint64_t memory_bytes;
  std::shared_ptr<Ticket> ticket;
  std::unique_ptr<async::Alarm> alarm;
  std::optional<Grant> granted;
  std::list<Waiter*>::iterator at;

  Waiter(Admission& a, std::uint64_t memory, std::shared_ptr<Ticket> t)
      : from(a), memory_bytes(memory), ticket(std::move(t)), alarm(a.time_.make_alarm()) {
    at = from.queue_.insert(from.queue_.end(), this);
    ticket->alarm_ = alarm.get();
  }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  ~Waiter() { leave(); }
  void leave() {
    if (ticket->alarm_ == nullptr) return;
    from.queue_.erase(at);
    ticket->alarm_ = nullptr;
  }
};

void Admission::Ticket::cancel() {
  cancelled_ = true;
  if (alarm_ != nullptr) alarm_->wake();
}

Admission::Worker& Admission::Worker::operator=(Worker&& other) noexcept {
  release();
  from_ = std::exchange(other.from_, nullptr);
  return *this;
}

void Admission::Worker::release() {
  Admission* const from = std::exchange(from_, nullptr);
  if (from == nullptr) return;
  assert(from->workers_busy_ > 0);
  --from->workers_busy_;
  from->serve();
}

Admission::Place& Admission::Place::operator=(Place&& other) noexcept {
  release();
  from_ = std::exchange(other.from_, nullptr);
  memory_bytes_ = other.memory_bytes_;
  return *this;
}

void Admission::Place::release() {
  Admission* const from = std::exchange(from_, nullptr);
  if (from == nullptr) return;
  assert(from->places_used_ > 0 && from->memory_used_ >= memory_bytes_);
  --from->places_used_;
  from->memory_used_ -= memory_bytes_;
  from->serve();
}

bool Admission::fits(std::uint64_t memory_bytes) const {
  const bool memory =
      config_.memory_bytes == 0 ||
      (memory_used_ <= config_.memory_bytes && memory_bytes <= config_.memory_bytes - memory_used_);
  return workers_busy_ < config_.workers && places_used_ < config_.places && memory;
}

Admission::Grant Admission::grant(std::uint64_t memory_bytes) {
  ++workers_busy_;
  return Grant{adopt(memory_bytes), Worker(this)};
}

Admission::Place Admission::adopt(std::uint64_t memory_bytes) {
  ++places_used_;
  memory_used_ += memory_bytes;
  return Place(this, memory_bytes);
}

void Admission::serve() {
  while (!queue_.empty() && fits(queue_.front()->memory_bytes)) {
    Waiter& first = *queue_.front();
    first.granted = grant(first.memory_bytes);
    first.leave();
    first.alarm->wake();
  }
}

void Admission::cancel_all() {
  for (Waiter* waiter : queue_) waiter->ticket->cancel();
}

Error Admission::full(std::string_view why) const {
  std::string text(why);
  if (places_used_ >= config_.places) {
    text += ": " + std::to_string(places_used_) + " of " + std::to_string(config_.places) +
            " sandboxes are in use";
  } else if (workers_busy_ >= config_.workers) {
    text += ": " + std::to_string(workers_busy_) + " are being made and " +
            std::to_string(queue_.size()) + " wait";
  } else {
    text += ": " + std::to_string(memory_used_) + " of " + std::to_string(config_.memory_bytes) +
            " bytes of memory are promised to sandboxes";
  }
  return Error(Errc::kExhausted, std::move(text));
}

Task<Result<Admission::Grant>> Admission::enter(std::uint64_t memory_bytes, Deadline deadline,
                                                std::shared_ptr<Ticket> ticket) {
  if (ticket->cancelled_) co_return Error(Errc::kUnavailable, "nobody waits for it");
  if (queue_.empty() && fits(memory_bytes)) co_return grant(memory_bytes);
  if (queue_.size() >= config_.queue_max) co_return full("the queue for a sandbox is full");

  Waiter waiter(*this, memory_bytes, std::move(ticket));
  co_await waiter.alarm->wait_until(deadline);
  // The turn may have come in the same moment as the deadline: then it counts.
  if (waiter.granted) co_return std::move(*waiter.granted);
  const bool cancelled = waiter.ticket->cancelled_;
  const Error late = full("no place for a sandbox came free in time");
  waiter.leave();
  serve();  // Whoever was behind may fit where this one did not.
  if (cancelled) co_return Error(Errc::kUnavailable, "nobody waits for it");
  co_return late;
}

}  // namespace glovebox::sandbox
