// doctor, config check, version: what needs no daemon.

#include <boost/json.hpp>
#include <sstream>

#include "cli/commands.h"
#include "cli/display.h"
#include "cli/doctor.h"
#include "cli/json.h"
#include "config/config.h"

namespace glovebox::cli {
namespace {

namespace json = boost::json;

std::string_view word(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk: return "ok";
    case Verdict::kWarn: return "warn";
    case Verdict::kMissing: return "missing";
  }
  return "";
}

std::string coloured(std::string_view text, Verdict verdict, bool colour) {
  if (!colour) return std::string(text);
  const std::string_view code = verdict == Verdict::kOk     ? "\x1b[32m"
                                : verdict == Verdict::kWarn ? "\x1b[33m"
                                                            : "\x1b[31m";
  return std::string(code).append(text).append("\x1b[0m");
}

json::object check_json(const Check& check) {
  json::object out;
  out["id"] = check.id;
  out["status"] = word(check.verdict);
  out["needed"] = check.needed;
  out["found"] = check.found;
  out["meaning"] = check.meaning;
  out["remedy"] = check.remedy;
  return out;
}

}  // namespace

Result<int> execute_now(Shell& shell, const DoctorOptions& options) {
  static_cast<void>(options);
  const std::vector<Check> checks = check_host(this_host());
  bool works = true;
  for (const Check& check : checks) {
    if (check.needed && check.verdict == Verdict::kMissing) works = false;
  }
  if (shell.json()) {
    json::object out;
    json::array list;
    for (const Check& check : checks) list.push_back(check_json(check));
    out["native"] = works;
    out["checks"] = std::move(list);
    shell.out_json(out);
    return works ? kExitOk : kExitError;
  }
  std::string out;
  for (const Check& check : checks) {
    if (shell.quiet() && check.verdict == Verdict::kOk) continue;
    std::string status(word(check.verdict));
    status.resize(8, ' ');
    std::string id = check.id;
    id.resize(20, ' ');
    out += coloured(status, check.verdict, shell.colour()) + id + safe_text(check.found) + "\n";
    out += std::string(28, ' ') + check.meaning + "\n";
    if (!check.remedy.empty()) out += std::string(28, ' ') + "-> " + check.remedy + "\n";
  }
  out += works ? "\nSandboxes of the runtime `native` can run here.\n"
               : "\nSandboxes cannot run here until what is missing is there.\n";
  shell.out(out);
  return works ? kExitOk : kExitError;
}

Result<int> execute_now(Shell& shell, const ConfigCheckOptions& options) {
  const Result<config::Config> loaded = config::load(options.file);
  if (!loaded) {
    if (shell.json()) return loaded.error();
    // One line a fault, all of them.
    std::istringstream faults(loaded.error().text());
    for (std::string fault; std::getline(faults, fault);) {
      shell.print_error(Error(Errc::kInvalid, fault));
    }
    return kExitError;
  }
  if (shell.json()) {
    json::object out;
    out["file"] = options.file;
    out["valid"] = true;
    shell.out_json(out);
  } else if (!shell.quiet()) {
    shell.out(safe_text(options.file) + ": valid\n");
  }
  return kExitOk;
}

Result<int> execute_now(Shell& shell, const VersionOptions& options) {
  static_cast<void>(options);
  if (shell.json()) {
    json::object out;
    out["version"] = GLOVEBOX_VERSION;
    shell.out_json(out);
  } else {
    shell.out("glovebox " GLOVEBOX_VERSION "\n");
  }
  return kExitOk;
}

}  // namespace glovebox::cli
