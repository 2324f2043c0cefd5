// Records are read back by root after a crash, whatever is in them.

#include <cstdlib>

#include "base/wire.h"
#include "warden/record.h"

namespace {

void check(std::string_view bytes) {
  const auto record = glovebox::warden::decode_record(bytes);
  // What is accepted is exactly what we would have written.
  if (record && glovebox::warden::encode_record(record.value()) != bytes) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace glovebox;  // NOLINT(google-build-using-namespace)
  std::string bytes(reinterpret_cast<const char*>(data), size);
  check(bytes);
  // Behind a right checksum, where damage would not get.
  bytes.resize(warden::kRecordBytes - sizeof(std::uint64_t));
  wire::Writer sum;
  sum.number(warden::record_checksum(bytes));
  check(bytes.append(sum.bytes()));
  return 0;
}
