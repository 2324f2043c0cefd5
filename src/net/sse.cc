#include "net/sse.h"

namespace glovebox::net {
namespace {

constexpr std::size_t kEventBytesMax = 4 << 20;

// A field that is one line by nature: a line break in it would start another field.
void append_field(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ");
  for (const char c : value) {
    if (c != '\r' && c != '\n' && c != '\0') out += c;
  }
  out += '\n';
}

}  // namespace

std::string format_sse(const SseEvent& event) {
  std::string out;
  out.reserve(event.data.size() + event.event.size() + event.id.size() + 32);
  if (!event.event.empty()) append_field(out, "event", event.event);
  if (!event.id.empty()) append_field(out, "id", event.id);
  std::string_view rest = event.data;
  for (bool more = true; more;) {
    const std::size_t end = rest.find_first_of("\r\n");
    more = end != std::string_view::npos;
    out.append("data: ").append(rest.substr(0, end)).append("\n");
    if (!more) break;
    const bool crlf = rest.substr(end, 2) == "\r\n";
    rest.remove_prefix(end + (crlf ? 2 : 1));
  }
  out += '\n';
  return out;
}

std::string_view sse_heartbeat() noexcept { return ":\n\n"; }

void SseParser::end_line(std::vector<SseEvent>& out) {
  std::string_view line = line_;
  if (first_line_) {
    first_line_ = false;
    if (line.substr(0, 3) == "\xEF\xBB\xBF") line.remove_prefix(3);
  }
  if (line.empty()) {
    if (has_data_) {
      event_.data.pop_back();  // Each data line appended its own line feed.
      event_.id = last_id_;
      out.push_back(std::move(event_));
    }
    event_ = SseEvent{};
    has_data_ = false;
  } else if (line.front() != ':') {
    const std::size_t colon = line.find(':');
    const std::string_view name = line.substr(0, colon);
    std::string_view value;
    if (colon != std::string_view::npos) value = line.substr(colon + 1);
    if (value.substr(0, 1) == " ") value.remove_prefix(1);
    take_field(name, value);
  }
  line_.clear();
}

void SseParser::take_field(std::string_view name, std::string_view value) {
  if (name == "event") {
    event_.event = value;
  } else if (name == "id") {
    if (value.find('\0') == std::string_view::npos) last_id_ = value;
  } else if (name == "data") {
    has_data_ = true;
    event_.data.append(value).append("\n");
  }
}

std::vector<SseEvent> SseParser::feed(std::string_view bytes) {
  std::vector<SseEvent> out;
  while (!bytes.empty() && !failed_) {
    if (skip_lf_ && bytes.front() == '\n') bytes.remove_prefix(1);
    skip_lf_ = false;
    const std::size_t end = bytes.find_first_of("\r\n");
    line_.append(bytes.substr(0, end));
    if (line_.size() + event_.data.size() > kEventBytesMax) failed_ = true;
    if (failed_ || end == std::string_view::npos) break;
    skip_lf_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    end_line(out);
  }
  if (failed_) line_ = std::string();
  return out;
}

}  // namespace glovebox::net
