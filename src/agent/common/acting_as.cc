#include "agent/common/acting_as.h"

#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

namespace glovebox::agent {
namespace {

// glibc's setgroups() would change every thread; the system call changes this one.
bool set_groups(const gid_t* groups, std::size_t count) {
  return ::syscall(SYS_setgroups, count, groups) == 0;
}

// setfsuid() reports no failure: the call with -1 changes nothing and returns what is in force.
bool set_fsuid(uid_t uid) {
  ::setfsuid(uid);
  return static_cast<uid_t>(::setfsuid(static_cast<uid_t>(-1))) == uid;
}

bool set_fsgid(gid_t gid) {
  ::setfsgid(gid);
  return static_cast<gid_t>(::setfsgid(static_cast<gid_t>(-1))) == gid;
}

void give_back() {
  if (!set_fsuid(::geteuid()) || !set_fsgid(::getegid()) || !set_groups(nullptr, 0)) std::abort();
}

}  // namespace

Result<ActingAs> ActingAs::begin(const User& user) {
  if (user.uid == ::geteuid() && user.gid == ::getegid() && user.groups.empty()) {
    return ActingAs(false);
  }
  // The user last: CAP_SETGID stays, but the order then needs no thought about file rights.
  if (set_groups(user.groups.data(), user.groups.size()) && set_fsgid(user.gid) &&
      set_fsuid(user.uid)) {
    return ActingAs(true);
  }
  give_back();
  return Error(Errc::kInvalid, "user " + std::to_string(user.uid) + ":" + std::to_string(user.gid) +
                                   " cannot be taken on here");
}

ActingAs::~ActingAs() {
  if (active_) give_back();
}

}  // namespace glovebox::agent
