// The environment of a command: a fixed base, the sandbox's own variables, the request's. Nothing
// of the agent's, which has none.

#pragma once

#include <string>
#include <vector>

#include "agent/common/users.h"
#include "agent/exec/exec_request.h"

namespace glovebox::agent {

// "NAME=value" each; later lists win over earlier ones.
std::vector<std::string> make_environment(const User& user, bool terminal,
                                          const EnvList& sandbox_env, const EnvList& request_env);

// The paths at which `program` may be, in the order to try: itself when it has a slash, else one
// for each part of PATH in `environment`.
std::vector<std::string> program_candidates(const std::string& program,
                                            const std::vector<std::string>& environment);

}  // namespace glovebox::agent
