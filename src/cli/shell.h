// Shell is what every command works with: the daemon, the standard streams, the global options.

#pragma once

#include <boost/json/fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "async/task.h"
#include "base/result.h"
#include "cli/api.h"
#include "cli/interrupt.h"
#include "cli/options.h"

namespace glovebox::cli {

struct Streams {
  int in = 0;
  int out = 1;
  int err = 2;
};

// GLOVEBOX_URL and GLOVEBOX_API_KEY, for what no option said.
void fill_from_environment(Globals& globals);

// What --url says, or the defaults.
Result<std::vector<Endpoint>> endpoints_of(const Globals& globals);

class Shell {
 public:
  // The streams are borrowed. `endpoints` holds at least one.
  Shell(const Executor& executor, Globals globals, Streams streams,
        std::vector<Endpoint> endpoints);

  const Globals& globals() const noexcept { return globals_; }
  const Streams& streams() const noexcept { return streams_; }
  const Executor& executor() const noexcept { return executor_; }
  Api& api() noexcept { return api_; }
  Interrupt& interrupt() noexcept { return interrupt_; }
  bool quiet() const noexcept { return globals_.quiet; }
  bool json() const noexcept { return globals_.json; }

  // Write all, waiting as long as it takes; for answers, not for streams.
  void out(std::string_view text) const;
  void out_json(const boost::json::value& value) const;
  void note(std::string_view line) const;  // To standard error, unless --quiet.
  void warn(std::string_view line) const;  // The same even with --quiet.
  void print_error(const Error& error) const;

  bool out_is_terminal() const;
  bool err_is_terminal() const;
  // A terminal, and NO_COLOR is not set (no-color.org).
  bool colour() const;

 private:
  Executor executor_;
  Globals globals_;
  Streams streams_;
  Interrupt interrupt_;
  Api api_;
};

// The id of the sandbox that `text` names: a whole id, the beginning of one (with or without
// "sb-"), or a name. kNotFound for none, kInvalid for several.
Task<Result<std::string>> find_sandbox(Shell& shell, std::string text);
// All pages of GET /api/v1/sandboxes; `query` is as after '?', or empty.
Task<Result<boost::json::array>> list_sandboxes(Shell& shell, std::string query);

// "/api/v1/sandboxes/ID/REST"
std::string sandbox_target(std::string_view id, std::string_view rest);

}  // namespace glovebox::cli
