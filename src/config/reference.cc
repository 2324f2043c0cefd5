#include <string>

#include "config/config.h"
#include "config/keys.h"

namespace glovebox::config {
namespace {

std::string_view table_of(const Key& key) {
  const std::size_t dot = key.name.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : key.name.substr(0, dot);
}

// Greedy wrapping; `prefix` starts each line.
std::string wrapped(std::string_view text, std::string_view prefix, std::size_t width) {
  std::string out;
  std::string line(prefix);
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    if (line.size() > prefix.size() && line.size() + 1 + word.size() > width) {
      out.append(line).append("\n");
      line = prefix;
    }
    if (line.size() > prefix.size()) line += ' ';
    line += word;
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
  }
  return out.append(line).append("\n");
}

constexpr std::string_view kIntro =
    R"(# Configuration of gloveboxd

<!-- Made from the table in src/config/keys.cc by `gloveboxd --print-config-reference`; a test compares. -->

`gloveboxd --config FILE` reads one TOML file; without it every key has its default. `glovebox config check FILE`
reads a file as the daemon would and prints each fault with its line. A key that is not listed here is an error.
Command-line flags come over the file: `--listen`, `--socket`, `--data-dir`, `--run-dir`, `--warden-socket`, and
`--set KEY=VALUE` for every key.

SIGHUP reads the file again and takes over `log.level`; everything else needs a restart, which sandboxes survive.
)";

}  // namespace

std::string reference_markdown() {
  std::string out(kIntro);
  std::string_view table = "-";
  for (const Key& key : keys()) {
    if (table_of(key) != table) {
      table = table_of(key);
      out +=
          table.empty() ? std::string("\n## Top level\n") : "\n## `[" + std::string(table) + "]`\n";
    }
    out.append("\n### `").append(key.name).append("`\n\n");
    out.append("Default `").append(key.default_value).append("`; a ").append(kind_text(key));
    out.append(".\n\n").append(wrapped(key.help, "", 120));
  }
  return out;
}

std::string sample_toml() {
  std::string out;
  std::string_view table;
  for (const Key& key : keys()) {
    if (!out.empty()) out += '\n';
    if (table_of(key) != table) {
      table = table_of(key);
      out.append("[").append(table).append("]\n");
    }
    out += wrapped(key.help, "# ", 100);
    const std::size_t name_at = table.empty() ? 0 : table.size() + 1;
    out.append(key.name.substr(name_at)).append(" = ").append(key.default_value).append("\n");
  }
  return out;
}

}  // namespace glovebox::config
