#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "api/native/codec.h"
#include "base/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace glovebox;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const auto check = [](const auto& result) {
    if (result) return;
    if (result.error().code() != Errc::kInvalid) std::abort();
    if (!is_utf8(result.error().text())) std::abort();
  };
  check(api::native::decode_create(body));
  check(api::native::decode_extend(body));
  check(api::native::decode_nothing(body));
  return 0;
}
