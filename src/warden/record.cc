#include "warden/record.h"

#include "base/wire.h"
#include "warden/names.h"

namespace glovebox::warden {
namespace {

constexpr std::uint32_t kMagic = 0x31524247;  // "GBR1" in the file.
constexpr std::uint16_t kVersion = 1;
constexpr std::size_t kBodyBytes = kRecordBytes - sizeof(std::uint64_t);

Error damaged(std::string_view why) {
  return {Errc::kInvalid, std::string("record: ").append(why)};
}

// The rules that hold between fields. A record that breaks one was not written by us.
Result<void> check(const Record& r) {
  if (!valid_name(r.box.instance)) return damaged("bad instance name");
  if (!r.name.empty() && !valid_name(r.name)) return damaged("bad sandbox name");
  const bool has_process = r.box.pid > 0 && r.box.start_time > 0;
  switch (r.state) {
    case RecordState::kPreparing:
      if (r.box.pid != 0 || r.box.start_time != 0) return damaged("a process before its time");
      return {};
    case RecordState::kWarm:
      if (!r.name.empty()) return damaged("warm, yet with a name");
      break;
    case RecordState::kRunning:
      if (r.name.empty()) return damaged("running without a name");
      break;
    case RecordState::kEnding: return {};
    default: return damaged("no such state");
  }
  if (!has_process) return damaged("running without a process");
  return {};
}

}  // namespace

// FNV-1a: each step is a bijection of the state, so any change of one byte is seen. It guards
// against torn and damaged files; who can write here is root anyway.
std::uint64_t record_checksum(std::string_view bytes) {
  std::uint64_t h = 0xcbf29ce484222325ULL;
  for (const char c : bytes) {
    h ^= static_cast<unsigned char>(c);
    h *= 0x100000001b3ULL;
  }
  return h;
}

bool operator==(const Record& a, const Record& b) { return encode_record(a) == encode_record(b); }

std::string encode_record(const Record& r) {
  wire::Writer out;
  out.number(kMagic).number(kVersion).number(static_cast<std::uint8_t>(r.state));
  out.string(r.name).string(r.box.instance).number(r.box.slot);
  out.number(static_cast<std::int64_t>(r.box.pid)).number(r.box.start_time);
  const native::Limits& l = r.box.limits;
  out.number(l.memory_bytes).number(l.disk_bytes).number(l.cpu_millis).number(l.pids);
  std::string bytes = std::move(out).take();
  bytes.resize(kBodyBytes, '\0');
  wire::Writer sum;
  sum.number(record_checksum(bytes));
  return bytes.append(sum.bytes());
}

Result<Record> decode_record(std::string_view bytes) {
  if (bytes.size() != kRecordBytes) return damaged("wrong size");
  const std::string_view body = bytes.substr(0, kBodyBytes);
  wire::Reader tail(bytes.substr(kBodyBytes));
  wire::Reader in(body);
  if (in.number<std::uint32_t>() != kMagic) return damaged("not a record");
  if (in.number<std::uint16_t>() != kVersion) return damaged("of another version");
  if (tail.number<std::uint64_t>() != record_checksum(body)) return damaged("wrong checksum");

  Record r;
  r.state = static_cast<RecordState>(in.number<std::uint8_t>());
  r.name = in.string();
  r.box.instance = in.string();
  r.box.slot = in.number<std::uint32_t>();
  const auto pid = in.number<std::int64_t>();
  r.box.start_time = in.number<std::uint64_t>();
  r.box.limits.memory_bytes = in.number<std::uint64_t>();
  r.box.limits.disk_bytes = in.number<std::uint64_t>();
  r.box.limits.cpu_millis = in.number<std::uint32_t>();
  r.box.limits.pids = in.number<std::uint32_t>();
  if (!in.ok()) return damaged("wrong length");
  if (pid < 0 || pid > INT32_MAX) return damaged("bad process id");
  r.box.pid = static_cast<pid_t>(pid);
  GB_TRY(check(r));
  if (encode_record(r) != bytes) return damaged("something behind its end");
  return r;
}

}  // namespace glovebox::warden
