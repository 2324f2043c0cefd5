// SocketStock: unconnected sockets of sandboxes' network namespaces, fetched ahead, so that most
// connections to a port need no question to the warden.
//
// A socket keeps its network namespace alive: drop() what belongs to a sandbox that has ended.

#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/deadline.h"
#include "base/unique_fd.h"
#include "warden/client/dial.h"

namespace glovebox::warden {

class SocketStock {
 public:
  SocketStock(std::size_t total_max, std::size_t each_max)
      : total_max_(total_max), each_max_(each_max) {}

  std::optional<UniqueFd> take(const std::string& sandbox, Family family, Deadline now);
  // Keeps what there is room for and closes the rest. Others' stock gives way, the longest
  // unused first.
  void put(const std::string& sandbox, Family family, std::vector<UniqueFd> sockets, Deadline now);
  void drop(const std::string& sandbox);
  // Drops those that nobody took from since then.
  void drop_unused_since(Deadline then);

  std::size_t size(const std::string& sandbox, Family family) const;
  std::size_t total() const noexcept { return total_; }

 private:
  struct Shelf {
    std::array<std::vector<UniqueFd>, 2> sockets;  // By family.
    Deadline used;
    std::size_t size() const { return sockets[0].size() + sockets[1].size(); }
  };
  void make_room(const std::string& except, std::size_t count);

  const std::size_t total_max_;
  const std::size_t each_max_;  // Of one family.
  std::size_t total_ = 0;
  std::unordered_map<std::string, Shelf> shelves_;
};

}  // namespace glovebox::warden
