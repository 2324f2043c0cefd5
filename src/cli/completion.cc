// Completion scripts. They complete commands, options, fixed values, and the ids and names of
// sandboxes (by asking `glovebox ls -q`).

#include <algorithm>
#include <functional>

#include "cli/command_model.h"

namespace glovebox::cli {
namespace {

// Commands whose first arguments name sandboxes; cp takes them with a colon.
constexpr std::string_view kTakeSandbox[] = {"info",  "exec",   "logs",   "ps",  "kill", "rm",
                                             "pause", "resume", "extend", "top", "cp"};
constexpr std::string_view kTakeFile[] = {"run", "cp", "check"};

template <std::size_t N>
bool listed(const std::string_view (&names)[N], const std::string& name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

std::string join(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

std::string first_line(std::string text) {
  text = text.substr(0, text.find('\n'));
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string quote(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// Every command with its words: {"config", "check"}.
using Visit = std::function<void(const std::vector<std::string>& words, const CommandModel&)>;
void walk(const CommandModel& command, std::vector<std::string>& words, const Visit& visit) {
  visit(words, command);
  for (const CommandModel& sub : command.subcommands) {
    words.push_back(sub.name);
    walk(sub, words, visit);
    words.pop_back();
  }
}

std::vector<std::string> option_names(const CommandModel& command, bool with_value_only) {
  std::vector<std::string> out;
  for (const OptionModel& option : command.options) {
    if (with_value_only && !option.takes_value) continue;
    out.insert(out.end(), option.names.begin(), option.names.end());
  }
  return out;
}

std::string bash_case(const std::vector<std::string>& words, const CommandModel& command) {
  std::string subs;
  for (const CommandModel& sub : command.subcommands) subs += (subs.empty() ? "" : " ") + sub.name;
  if (command.name == "completion") subs = "bash zsh fish";
  std::string out = "    " + quote(join(words)) + ")\n";
  out += "      opts=" + quote(join(option_names(command, false))) + "\n";
  out += "      with_value=" + quote(join(option_names(command, true))) + "\n";
  out += "      subs=" + quote(subs) + "\n";
  if (listed(kTakeSandbox, command.name)) out += "      sandboxes=1\n";
  if (listed(kTakeFile, command.name)) out += "      files=1\n";
  for (const OptionModel& option : command.options) {
    if (option.values.empty()) continue;
    out += "      case \"$prev\" in ";
    for (std::size_t i = 0; i < option.names.size(); ++i) {
      out += (i == 0 ? "" : "|") + option.names[i];
    }
    out += ") values=" + quote(join(option.values)) + ";; esac\n";
  }
  return out + "      ;;\n";
}

std::string bash(const CommandModel& root) {
  std::string cases;
  std::string paths;
  std::vector<std::string> words;
  walk(root, words, [&](const std::vector<std::string>& at, const CommandModel& command) {
    cases += bash_case(at, command);
    if (!at.empty()) paths += " " + quote(join(at));
  });
  return R"sh(# bash completion for glovebox; load with: source <(glovebox completion bash)
_glovebox() {
  local cur prev word path='' opts='' with_value='' subs='' values='' sandboxes='' files='' i
  local known=()sh" +
         paths + R"sh()
  COMPREPLY=()
  cur="${COMP_WORDS[COMP_CWORD]}"
  prev="${COMP_WORDS[COMP_CWORD-1]}"
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="${COMP_WORDS[i]}"
    [[ $word == -- ]] && return
    [[ $word == -* ]] && continue
    local try="${path:+$path }$word" k
    for k in "${known[@]}"; do
      [[ $k == "$try" ]] && { path="$try"; break; }
    done
  done
  case "$path" in
)sh" + cases +
         R"sh(  esac
  if [[ -n $values ]]; then
    COMPREPLY=($(compgen -W "$values" -- "$cur"))
  elif [[ " $with_value " == *" $prev "* ]]; then
    COMPREPLY=($(compgen -f -- "$cur"))
  elif [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "$opts" -- "$cur"))
  elif [[ -n $subs ]]; then
    COMPREPLY=($(compgen -W "$subs" -- "$cur"))
  else
    [[ -n $files ]] && COMPREPLY=($(compgen -f -- "$cur"))
    [[ -n $sandboxes ]] && COMPREPLY+=($(compgen -W "$(glovebox ls -q 2>/dev/null)" -- "$cur"))
  fi
}
complete -F _glovebox glovebox
)sh";
}

// In zsh's _arguments a colon and brackets in a description end it.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : first_line(text)) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_case(const std::vector<std::string>& words, const CommandModel& command) {
  std::string out = "    " + quote(join(words)) + ")\n";
  if (!command.subcommands.empty()) {
    out += "      subs=(";
    for (const CommandModel& sub : command.subcommands) {
      out += "\n        " + quote(sub.name + ":" + zsh_text(sub.help));
    }
    out += ")\n";
  }
  if (command.name == "completion") out += "      subs=(bash zsh fish)\n";
  out += "      opts=(";
  for (const OptionModel& option : command.options) {
    for (const std::string& name : option.names) {
      out += "\n        " + quote(name + ":" + zsh_text(option.help));
    }
  }
  out += ")\n";
  for (const OptionModel& option : command.options) {
    if (!option.takes_value) continue;
    std::string pattern;
    for (const std::string& name : option.names) pattern += (pattern.empty() ? "" : "|") + name;
    out += "      case $prev in " + pattern + ") ";
    out +=
        option.values.empty() ? "_files; return" : "compadd -- " + join(option.values) + "; return";
    out += ";; esac\n";
  }
  if (listed(kTakeSandbox, command.name)) out += "      sandboxes=1\n";
  if (listed(kTakeFile, command.name)) out += "      files=1\n";
  return out + "      ;;\n";
}

std::string zsh(const CommandModel& root) {
  std::string cases;
  std::string paths;
  std::vector<std::string> words;
  walk(root, words, [&](const std::vector<std::string>& at, const CommandModel& command) {
    cases += zsh_case(at, command);
    if (!at.empty()) paths += " " + quote(join(at));
  });
  return R"sh(#compdef glovebox
# zsh completion for glovebox; load with: source <(glovebox completion zsh)
_glovebox() {
  local path_='' word prev sandboxes='' files=''
  local -a subs opts known
  known=()sh" +
         paths + R"sh()
  prev=${words[CURRENT-1]}
  for word in ${words[2,CURRENT-1]}; do
    [[ $word == -- ]] && { _normal; return }
    [[ $word == -* ]] && continue
    local try="${path_:+$path_ }$word"
    (( ${known[(Ie)$try]} )) && path_="$try"
  done
  case $path_ in
)sh" + cases +
         R"sh(  esac
  if [[ ${words[CURRENT]} == -* ]]; then
    _describe option opts
    return
  fi
  (( ${#subs} )) && _describe command subs
  [[ -n $files ]] && _files
  [[ -n $sandboxes ]] && compadd -- ${(f)"$(glovebox ls -q 2>/dev/null)"}
}
if [[ ${funcstack[1]} == _glovebox ]]; then
  _glovebox "$@"
else
  compdef _glovebox glovebox
fi
)sh";
}

std::string fish_condition(const std::vector<std::string>& words, const CommandModel& command) {
  if (words.empty()) return "__fish_use_subcommand";
  std::string out;
  for (const std::string& word : words) {
    out += (out.empty() ? "" : "; and ") + ("__fish_seen_subcommand_from " + word);
  }
  if (!command.subcommands.empty()) {
    out += "; and not __fish_seen_subcommand_from";
    for (const CommandModel& sub : command.subcommands) out += " " + sub.name;
  }
  return out;
}

std::string fish(const CommandModel& root) {
  std::string out =
      "# fish completion for glovebox; load with: glovebox completion fish | source\n"
      "complete -c glovebox -f\n";
  std::vector<std::string> words;
  walk(root, words, [&](const std::vector<std::string>& at, const CommandModel& command) {
    const std::string when = "complete -c glovebox -n " + quote(fish_condition(at, command));
    for (const CommandModel& sub : command.subcommands) {
      out += when + " -a " + sub.name + " -d " + quote(first_line(sub.help)) + "\n";
    }
    for (const OptionModel& option : command.options) {
      out += when;
      for (const std::string& name : option.names) {
        out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (option.takes_value) out += option.values.empty() ? " -r -F" : " -x";
      if (!option.values.empty()) out += " -a " + quote(join(option.values));
      out += " -d " + quote(first_line(option.help)) + "\n";
    }
    if (command.name == "completion") out += when + " -a 'bash zsh fish'\n";
    if (listed(kTakeFile, command.name)) out += when + " -F\n";
    if (listed(kTakeSandbox, command.name)) {
      out += when + " -a '(glovebox ls -q 2>/dev/null)'\n";
    }
  });
  return out;
}

}  // namespace

void fill_known_values(CommandModel& command) {
  for (OptionModel& option : command.options) {
    if (option.names.empty()) continue;
    const std::string& name = option.names.back();
    if (name == "--isolation") option.values = {"shared-kernel", "user-kernel", "vm"};
    if (name == "--on-timeout") option.values = {"kill", "pause"};
    if (name == "--log-level") option.values = {"debug", "info", "warn", "error"};
    if (name == "--signal") option.values = {"HUP", "INT", "KILL", "TERM", "USR1", "USR2"};
  }
  for (CommandModel& sub : command.subcommands) fill_known_values(sub);
}

std::string completion_script(const CommandModel& root, const std::string& shell) {
  if (shell == "bash") return bash(root);
  if (shell == "zsh") return zsh(root);
  if (shell == "fish") return fish(root);
  return {};
}

}  // namespace glovebox::cli
