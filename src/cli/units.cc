#include "cli/units.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <csignal>
#include <optional>

namespace glovebox::cli {
namespace {

Error invalid(std::string_view what, std::string_view text, std::string_view expected) {
  return Error(Errc::kInvalid, std::string("'")
                                   .append(text)
                                   .append("' is not ")
                                   .append(what)
                                   .append(" (")
                                   .append(expected)
                                   .append(")"));
}

// Digits with at most one point at the front of `text`, which is moved past them. No signs,
// exponents, "inf" or hexadecimal, all of which from_chars or strtod would take.
std::optional<double> take_decimal(std::string_view& text) {
  std::size_t length = 0;
  bool digit = false;
  bool point = false;
  for (; length < text.size(); ++length) {
    const char c = text[length];
    if (c >= '0' && c <= '9') {
      digit = true;
    } else if (c == '.' && !point) {
      point = true;
    } else {
      break;
    }
  }
  if (!digit || length > 40) return std::nullopt;
  double value = 0;
  const char* const begin = text.data();
  const auto [end, error] = std::from_chars(begin, begin + length, value);
  if (error != std::errc() || end != begin + length) return std::nullopt;
  text.remove_prefix(length);
  return value;
}

std::string_view take_letters(std::string_view& text) {
  std::size_t length = 0;
  while (length < text.size() && std::isalpha(static_cast<unsigned char>(text[length])) != 0) {
    ++length;
  }
  const std::string_view letters = text.substr(0, length);
  text.remove_prefix(length);
  return letters;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

struct Unit {
  std::string_view name;
  double seconds;
};
constexpr Unit kDurationUnits[] = {{"ms", 0.001}, {"s", 1},    {"sec", 1},  {"m", 60},
                                   {"min", 60},   {"h", 3600}, {"d", 86400}};

constexpr std::string_view kDurationForm = "like 30s, 5m, 2h or 1h30m";
constexpr std::string_view kSizeForm = "like 512m or 2g";

struct Signal {
  std::string_view name;
  int number;
};
constexpr Signal kSignals[] = {
    {"HUP", SIGHUP},   {"INT", SIGINT},    {"QUIT", SIGQUIT}, {"ILL", SIGILL},   {"TRAP", SIGTRAP},
    {"ABRT", SIGABRT}, {"BUS", SIGBUS},    {"FPE", SIGFPE},   {"KILL", SIGKILL}, {"USR1", SIGUSR1},
    {"SEGV", SIGSEGV}, {"USR2", SIGUSR2},  {"PIPE", SIGPIPE}, {"ALRM", SIGALRM}, {"TERM", SIGTERM},
    {"CHLD", SIGCHLD}, {"CONT", SIGCONT},  {"STOP", SIGSTOP}, {"TSTP", SIGTSTP}, {"TTIN", SIGTTIN},
    {"TTOU", SIGTTOU}, {"WINCH", SIGWINCH}};

}  // namespace

Result<double> parse_duration(std::string_view text) {
  constexpr double kMax = 10.0 * 365 * 86400;
  std::string_view rest = text;
  double total = 0;
  bool first = true;
  while (first || !rest.empty()) {
    const std::optional<double> number = take_decimal(rest);
    if (!number) return invalid("a duration", text, kDurationForm);
    const std::string unit = lower(take_letters(rest));
    // A bare number is seconds, but only alone: "1h30" could be minutes or seconds.
    if (unit.empty() && !(first && rest.empty())) {
      return invalid("a duration", text, kDurationForm);
    }
    const Unit* found = std::find_if(std::begin(kDurationUnits), std::end(kDurationUnits),
                                     [&](const Unit& u) { return u.name == unit; });
    if (!unit.empty() && found == std::end(kDurationUnits)) {
      return invalid("a duration", text, kDurationForm);
    }
    total += *number * (unit.empty() ? 1 : found->seconds);
    first = false;
  }
  if (!(total > 0) || total > kMax) {
    return invalid("a duration", text, "more than nothing, at most ten years");
  }
  return total;
}

Result<std::uint64_t> parse_size(std::string_view text) {
  std::string_view rest = text;
  const std::optional<double> number = take_decimal(rest);
  if (!number) return invalid("a size", text, kSizeForm);
  std::string unit = lower(rest);
  if (unit.ends_with("ib")) {
    unit.resize(unit.size() - 2);
  } else if (unit.size() == 2 && unit.ends_with("b")) {
    unit.resize(1);
  } else if (unit == "b") {
    unit.clear();
  }
  constexpr std::string_view kPrefixes = "kmgt";
  double factor = 1;
  if (!unit.empty()) {
    const auto at = unit.size() == 1 ? kPrefixes.find(unit) : std::string_view::npos;
    if (at == std::string_view::npos) return invalid("a size", text, kSizeForm);
    factor = std::pow(1024.0, static_cast<double>(at + 1));
  }
  const double bytes = std::floor(*number * factor);
  if (bytes > 9e15) return invalid("a size", text, "at most 8192t");
  return static_cast<std::uint64_t>(bytes);
}

Result<double> parse_cpus(std::string_view text) {
  std::string_view rest = text;
  const std::optional<double> number = take_decimal(rest);
  if (!number || !rest.empty() || !(*number > 0) || *number > 1024) {
    return invalid("a number of CPUs", text, "like 0.5 or 2");
  }
  return *number;
}

Result<std::pair<std::string, std::string>> parse_key_value(std::string_view text,
                                                            std::string_view what) {
  const std::size_t at = text.find('=');
  if (at == std::string_view::npos || at == 0) {
    return invalid(std::string("a ").append(what), text, "expected KEY=VALUE");
  }
  return std::pair(std::string(text.substr(0, at)), std::string(text.substr(at + 1)));
}

Result<std::string> parse_signal(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) {
    if (number >= 1 && number <= 64) return std::to_string(number);
    return invalid("a signal", text, "1 to 64");
  }
  std::string name = lower(text);
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (name.starts_with("SIG")) name.erase(0, 3);
  for (const Signal& s : kSignals) {
    if (s.name == name) return "SIG" + name;
  }
  return invalid("a signal", text, "like TERM, KILL or 15");
}

std::string signal_name(int number) {
  for (const Signal& s : kSignals) {
    if (s.number == number) return std::string("SIG").append(s.name);
  }
  return "signal " + std::to_string(number);
}

std::string format_duration(double seconds) {
  if (!(seconds > 0)) return "0s";
  if (seconds < 1) return std::to_string(static_cast<int>(seconds * 1000)) + "ms";
  constexpr Unit kUnits[] = {{"d", 86400}, {"h", 3600}, {"m", 60}, {"s", 1}};
  for (const Unit& u : kUnits) {
    if (seconds >= u.seconds) {
      return std::to_string(static_cast<long long>(seconds / u.seconds)).append(u.name);
    }
  }
  return "0s";
}

std::string format_bytes(std::uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + "B";
  constexpr std::string_view kUnits = "KMGTPE";
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (value /= 1024; value >= 999.5 && unit + 1 < kUnits.size(); value /= 1024) ++unit;
  std::array<char, 32> text{};
  const int decimals = value < 9.95 ? 1 : 0;
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value,
                                          std::chars_format::fixed, decimals);
  std::string out(text.data(), error == std::errc() ? end : text.data());
  if (out.ends_with(".0")) out.resize(out.size() - 2);
  return out += kUnits[unit];
}

}  // namespace glovebox::cli
