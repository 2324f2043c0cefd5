// Logger: one line an event, as JSON for machines or as text for a terminal.
//
//   log.info("sandbox ended", {{"sandbox", id.str()}, {"after_ms", ms}});
//
// Pass a Logger& to what needs one; there is no global. Safe from any thread. A line is written
// by one write(2) of at most 4 KiB, so lines never mix. Logging never blocks: when the reader of
// stderr is stuck the line is dropped, and the next line that gets out says how many were.
// Values are hostile: control characters, escape sequences and broken UTF-8 come out escaped.

#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/error.h"
#include "base/redacted.h"

namespace glovebox::log {

enum class Level : std::uint8_t { kDebug, kInfo, kWarn, kError };
enum class Form : std::uint8_t { kJson, kConsole };

std::string_view to_string(Level level) noexcept;
std::optional<Level> parse_level(std::string_view text) noexcept;  // "debug" … "error"

// A key and its value. Borrows both: build it in the call.
class Field {
 public:
  // NOLINTBEGIN(google-explicit-constructor)
  Field(std::string_view k, std::string_view v) : key_(k), value_(v) {}
  Field(std::string_view k, const char* v) : key_(k), value_(std::string_view(v)) {}
  Field(std::string_view k, const std::string& v) : key_(k), value_(std::string_view(v)) {}
  Field(std::string_view k, bool v) : key_(k), value_(v) {}
  template <std::signed_integral T>
  Field(std::string_view k, T v) : key_(k), value_(static_cast<std::int64_t>(v)) {}
  template <std::unsigned_integral T>
    requires(!std::same_as<T, bool>)
  Field(std::string_view k, T v) : key_(k), value_(static_cast<std::uint64_t>(v)) {}
  Field(std::string_view k, double v) : key_(k), value_(v) {}
  Field(std::string_view k, const Redacted&) : key_(k), value_(std::string_view("[redacted]")) {}
  Field(std::string_view k, const Error& e) : key_(k), value_(std::string_view(e.text())) {}
  // NOLINTEND(google-explicit-constructor)

  std::string_view key() const noexcept { return key_; }
  using Value = std::variant<std::string_view, bool, std::int64_t, std::uint64_t, double>;
  const Value& value() const noexcept { return value_; }

 private:
  std::string_view key_;
  Value value_;
};

using Fields = std::initializer_list<Field>;
using FieldSpan = std::span<const Field>;

class Logger {
 public:
  // Borrows `fd`, which must stay open.
  Logger(int fd, Level level, Form form) : fd_(fd), form_(form), level_(level) {}
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  bool enabled(Level level) const noexcept {
    return level >= level_.load(std::memory_order_relaxed);
  }
  void set_level(Level level) noexcept { level_.store(level, std::memory_order_relaxed); }
  Level level() const noexcept { return level_.load(std::memory_order_relaxed); }

  // `message` is a fixed phrase; what varies goes into fields.
  void write(Level level, std::string_view message, FieldSpan fields) {
    if (enabled(level)) write_enabled(level, message, fields);
  }
  void write(Level level, std::string_view message, Fields fields = {}) {
    write(level, message, FieldSpan(fields.begin(), fields.size()));
  }
  void debug(std::string_view message, Fields f = {}) { write(Level::kDebug, message, f); }
  void info(std::string_view message, Fields f = {}) { write(Level::kInfo, message, f); }
  void warn(std::string_view message, Fields f = {}) { write(Level::kWarn, message, f); }
  void error(std::string_view message, Fields f = {}) { write(Level::kError, message, f); }

 private:
  void write_enabled(Level level, std::string_view message, FieldSpan fields);

  const int fd_;
  const Form form_;
  std::atomic<Level> level_;
  std::atomic<std::uint64_t> dropped_{0};
};

// One line with its newline, as a Logger would write it. For tests.
std::string format_line(Form form, std::int64_t unix_ms, Level level, std::string_view message,
                        FieldSpan fields, std::uint64_t dropped);

}  // namespace glovebox::log
