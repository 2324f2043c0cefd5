// Redacted holds a secret that must not reach a log or an error text by accident: it converts to
// nothing, prints as "[redacted]", and only reveal() gives it out.

#pragma once

#include <string>
#include <utility>

namespace glovebox {

class Redacted {
 public:
  Redacted() = default;
  explicit Redacted(std::string secret) : secret_(std::move(secret)) {}
  const std::string& reveal() const noexcept { return secret_; }
  bool empty() const noexcept { return secret_.empty(); }

 private:
  std::string secret_;
};

}  // namespace glovebox
