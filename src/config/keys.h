// The table of keys. Private to this folder.

#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/config.h"

namespace glovebox::config {

// A value as it stands in the file.
using Value = std::variant<std::string, std::int64_t, double, bool, std::vector<std::int64_t>>;

// Where a key's value goes; the alternative says of what kind it is.
using TextAt = std::string& (*)(Config&);
using FlagAt = bool& (*)(Config&);
using CountAt = std::uint64_t& (*)(Config&);
using RealAt = double& (*)(Config&);
using SecondsAt = Duration& (*)(Config&);
using NumbersAt = std::vector<std::uint64_t>& (*)(Config&);

struct Bytes {  // A count that also takes "64 KiB".
  CountAt at;
};

struct Key {
  std::string_view name;           // "log.level"
  std::string_view default_value;  // As TOML.
  std::string_view help;           // Markdown, one paragraph.
  std::variant<TextAt, FlagAt, CountAt, Bytes, RealAt, SecondsAt, NumbersAt> at;
  double min = 0;
  double max = std::numeric_limits<double>::max();
  Result<void> (*check)(const std::string& text) = nullptr;  // For texts.
};

std::span<const Key> keys();
const Key* find_key(std::string_view name);
// The known name that is most like it, or empty when none is.
std::string_view nearest_key(std::string_view name);
// "whole number, 1 to 65535"
std::string kind_text(const Key& key);

// kInvalid says what the key takes. Nothing is set then.
Result<void> assign(Config& config, const Key& key, const Value& value);

}  // namespace glovebox::config
