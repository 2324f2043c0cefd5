// StrongId<Tag> keeps a sandbox id from being passed where a template id is meant.

#pragma once

#include <compare>
#include <string>
#include <utility>

namespace glovebox {

template <class Tag>
class StrongId {
 public:
  StrongId() = default;
  explicit StrongId(std::string text) : text_(std::move(text)) {}
  const std::string& str() const noexcept { return text_; }
  bool empty() const noexcept { return text_.empty(); }
  friend auto operator<=>(const StrongId&, const StrongId&) = default;

 private:
  std::string text_;
};

using SandboxId = StrongId<struct SandboxIdTag>;

}  // namespace glovebox
