// Upstreams: what is kept between requests for each destination in a sandbox: idle connections, and
// what is the same in every request to it.

#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/deadline.h"
#include "base/strong_id.h"
#include "net/relay.h"

namespace glovebox::api {

struct Upstream {
  explicit Upstream(std::size_t idle_max, std::chrono::seconds age_max) : pool(idle_max, age_max) {}
  net::UpstreamPool pool;
  std::string default_env;  // Of an agent: the header's value, once it was made.
  bool has_default_env = false;
};

struct UpstreamLimits {
  std::size_t destinations_max = 1024;  // The least recently used goes when one more comes.
  std::size_t idle_max = 64;            // Connections of one destination.
  std::chrono::seconds age_max{30};     // Of an idle connection.
  std::chrono::seconds unused_max{60};  // Of a destination.
};

class Upstreams {
 public:
  explicit Upstreams(UpstreamLimits limits) : limits_(limits) {}

  // Port 0 is the agent. Hold on to what you get for as long as you use it: it may be dropped here.
  std::shared_ptr<Upstream> get(const SandboxId& id, std::uint16_t port);
  // Closes the idle connections to one sandbox, which has ended.
  void drop(const SandboxId& id);
  void drop_unused(Deadline now);

  std::size_t size() const noexcept { return by_use_.size(); }

 private:
  struct Entry {
    SandboxId id;
    std::uint16_t port;
    std::shared_ptr<Upstream> upstream;
    Deadline used{};
  };
  struct Key {
    std::string_view id;  // Of the entry.
    std::uint16_t port;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept {
      return std::hash<std::string_view>()(key.id) * 31 + key.port;
    }
  };
  using Entries = std::list<Entry>;
  void erase(Entries::iterator it);

  UpstreamLimits limits_;
  Entries by_use_;  // Most recent first.
  std::unordered_map<Key, Entries::iterator, KeyHash> by_key_;
};

}  // namespace glovebox::api
