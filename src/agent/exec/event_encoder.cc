#include "agent/exec/event_encoder.h"

#include <algorithm>

#include "agent/common/json_writer.h"
#include "agent/common/utf8.h"
#include "base/base64.h"
#include "base/text.h"

namespace glovebox::agent {
namespace {

std::string_view name_of(Channel channel) {
  return channel == Channel::kStdout ? "stdout" : "stderr";
}

void append_event(std::string& out, std::string_view name, const JsonWriter& json) {
  out.append("event: ").append(name).append("\ndata: ").append(json.text()).append("\n\n");
}

}  // namespace

void write_exit(JsonWriter& json, const ExitInfo& info) {
  json.key("exit_code").number(info.exit_code).key("signal");
  info.signal ? json.number(*info.signal) : json.null();
  json.key("timed_out").boolean(info.timed_out).key("oom_killed").boolean(info.oom_killed);
  json.key("duration_ms").number(info.duration.count());
}

void EventEncoder::start(std::string& out, pid_t pid) {
  JsonWriter json;
  json.begin('{').key("pid").number(pid).end('}');
  append_event(out, "start", json);
}

void EventEncoder::output(std::string& out, const OutputRing::Piece& piece) {
  Tail& tail = tail_of(piece.channel);
  cursor_ = piece.cursor + piece.bytes.size();
  std::string joined;
  std::string_view bytes = piece.bytes;
  if (!tail.bytes.empty()) {
    joined = std::move(tail.bytes);
    joined.append(piece.bytes);
    bytes = joined;
  }
  const std::size_t open = incomplete_tail(bytes);
  const std::string_view rest = bytes.substr(bytes.size() - open);
  if (open > piece.bytes.size()) {
    tail.bytes = rest;  // The same character goes on, from where it began.
  } else {
    tail = {std::string(rest), cursor_ - open, Clock::now()};
  }
  tail.since = Clock::now();
  if (open < bytes.size()) emit(out, piece.channel, bytes.substr(0, bytes.size() - open));
}

void EventEncoder::emit(std::string& out, Channel channel, std::string_view bytes) {
  // What is told to have been given must have been: a tail of the other channel has not.
  std::uint64_t cursor = cursor_;
  for (const Tail& tail : tails_) {
    if (!tail.bytes.empty()) cursor = std::min(cursor, tail.cursor);
  }
  out.append("event: ").append(name_of(channel)).append("\ndata: {");
  if (is_utf8(bytes)) {
    out.append("\"text\":");
    append_json_string(out, bytes);
  } else {
    out.append("\"b64\":\"").append(to_base64(bytes)).append("\"");
  }
  out.append(",\"cursor\":").append(std::to_string(cursor)).append("}\n\n");
}

std::optional<Deadline> EventEncoder::flush_at() const {
  std::optional<Deadline> at;
  for (const Tail& tail : tails_) {
    if (tail.bytes.empty()) continue;
    const Deadline until = tail.since + kTailPatience;
    at = at ? std::min(*at, until) : until;
  }
  return at;
}

void EventEncoder::flush(std::string& out) {
  for (const Channel channel : {Channel::kStdout, Channel::kStderr}) {
    const std::string bytes = std::exchange(tail_of(channel).bytes, {});
    if (!bytes.empty()) emit(out, channel, bytes);
  }
}

void EventEncoder::lost(std::string& out, std::uint64_t bytes) {
  flush(out);  // The rest of an open character is among what was lost.
  JsonWriter json;
  json.begin('{').key("bytes").number(static_cast<std::int64_t>(bytes)).end('}');
  append_event(out, "lost", json);
}

void EventEncoder::exit(std::string& out, const ExitInfo& info) {
  flush(out);
  JsonWriter json;
  json.begin('{');
  write_exit(json, info);
  json.end('}');
  append_event(out, "exit", json);
}

}  // namespace glovebox::agent
