#include "api/common/upstreams.h"

namespace glovebox::api {

std::shared_ptr<Upstream> Upstreams::get(const SandboxId& id, std::uint16_t port) {
  const auto found = by_key_.find(Key{id.str(), port});
  if (found != by_key_.end()) {
    by_use_.splice(by_use_.begin(), by_use_, found->second);
  } else {
    if (by_use_.size() >= limits_.destinations_max) erase(std::prev(by_use_.end()));
    by_use_.push_front({id, port, std::make_shared<Upstream>(limits_.idle_max, limits_.age_max)});
    by_key_.emplace(Key{by_use_.front().id.str(), port}, by_use_.begin());
  }
  by_use_.front().used = Clock::now();
  return by_use_.front().upstream;
}

void Upstreams::erase(Entries::iterator it) {
  by_key_.erase(Key{it->id.str(), it->port});
  by_use_.erase(it);
}

void Upstreams::drop(const SandboxId& id) {
  for (auto it = by_use_.begin(); it != by_use_.end();) {
    const auto here = it++;
    if (here->id == id) erase(here);
  }
}

void Upstreams::drop_unused(Deadline now) {
  while (!by_use_.empty() && now - by_use_.back().used > limits_.unused_max) {
    erase(std::prev(by_use_.end()));
  }
}

}  // namespace glovebox::api
