#include "api/common/routes.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace glovebox::api {

struct RouteTable::Node {
  std::vector<std::pair<std::string_view, std::unique_ptr<Node>>> children;
  std::unique_ptr<Node> param;
  std::vector<std::pair<std::string_view, std::size_t>> methods;

  const Node* child(std::string_view segment) const {
    for (const auto& [name, node] : children) {
      if (name == segment) return node.get();
    }
    return nullptr;
  }

  Node& make(std::string_view segment) {
    std::unique_ptr<Node>* place = &param;
    if (!segment.starts_with('{')) {
      auto it = std::ranges::find(children, segment, &decltype(children)::value_type::first);
      if (it == children.end()) it = children.emplace(it, segment, nullptr);
      place = &it->second;
    }
    if (*place == nullptr) *place = std::make_unique<Node>();
    return **place;
  }
};

namespace {

// Takes the first segment off a path that starts with '/'.
std::string_view take_segment(std::string_view& path) {
  path.remove_prefix(1);
  const std::size_t end = std::min(path.find('/'), path.size());
  const std::string_view segment = path.substr(0, end);
  path.remove_prefix(end);
  return segment;
}

}  // namespace

RouteTable::RouteTable(std::span<const RouteSpec> specs) : root_(std::make_unique<Node>()) {
  for (std::size_t i = 0; i < specs.size(); ++i) {
    Node* node = root_.get();
    std::string_view rest = specs[i].pattern;
    while (!rest.empty()) node = &node->make(take_segment(rest));
    for (const auto& [method, index] : node->methods) {
      if (method != specs[i].method) continue;
      std::fprintf(stderr, "route %.*s is there twice\n", static_cast<int>(specs[i].pattern.size()),
                   specs[i].pattern.data());
      std::abort();
    }
    node->methods.emplace_back(specs[i].method, i);
  }
}

RouteTable::~RouteTable() = default;

std::optional<RouteTable::Match> RouteTable::find(std::string_view method,
                                                  std::string_view path) const {
  if (!path.starts_with('/')) return std::nullopt;
  Match match;
  std::size_t params = 0;
  const Node* node = root_.get();
  while (!path.empty()) {
    const std::string_view segment = take_segment(path);
    const Node* next = node->child(segment);
    if (next == nullptr && node->param != nullptr && !segment.empty()) {
      if (params == kParamsMax) return std::nullopt;
      match.params[params++] = segment;
      next = node->param.get();
    }
    if (next == nullptr) return std::nullopt;
    node = next;
  }
  if (node->methods.empty()) return std::nullopt;
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  for (const auto& [name, index] : node->methods) {
    if (name == wanted) match.index = index;
    if (!match.allow.empty()) match.allow += ", ";
    match.allow += name;
    if (name == "GET") match.allow += ", HEAD";
  }
  return match;
}

std::optional<SandboxId> parse_sandbox_id(std::string_view text) {
  constexpr std::size_t kSize = 23;
  if (text.size() != kSize || !text.starts_with("sb-")) return std::nullopt;
  const bool plain = std::ranges::all_of(
      text.substr(3), [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
  if (!plain) return std::nullopt;
  return SandboxId(std::string(text));
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (ec != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (port == 0 || text.front() == '0') return std::nullopt;
  return port;
}

}  // namespace glovebox::api
