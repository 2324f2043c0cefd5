#include <boost/json.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "api/common/json_reader.h"
#include "base/text.h"

// Whatever our strict parser takes, Boost's own takes too; and every error is text that can be
// sent.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace glovebox;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto value = api::parse_json(text);
  if (!value) {
    if (!is_utf8(value.error().text())) std::abort();
    return 0;
  }
  boost::json::error_code ec;
  const boost::json::value theirs = boost::json::parse({text.data(), text.size()}, ec);
  // As text, since Boost 1.81 reads 0e2222 as NaN, which equals nothing.
  if (ec || boost::json::serialize(theirs) != boost::json::serialize(value.value())) std::abort();

  std::optional<std::string> name;
  std::optional<Millis> timeout;
  std::optional<std::uint64_t> count;
  std::map<std::string, std::string> labels;
  const auto done = api::ObjectReader(value.value())
                        .text("name", name)
                        .seconds("timeout_s", timeout)
                        .whole_number("n", count)
                        .text_map("labels", labels)
                        .finish();
  if (!done && !is_utf8(done.error().text())) std::abort();
  return 0;
}
