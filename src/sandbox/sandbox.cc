#include "sandbox/sandbox.h"

namespace glovebox::sandbox {

std::string_view to_string(IsolationClass c) noexcept {
  switch (c) {
    case IsolationClass::kSharedKernel: return "shared-kernel";
    case IsolationClass::kUserKernel: return "user-kernel";
    case IsolationClass::kVm: return "vm";
  }
  return "?";
}

std::optional<IsolationClass> parse_isolation(std::string_view name) noexcept {
  for (const auto c :
       {IsolationClass::kSharedKernel, IsolationClass::kUserKernel, IsolationClass::kVm}) {
    if (to_string(c) == name) return c;
  }
  return std::nullopt;
}

std::string_view to_string(OnTimeout o) noexcept {
  switch (o) {
    case OnTimeout::kKill: return "kill";
    case OnTimeout::kPause: return "pause";
  }
  return "?";
}

std::optional<OnTimeout> parse_on_timeout(std::string_view name) noexcept {
  for (const auto o : {OnTimeout::kKill, OnTimeout::kPause}) {
    if (to_string(o) == name) return o;
  }
  return std::nullopt;
}

}  // namespace glovebox::sandbox
