// The command line: its grammar, its help, its errors. The only place that knows CLI11.

#pragma once

#include <string>
#include <variant>
#include <vector>

#include "cli/command_model.h"
#include "cli/options.h"

namespace glovebox::cli {

struct Parsed {
  Globals globals;
  Command command;
};

// What is printed instead of running a command: help, or what is wrong.
struct Printed {
  std::string out;
  std::string err;
  int exit_code = 0;
};

// `args` without the program's name. The environment gives GLOVEBOX_URL and GLOVEBOX_API_KEY.
std::variant<Parsed, Printed> parse_command_line(std::vector<std::string> args);

CommandModel command_model();

}  // namespace glovebox::cli
