// Slots: which ranges of host user ids are taken. A range has one sandbox at a time, from before
// its first process until its last resource is erased.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace glovebox::warden {

class Slots {
 public:
  explicit Slots(std::uint32_t count) : holders_(count, 0) {}

  // The lowest free one: what the host prepared for a slot before is used again.
  std::optional<std::uint32_t> take() {
    for (; lowest_ < holders_.size(); ++lowest_) {
      if (holders_[lowest_] == 0) {
        holders_[lowest_] = 1;
        return lowest_++;
      }
    }
    return std::nullopt;
  }

  // For what a record says. Counted, so that even two records of one slot (which would be our
  // bug) never free it under the other.
  void reserve(std::uint32_t slot) {
    if (slot < holders_.size()) ++holders_[slot];
  }

  void give_back(std::uint32_t slot) {
    if (slot >= holders_.size() || holders_[slot] == 0) return;
    if (--holders_[slot] == 0 && slot < lowest_) lowest_ = slot;
  }

 private:
  std::vector<std::uint16_t> holders_;
  std::uint32_t lowest_ = 0;  // All below are taken.
};

}  // namespace glovebox::warden
