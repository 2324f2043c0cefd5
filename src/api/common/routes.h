// RouteTable finds what a method and a path lead to. It compares the path as it came, without
// decoding: none of our paths needs an escape, so one that has any is not ours, and what was
// compared is what is passed on.

#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/strong_id.h"

namespace glovebox::api {

struct RouteSpec {
  std::string_view method;   // "GET"; HEAD follows from it.
  std::string_view pattern;  // "/api/v1/sandboxes/{id}/pause"
};

class RouteTable {
 public:
  // Borrows `specs`. Two that are equal, or "{a}" and "{b}" in one place, abort.
  explicit RouteTable(std::span<const RouteSpec> specs);
  ~RouteTable();

  static constexpr std::size_t kParamsMax = 2;
  struct Match {
    std::optional<std::size_t> index;  // Into specs; empty when there is none for the method.
    std::string allow;                 // The methods there are, when there is none for this one.
    std::array<std::string_view, kParamsMax> params;  // What stood for {…}, never empty.
  };
  // `path` without the query. Empty when no route has this path.
  std::optional<Match> find(std::string_view method, std::string_view path) const;

 private:
  struct Node;
  std::unique_ptr<Node> root_;
};

// The only form a sandbox's id has: "sb-" and 20 of [a-z0-9].
std::optional<SandboxId> parse_sandbox_id(std::string_view text);
// 1 to 65535, plain decimal without leading zeros.
std::optional<std::uint16_t> parse_port(std::string_view text);

}  // namespace glovebox::api
