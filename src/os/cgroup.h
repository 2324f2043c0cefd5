// Where the cgroup hierarchies of this host are, and where the caller is in each of them.
//
// Three layouts are met: version 2 alone; "hybrid", version 1 with a controller or two in each
// hierarchy beside a version 2 one that has none of them; and version 1 alone.

#pragma once

#include <string>

#include "base/result.h"

namespace glovebox::os {

struct CgroupHierarchy {
  std::string mount;  // Mount point; empty when there is none.
  std::string self;   // The caller's group beneath it: "" for the root, else "/a/b".
  std::string dir() const { return mount + self; }
};

struct CgroupHierarchies {
  CgroupHierarchy unified;  // Version 2.
  CgroupHierarchy memory;   // Version 1, from here on.
  CgroupHierarchy cpu;
  CgroupHierarchy pids;

  bool has_v1() const { return !memory.mount.empty() && !cpu.mount.empty() && !pids.mount.empty(); }
};

// Parses the text of /proc/self/mountinfo and /proc/self/cgroup (proc(5), cgroups(7)).
CgroupHierarchies parse_cgroups(const std::string& mountinfo, const std::string& self);
Result<CgroupHierarchies> find_cgroups();

}  // namespace glovebox::os
