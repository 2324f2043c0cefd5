#include "agent/exec/environment.h"

#include <unordered_map>

namespace glovebox::agent {
namespace {

constexpr char kPath[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr std::size_t kCandidatesMax = 256;

class Environment {
 public:
  void set(const std::string& name, std::string_view value) {
    const auto [at, fresh] = places_.try_emplace(name, lines_.size());
    if (fresh) lines_.emplace_back();
    lines_[at->second] = name + "=" + std::string(value);
  }
  std::vector<std::string> take() && { return std::move(lines_); }

 private:
  std::vector<std::string> lines_;
  std::unordered_map<std::string, std::size_t> places_;
};

std::string_view value_of(const std::vector<std::string>& environment, std::string_view prefix) {
  for (const std::string& line : environment) {
    if (line.starts_with(prefix)) return std::string_view(line).substr(prefix.size());
  }
  return {};
}

}  // namespace

std::vector<std::string> make_environment(const User& user, bool terminal,
                                          const EnvList& sandbox_env, const EnvList& request_env) {
  const std::string name = user.name.empty() ? std::to_string(user.uid) : user.name;
  Environment environment;
  environment.set("PATH", kPath);
  environment.set("HOME", user.home);
  environment.set("USER", name);
  environment.set("LOGNAME", name);
  environment.set("SHELL", user.shell);
  environment.set("LANG", "C.UTF-8");
  environment.set("GLOVEBOX", "1");
  if (terminal) environment.set("TERM", "xterm-256color");
  for (const auto& [key, value] : sandbox_env) environment.set(key, value);
  for (const auto& [key, value] : request_env) environment.set(key, value);
  return std::move(environment).take();
}

std::vector<std::string> program_candidates(const std::string& program,
                                            const std::vector<std::string>& environment) {
  if (program.find('/') != std::string::npos) return {program};
  std::vector<std::string> candidates;
  std::string_view path = value_of(environment, "PATH=");
  while (candidates.size() < kCandidatesMax) {
    const std::size_t colon = path.find(':');
    const std::string_view dir = path.substr(0, colon);
    // An empty part means the working directory (environ(7)): a trap, so it is skipped.
    if (!dir.empty()) candidates.push_back(std::string(dir) + "/" + program);
    if (colon == std::string_view::npos) break;
    path.remove_prefix(colon + 1);
  }
  return candidates;
}

}  // namespace glovebox::agent
