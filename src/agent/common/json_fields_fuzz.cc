// Any bytes as a request body: no crash, and what parses answers every question.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "agent/common/json_fields.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using glovebox::agent::JsonFields;
  auto fields = JsonFields::parse({reinterpret_cast<const char*>(data), size});
  if (!fields) return 0;
  for (const char* name : {"a", "env", "stdin"}) {
    fields->any_text(name);
    fields->text(name);
    fields->boolean(name);
    fields->number(name);
    fields->integer(name);
    fields->texts(name);
    fields->text_map(name);
    fields->object(name);
  }
  [[maybe_unused]] const auto end = fields->finish();
  return 0;
}
