#include "warden/client/stock.h"

#include <algorithm>

namespace glovebox::warden {

std::optional<UniqueFd> SocketStock::take(const std::string& sandbox, Family family, Deadline now) {
  const auto it = shelves_.find(sandbox);
  if (it == shelves_.end()) return std::nullopt;
  it->second.used = now;
  std::vector<UniqueFd>& sockets = it->second.sockets[static_cast<std::size_t>(family)];
  if (sockets.empty()) return std::nullopt;
  UniqueFd fd = std::move(sockets.back());
  sockets.pop_back();
  --total_;
  return fd;
}

void SocketStock::put(const std::string& sandbox, Family family, std::vector<UniqueFd> sockets,
                      Deadline now) {
  make_room(sandbox, sockets.size());
  Shelf& shelf = shelves_[sandbox];
  shelf.used = now;
  std::vector<UniqueFd>& into = shelf.sockets[static_cast<std::size_t>(family)];
  for (UniqueFd& fd : sockets) {
    if (into.size() >= each_max_ || total_ >= total_max_) return;
    into.push_back(std::move(fd));
    ++total_;
  }
}

void SocketStock::make_room(const std::string& except, std::size_t count) {
  while (total_ + count > total_max_) {
    const auto oldest =
        std::min_element(shelves_.begin(), shelves_.end(), [&](const auto& a, const auto& b) {
          const bool a_stays = a.first == except || a.second.size() == 0;
          const bool b_stays = b.first == except || b.second.size() == 0;
          if (a_stays != b_stays) return b_stays;
          return a.second.used < b.second.used;
        });
    if (oldest == shelves_.end() || oldest->first == except || oldest->second.size() == 0) return;
    total_ -= oldest->second.size();
    shelves_.erase(oldest);
  }
}

void SocketStock::drop(const std::string& sandbox) {
  const auto it = shelves_.find(sandbox);
  if (it == shelves_.end()) return;
  total_ -= it->second.size();
  shelves_.erase(it);
}

void SocketStock::drop_unused_since(Deadline then) {
  std::erase_if(shelves_, [&](const auto& entry) {
    if (entry.second.used >= then) return false;
    total_ -= entry.second.size();
    return true;
  });
}

std::size_t SocketStock::size(const std::string& sandbox, Family family) const {
  const auto it = shelves_.find(sandbox);
  return it == shelves_.end() ? 0 : it->second.sockets[static_cast<std::size_t>(family)].size();
}

}  // namespace glovebox::warden
