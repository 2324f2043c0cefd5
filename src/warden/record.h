// Record: what the warden keeps on disk about one sandbox, so that its own death loses nothing.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "runtime/native/host.h"

namespace glovebox::warden {

enum class RecordState : std::uint8_t {
  kPreparing = 1,  // Its resources are being made: after a crash they are erased.
  kWarm,           // It runs and belongs to nobody yet.
  kRunning,        // It runs and belongs to `name`.
  kEnding,         // It is being taken down: after a crash that goes on.
};

struct Record {
  RecordState state = RecordState::kPreparing;
  std::string name;         // The client's; empty while nobody's.
  native::BoxIdentity box;  // pid and start_time are 0 while kPreparing.
  friend bool operator==(const Record& a, const Record& b);
};

// Every record has this size, so that one can be written over another.
inline constexpr std::size_t kRecordBytes = 256;

// The file's whole content: magic, version, fields, zeros, checksum. decode fails with kInvalid on
// anything that encode would not have written. Names must be valid (names.h).
std::string encode_record(const Record& record);
Result<Record> decode_record(std::string_view bytes);

// What stands at its end, of all before it. Public for the fuzzer, which would else never get past.
std::uint64_t record_checksum(std::string_view bytes);

}  // namespace glovebox::warden
