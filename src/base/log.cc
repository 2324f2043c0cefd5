#include "base/log.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>

#include "base/text.h"

namespace glovebox::log {
namespace {

// pipe(7): a write of up to PIPE_BUF bytes is never mixed with another, and does not block when
// poll(2) said that the pipe can be written.
constexpr std::size_t kLineMax = 4096;
constexpr std::size_t kTailRoom = 64;  // For the marks of truncation and loss, and the end.

template <class T>
void append_number(std::string& out, T value) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(digits, end);
}

bool is_plain(std::string_view text) {
  if (text.empty()) return false;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       std::string_view("-_./:@+,").find(c) != std::string_view::npos;
    if (!plain) return false;
  }
  return true;
}

void append_value(std::string& out, const Field::Value& value, Form form) {
  if (const auto* text = std::get_if<std::string_view>(&value)) {
    if (form == Form::kConsole && is_plain(*text)) {
      out += *text;
    } else {
      append_json_string(out, *text);
    }
  } else if (const auto* flag = std::get_if<bool>(&value)) {
    out += *flag ? "true" : "false";
  } else if (const auto* i = std::get_if<std::int64_t>(&value)) {
    append_number(out, *i);
  } else if (const auto* u = std::get_if<std::uint64_t>(&value)) {
    append_number(out, *u);
  } else if (const auto* d = std::get_if<double>(&value)) {
    if (std::isfinite(*d)) {
      append_number(out, *d);
    } else {
      out += "null";  // JSON has no infinities.
    }
  }
}

void append_field(std::string& out, const Field& field, Form form) {
  if (form == Form::kJson) {
    out += ',';
    append_json_string(out, field.key());
    out += ':';
  } else {
    out += ' ';
    out += field.key();
    out += '=';
  }
  append_value(out, field.value(), form);
}

// Cut to what surely fits, at a whole character.
std::string_view shorten(std::string_view text) {
  constexpr std::size_t kMax = 600;  // Each byte may take six in JSON.
  if (text.size() <= kMax) return text;
  std::size_t end = kMax;
  while (end > kMax - 4 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

void append_start(std::string& out, Form form, std::int64_t unix_ms, Level level,
                  std::string_view message) {
  if (form == Form::kJson) {
    out += R"({"time":")";
    append_rfc3339(out, unix_ms);
    out += R"(","level":")";
    out += to_string(level);
    out += R"(","message":)";
    append_json_string(out, shorten(message));
    return;
  }
  std::string time;
  append_rfc3339(time, unix_ms);
  out.append(time, 11, 12);
  out += ' ';
  std::string name(to_string(level));
  name.resize(6, ' ');
  out += name;
  std::string quoted;
  append_json_string(quoted, shorten(message));
  out.append(quoted, 1, quoted.size() - 2);
}

}  // namespace

std::string_view to_string(Level level) noexcept {
  switch (level) {
    case Level::kDebug: return "debug";
    case Level::kInfo: return "info";
    case Level::kWarn: return "warn";
    case Level::kError: return "error";
  }
  return "error";
}

std::optional<Level> parse_level(std::string_view text) noexcept {
  for (const Level level : {Level::kDebug, Level::kInfo, Level::kWarn, Level::kError}) {
    if (text == to_string(level)) return level;
  }
  return std::nullopt;
}

std::string format_line(Form form, std::int64_t unix_ms, Level level, std::string_view message,
                        FieldSpan fields, std::uint64_t dropped) {
  std::string out;
  out.reserve(256);
  append_start(out, form, unix_ms, level, message);
  bool truncated = false;
  for (const Field& field : fields) {
    const std::size_t before = out.size();
    append_field(out, field, form);
    if (out.size() <= kLineMax - kTailRoom) continue;
    // Too long: the value is shortened first, and left out when even that is too long.
    out.resize(before);
    truncated = true;
    const auto* text = std::get_if<std::string_view>(&field.value());
    if (text == nullptr) continue;
    append_field(out, Field(field.key(), shorten(*text)), form);
    if (out.size() > kLineMax - kTailRoom) out.resize(before);
  }
  if (truncated) append_field(out, Field("truncated", true), form);
  if (dropped > 0) append_field(out, Field("dropped", dropped), form);
  if (form == Form::kJson) out += '}';
  out += '\n';
  return out;
}

void Logger::write_enabled(Level level, std::string_view message, FieldSpan fields) {
  const int saved_errno = errno;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto unix_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const std::uint64_t dropped = dropped_.load(std::memory_order_relaxed);
  const std::string line = format_line(form_, unix_ms, level, message, fields, dropped);

  pollfd ready{fd_, POLLOUT, 0};
  const bool writable = ::poll(&ready, 1, 0) == 1 && (ready.revents & POLLOUT) != 0;
  if (writable && ::write(fd_, line.data(), line.size()) > 0) {
    dropped_.fetch_sub(dropped, std::memory_order_relaxed);
  } else {
    dropped_.fetch_add(1, std::memory_order_relaxed);
  }
  errno = saved_errno;
}

}  // namespace glovebox::log
