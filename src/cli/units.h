// The small notations of the command line: durations, sizes, counts, KEY=VALUE, signals; and back.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace glovebox::cli {

// "30", "30s", "250ms", "5m", "1h30m", "2d": seconds. Refuses nothing, negatives and over 10 years.
Result<double> parse_duration(std::string_view text);

// "512", "512k", "512m", "1.5g", "2GiB", "1t": bytes, by powers of 1024 whatever the spelling.
Result<std::uint64_t> parse_size(std::string_view text);

// "0.5", "2": cores, over 0 and at most 1024.
Result<double> parse_cpus(std::string_view text);

// "KEY=VALUE"; the value may be empty and hold further '='. `what` is for the error: "label".
Result<std::pair<std::string, std::string>> parse_key_value(std::string_view text,
                                                            std::string_view what);

// "TERM", "SIGTERM", "sigterm", "15": the name in full, "SIGTERM", or the number as text.
Result<std::string> parse_signal(std::string_view text);
// "SIGKILL" for 9; "signal 42" for one without a name.
std::string signal_name(int number);

// "850ms", "12s", "4m", "3h", "2d": the largest unit, rounded down. Below zero is "0s".
std::string format_duration(double seconds);
// "0B", "512B", "1.5K", "20M", "3.2G": three digits at most.
std::string format_bytes(std::uint64_t bytes);

}  // namespace glovebox::cli
