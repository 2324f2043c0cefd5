#include "cli/interpreter.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>

#include "cli/path_spec.h"

namespace glovebox::cli {
namespace {

struct Known {
  std::string_view name;
  std::string_view ids;       // Extensions and names for --lang, space-separated.
  std::string_view commands;  // '|' between commands, spaces between arguments.
  std::string_view package;
};

constexpr Known kKnown[] = {
    {"Python", "py python python3", "python3|python", "python3"},
    {"JavaScript", "js mjs cjs javascript node", "node|nodejs|deno run|bun run", "nodejs"},
    {"TypeScript", "ts mts typescript", "tsx|deno run|bun run|node --experimental-strip-types",
     "nodejs (22.6 or newer)"},
    {"shell", "sh shell", "sh", "dash"},
    {"Bash", "bash", "bash", "bash"},
    {"Zsh", "zsh", "zsh", "zsh"},
    {"fish", "fish", "fish", "fish"},
    {"Ruby", "rb ruby", "ruby", "ruby"},
    {"Perl", "pl perl", "perl", "perl"},
    {"PHP", "php", "php", "php-cli"},
    {"Lua", "lua", "lua|lua5.4|lua5.3|luajit", "lua5.4"},
    {"R", "r rscript", "Rscript", "r-base-core"},
    {"Go", "go", "go run", "golang-go"},
    {"Java", "java", "java", "default-jdk-headless"},
    {"Julia", "jl julia", "julia", "julia"},
    {"Elixir", "exs elixir", "elixir", "elixir"},
    {"Tcl", "tcl", "tclsh", "tcl"},
    {"awk", "awk", "awk -f", "mawk"},
};

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(at);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

Language make(const Known& known) {
  Language language;
  language.name = known.name;
  language.package = known.package;
  for (const std::string& command : split(known.commands, '|')) {
    language.commands.push_back(split(command, ' '));
  }
  return language;
}

const Known* find_known(std::string_view id) {
  std::string wanted(id);
  for (char& c : wanted) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const Known& known : kKnown) {
    const std::vector<std::string> ids = split(known.ids, ' ');
    if (std::find(ids.begin(), ids.end(), wanted) != ids.end()) return &known;
  }
  return nullptr;
}

std::vector<std::string> words(std::string_view line) {
  std::string plain(line);
  std::replace_if(plain.begin(), plain.end(), [](char c) { return c == '\t' || c == '\r'; }, ' ');
  std::vector<std::string> out = split(plain, ' ');
  std::erase(out, "");
  return out;
}

// "#!/usr/bin/env python3": the sandbox may have it elsewhere, so the program goes by its name.
// Everything after the program is one argument to the kernel, unless env -S splits it.
Result<Language> by_shebang(std::string_view head) {
  const std::size_t newline = head.find('\n');
  std::vector<std::string> command = words(head.substr(2, newline - 2));
  if (command.empty()) return Error(Errc::kInvalid, "its first line is '#!' without a program");
  if (base_name(command.front()) == "env") {
    command.erase(command.begin());
    if (!command.empty() && command.front() == "-S") command.erase(command.begin());
    if (command.empty() || command.front().starts_with('-') ||
        command.front().find('=') != std::string::npos) {
      return Error(Errc::kInvalid, "its first line calls env in a way that is not understood");
    }
  }
  command.front() = base_name(command.front());
  if (command.front().empty()) return Error(Errc::kInvalid, "its first line names no program");
  Language language;
  language.name = command.front();
  if (const Known* known = find_known(command.front())) language.package = known->package;
  language.commands.push_back(std::move(command));
  return language;
}

std::string supported() {
  std::string out;
  for (const Known& known : kKnown) {
    out.append(out.empty() ? "." : " .").append(known.ids.substr(0, known.ids.find(' ')));
  }
  return out;
}

}  // namespace

Result<Language> choose_language(std::string_view file_name, std::string_view head) {
  if (head.starts_with("#!")) return by_shebang(head);
  if (head.starts_with("\x7f"
                       "ELF"))
    return Language{"a program", {{}}, ""};
  const std::string name = base_name(file_name);
  const std::size_t dot = name.rfind('.');
  if (dot != std::string::npos && dot + 1 < name.size()) {
    if (const Known* known = find_known(name.substr(dot + 1))) return make(*known);
  }
  return Error(Errc::kInvalid,
               "neither its first line (#!) nor its name says what runs it; name it with "
               "--lang, or run a command: glovebox run -- CMD. Known endings: " +
                   supported());
}

Result<Language> language_by_name(std::string_view name) {
  if (const Known* known = find_known(name)) return make(*known);
  return Error(Errc::kInvalid,
               std::string("no language '").append(name).append("'; known: ").append(supported()));
}

}  // namespace glovebox::cli
