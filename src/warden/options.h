// The warden's command line.

#pragma once

#include <string>
#include <variant>

#include "base/log.h"
#include "base/result.h"
#include "runtime/native/host.h"
#include "warden/warden.h"

namespace glovebox::warden {

struct Options {
  WardenConfig warden;
  native::HostConfig host;
  log::Level log_level = log::Level::kInfo;
  bool die_with_parent = false;
};

// Printed instead of running: the help, the version.
struct Text {
  std::string text;
};

// kInvalid with a reason for what cannot be understood. Touches nothing.
Result<std::variant<Options, Text>> parse_options(int argc, char** argv);

}  // namespace glovebox::warden
