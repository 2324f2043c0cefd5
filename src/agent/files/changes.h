// The small changes: making a directory, moving, changing mode and owner. Each acts with the
// caller's rights and returns the Entry of what is there afterwards.

#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "agent/common/users.h"
#include "agent/files/file_call.h"
#include "base/result.h"

namespace glovebox::agent {

// An existing directory is fine and keeps its mode; anything else there is kConflict.
Result<std::string> make_directory(FileCall& call, Users& users, const std::string& path,
                                   mode_t mode, bool parents);

// kConflict when `to` exists and must not be replaced, or is a directory that is not empty.
Result<std::string> move_file(FileCall& call, Users& users, const std::string& from,
                              const std::string& to, bool replace);

struct Ownership {
  std::optional<mode_t> mode;
  std::optional<uid_t> owner;
  std::optional<gid_t> group;
};

// Through a link it is the target that changes.
Result<std::string> change_ownership(FileCall& call, Users& users, const std::string& path,
                                     const Ownership& wanted);

}  // namespace glovebox::agent
