// The command line as plain data, taken from the parser's model: what completion scripts need.

#pragma once

#include <string>
#include <vector>

namespace glovebox::cli {

struct OptionModel {
  std::vector<std::string> names;  // "-e", "--env"
  std::string help;
  bool takes_value = false;
  std::vector<std::string> values;  // When only these will do.
};

struct CommandModel {
  std::string name;
  std::string help;
  std::vector<OptionModel> options;
  std::vector<CommandModel> subcommands;
};

// Fills in what CLI11 keeps to itself: the values that an option is confined to.
void fill_known_values(CommandModel& command);

// For "bash", "zsh" or "fish"; empty for another.
std::string completion_script(const CommandModel& root, const std::string& shell);

}  // namespace glovebox::cli
