// The command line of gloveboxd.

#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/config.h"

namespace glovebox::daemon {

struct Flags {
  enum class Mode { kRun, kHelp, kVersion, kPrintReference, kPrintSample, kCheckConfig };
  Mode mode = Mode::kRun;
  std::string config_file;
  std::vector<config::Setting> settings;  // In their order.
  std::string ready_file;
  std::string api_key_file;
  bool allow_root = false;
  bool die_with_parent = false;
};

// `args` without the program's name. kInvalid names the flag.
Result<Flags> parse_flags(std::span<const char* const> args);
std::string help_text();

// The file, if any, with the flags over it.
Result<config::Config> load_config(const Flags& flags);

}  // namespace glovebox::daemon
