// Server-sent events (WHATWG HTML, section 9.2): one formatter and one incremental parser.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace glovebox::net {

struct SseEvent {
  std::string event;  // Empty means "message".
  std::string data;
  std::string id;
};

// "event: …\nid: …\ndata: …\n\n"; a newline in `data` becomes a further data line.
std::string format_sse(const SseEvent& event);
// A comment line, which every client ignores: keeps idle proxies from hanging up.
std::string_view sse_heartbeat() noexcept;  // ":\n\n"

class SseParser {
 public:
  // Feeds bytes and returns the events they complete. Bounded: an event over 4 MiB sets failed().
  std::vector<SseEvent> feed(std::string_view bytes);
  bool failed() const noexcept { return failed_; }

 private:
  void end_line(std::vector<SseEvent>& out);
  void take_field(std::string_view name, std::string_view value);

  std::string line_;
  SseEvent event_;
  std::string last_id_;  // Holds for the events after it, too.
  bool has_data_ = false;
  bool skip_lf_ = false;
  bool first_line_ = true;  // May begin with a byte order mark.
  bool failed_ = false;
};

}  // namespace glovebox::net
