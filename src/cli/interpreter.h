// Which program runs a file: by its first line, else by its name.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace glovebox::cli {

struct Language {
  std::string name;  // For messages: "Python".
  // Commands that can run it, best first; the file's path comes after. An empty command means that
  // the file is run as it is.
  std::vector<std::vector<std::string>> commands;
  std::string package;  // What to install on Debian for the first; may be empty.
};

// `head` is the beginning of the file (256 bytes are enough). A "#!" line wins over the name,
// which may be a whole path. kInvalid when neither tells.
Result<Language> choose_language(std::string_view file_name, std::string_view head);

// For --lang: "python", "py", "node", "js", …
Result<Language> language_by_name(std::string_view name);

}  // namespace glovebox::cli
