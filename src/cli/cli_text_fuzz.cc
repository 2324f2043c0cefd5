// What people type and what sandboxes say: parsed and shown without harm.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "cli/display.h"
#include "cli/endpoint.h"
#include "cli/interpreter.h"
#include "cli/path_spec.h"
#include "cli/units.h"

namespace cli = glovebox::cli;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);

  const std::string shown = cli::safe_text(text);
  for (const char c : shown) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) std::abort();
  }
  if (cli::display_width(cli::fit(shown, 20)) > 20) std::abort();

  const auto duration = cli::parse_duration(text);
  if (duration && !(*duration > 0)) std::abort();
  const auto bytes = cli::parse_size(text);
  if (bytes && cli::format_bytes(*bytes).size() > 5) std::abort();
  static_cast<void>(cli::parse_signal(text));

  const auto endpoint = cli::parse_endpoint(text);
  if (endpoint) {
    // What is shown leads to the same place.
    const auto again = cli::parse_endpoint(endpoint->describe());
    if (!again || again->describe() != endpoint->describe()) std::abort();
  }

  const auto spec = cli::parse_path_spec(text);
  if (spec && spec->remote() && spec->sandbox.empty()) std::abort();
  const std::string name = cli::base_name(text);
  if (name.find('/') != std::string::npos || name == "." || name == "..") std::abort();

  const auto language = cli::choose_language("file", text.substr(0, 256));
  if (language && language->commands.empty()) std::abort();
  return 0;
}
