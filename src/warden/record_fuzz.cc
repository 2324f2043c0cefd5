// Records are read back by root after a crash, whatever is in them.

#include <cstdlib>

#include "warden/record.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto record = glovebox::warden::decode_record(bytes);
  // What is accepted is exactly what we would have written.
  if (record && glovebox::warden::encode_record(*std::move(record).context("")) != bytes)
    std::abort();
  return 0;
}
