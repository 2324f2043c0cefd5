#include "cli/parser.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "cli/display.h"
#include "cli/endpoint.h"
#include "cli/json.h"
#include "cli/shell.h"
#include "cli/suggest.h"
#include "cli/units.h"

namespace glovebox::cli {
namespace {

// CLI11 knows "[OPTIONS]"; people want to see what comes where.
class HelpFormatter : public CLI::Formatter {
 public:
  void set_usage(const CLI::App* app, std::string usage) { usages_[app] = std::move(usage); }
  std::string make_usage(const CLI::App* app, std::string name) const override {
    const auto at = usages_.find(app);
    if (at == usages_.end()) return CLI::Formatter::make_usage(app, name);
    return "Usage: glovebox " + at->second + "\n";
  }
  // Positionals stand in the usage line already.
  std::string make_positionals(const CLI::App*) const override { return {}; }

 private:
  std::map<const CLI::App*, std::string> usages_;
};

struct Spec {
  std::string_view name;
  std::string_view usage;
  std::string_view help;
  std::string_view footer;
};

class Grammar {
 public:
  Grammar();

  CLI::App& app() noexcept { return app_; }
  // After a successful parse.
  Parsed take(std::vector<std::string> trailing, bool has_trailing);

 private:
  CLI::App* add(CLI::App* parent, const Spec& spec, const std::string& group);
  void add_globals(CLI::App* app);
  void add_sandbox_options(CLI::App* app, SandboxOptions& to);
  void add_run();
  void add_create();
  void add_lists();
  void add_exec();
  void add_cp();
  void add_processes();
  void add_states();
  void add_host();

  template <class T, class F>
  static CLI::Option* option(CLI::App* app, const std::string& name, T& target, F parse,
                             const std::string& type, const std::string& help) {
    return app
        ->add_option_function<std::string>(
            name,
            [&target, parse](const std::string& text) {
              auto parsed = parse(text);
              if (!parsed) throw CLI::ValidationError(parsed.error().text());
              target = std::move(*parsed);
            },
            help)
        ->type_name(type);
  }
  // Each flag takes one KEY=VALUE; without that CLI11 would swallow what follows.
  static CLI::Option* pairs(CLI::App* app, const std::string& name, Pairs& target,
                            const std::string& what, const std::string& help) {
    return app
        ->add_option_function<std::vector<std::string>>(
            name,
            [&target, what](const std::vector<std::string>& texts) {
              target.clear();
              for (const std::string& text : texts) {
                auto parsed = parse_key_value(text, what);
                if (!parsed) throw CLI::ValidationError(parsed.error().text());
                target.push_back(std::move(*parsed));
              }
            },
            help)
        ->allow_extra_args(false)
        ->type_name("KEY=VALUE");
  }
  static CLI::Option* texts(CLI::App* app, const std::string& name,
                            std::vector<std::string>& target, const std::string& help) {
    return app->add_option(name, target, help);
  }

  std::shared_ptr<HelpFormatter> formatter_ = std::make_shared<HelpFormatter>();
  CLI::App app_{"Runs code that nobody has read in sandboxes on this machine.", "glovebox"};
  std::vector<CLI::App*> commands_;
  Globals globals_;
  RunOptions run_;
  CreateOptions create_;
  ListOptions list_;
  InfoOptions info_;
  ExecOptions exec_;
  CopyOptions copy_;
  LogsOptions logs_;
  PsOptions ps_;
  KillOptions kill_;
  RemoveOptions remove_;
  StateOptions pause_;
  StateOptions resume_;
  ExtendOptions extend_;
  TopOptions top_;
  ConfigCheckOptions config_check_;
  UpOptions up_;
  CompletionOptions completion_;
};

constexpr std::string_view kSandboxes = "Sandboxes";
constexpr std::string_view kInside = "Inside a sandbox";
constexpr std::string_view kHost = "This machine";

Grammar::Grammar() {
  app_.formatter(formatter_);
  app_.require_subcommand(1);
  app_.footer("Without --url the daemon is looked for at its Unix socket (" +
              std::string(kDefaultRunDir) + "/" + std::string(kSocketName) + "), then at " +
              std::string(kDefaultUrl) + ".\nHelp on a command: glovebox COMMAND --help");
  formatter_->set_usage(&app_, "COMMAND [OPTIONS]");
  app_.set_version_flag("--version", "glovebox " GLOVEBOX_VERSION);
  add_run();
  add_create();
  add_lists();
  add_exec();
  add_cp();
  add_processes();
  add_states();
  add_host();
  // Last, so that help ends with them.
  add_globals(&app_);
  for (CLI::App* app : commands_) add_globals(app);
}

CLI::App* Grammar::add(CLI::App* parent, const Spec& spec, const std::string& group) {
  CLI::App* app = parent->add_subcommand(std::string(spec.name), std::string(spec.help));
  app->group(group);
  formatter_->set_usage(app, std::string(spec.usage));
  if (!spec.footer.empty()) app->footer(std::string(spec.footer));
  commands_.push_back(app);
  return app;
}

void Grammar::add_globals(CLI::App* app) {
  const std::string group = "Global options";
  app->set_help_flag("-h,--help", "Show this help")->group(group);
  app->add_option("--url", globals_.url,
                  "http://HOST:PORT or unix:///PATH of the daemon "
                  "(env GLOVEBOX_URL)")
      ->type_name("URL")
      ->group(group);
  app->add_option("--api-key", globals_.api_key,
                  "Key for the daemon; others on this machine can see it here, not in the "
                  "environment (env GLOVEBOX_API_KEY)")
      ->type_name("KEY")
      ->group(group);
  app->add_flag("--json", globals_.json, "Answer in JSON; errors too, on standard error")
      ->group(group);
  app->add_flag("-q,--quiet", globals_.quiet, "Say only what was asked for; ls: ids alone")
      ->group(group);
}

void Grammar::add_sandbox_options(CLI::App* app, SandboxOptions& to) {
  const std::string group = "Sandbox";
  app->add_option("--name", to.name, "A name for people")->type_name("NAME")->group(group);
  app->add_option("--template", to.template_name, "What is in it (default: host)")
      ->type_name("NAME")
      ->group(group);
  option(app, "--ttl", to.ttl_s, parse_duration, "DURATION", "When it goes by itself: 30s, 5m, 2h")
      ->group(group);
  option(app, "--memory", to.memory_bytes, parse_size, "SIZE", "Memory limit: 512m, 2g")
      ->group(group);
  option(app, "--disk", to.disk_bytes, parse_size, "SIZE", "Limit of what it can write")
      ->group(group);
  option(app, "--cpus", to.cpus, parse_cpus, "N", "CPU limit: 0.5, 2")->group(group);
  app->add_option("--pids", to.pids, "Limit of processes and threads")
      ->type_name("N")
      ->group(group);
  app->add_option("--isolation", to.isolation, "The least isolation that will do")
      ->check(CLI::IsMember({"shared-kernel", "user-kernel", "vm"}))
      ->type_name("CLASS")
      ->group(group);
  pairs(app, "-e,--env", to.env, "variable", "Environment of every command in it; repeat for more")
      ->group(group);
  pairs(app, "-l,--label", to.labels, "label", "Label to find it by; repeat for more")
      ->group(group);
}

void Grammar::add_run() {
  CLI::App* app =
      add(&app_,
          {"run", "run [OPTIONS] FILE [ARG…]   or   run [OPTIONS] -- CMD [ARG…]",
           "Run a file or a command in a sandbox made for it",
           "The file is copied in and run by what its #! line or its ending says "
           "(--lang overrides).\nInput is passed on when it is piped; Ctrl-C ends "
           "the command and removes the sandbox.\nExit code: the command's; 124 "
           "after --timeout, 125 when Glovebox failed, 126 and 127 as in a shell.\n\n"
           "  glovebox run hello.py\n  glovebox run --memory 512m --timeout 30s job.js a b\n"
           "  echo data | glovebox run -- wc -c"},
          std::string(kSandboxes));
  app->prefix_command();
  option(app, "--timeout", run_.timeout_s, parse_duration, "DURATION",
         "Kill the command after that long; exit code 124");
  app->add_flag("--keep", run_.keep, "Leave the sandbox there afterwards (for an hour, or --ttl)");
  app->add_option("--lang", run_.language, "Language of the file: py, js, ts, sh, rb, …")
      ->type_name("LANG");
  texts(app, "--copy", run_.copy, "Copy a further file in first; repeat for more")
      ->allow_extra_args(false)
      ->type_name("FILE[:PATH]");
  app->add_option("--cwd", run_.cwd, "Directory to start in")->type_name("DIR");
  app->add_option("-u,--user", run_.user, "User inside (default: user)")->type_name("NAME");
  app->add_flag("-n,--no-stdin", run_.no_stdin, "Pass no input on");
  add_sandbox_options(app, run_.sandbox);
}

void Grammar::add_create() {
  CLI::App* app = add(&app_,
                      {"create", "create [OPTIONS]", "Make a sandbox and print its id",
                       "  id=$(glovebox create --ttl 1h --label job=42)"},
                      std::string(kSandboxes));
  SandboxOptions& to = create_.sandbox;
  add_sandbox_options(app, to);
  option(app, "--idle-timeout", to.idle_timeout_s, parse_duration, "DURATION",
         "When it ends if nobody uses it");
  app->add_option("--on-timeout", to.on_timeout, "What happens at its end")
      ->check(CLI::IsMember({"kill", "pause"}))
      ->type_name("WHAT");
}

void Grammar::add_lists() {
  CLI::App* ls = add(&app_, {"ls", "ls [OPTIONS]", "List sandboxes", ""}, std::string(kSandboxes));
  ls->add_flag("-a,--all", list_.all, "Also those that ended in the last hour");
  ls->add_option("--state", list_.state, "Only these states: running,paused")->type_name("STATES");
  pairs(ls, "-l,--label", list_.labels, "label", "Only those with this label; repeat: with all");

  CLI::App* info = add(&app_,
                       {"info", "info SANDBOX…", "Show all about a sandbox",
                        "A sandbox is named by its id, the beginning of it, or its name."},
                       std::string(kSandboxes));
  texts(info, "sandbox", info_.sandboxes, "")->required();

  CLI::App* rm = add(&app_, {"rm", "rm SANDBOX…   or   rm --all", "Remove sandboxes", ""},
                     std::string(kSandboxes));
  texts(rm, "sandbox", remove_.sandboxes, "");
  rm->add_flag("--all", remove_.all, "Every sandbox");
  pairs(rm, "-l,--label", remove_.labels, "label", "Those with this label; repeat: with all");

  CLI::App* top = add(
      &app_,
      {"top", "top [OPTIONS] [SANDBOX]", "Watch CPU, memory, processes and disk of sandboxes", ""},
      std::string(kSandboxes));
  top->add_option("sandbox", top_.sandbox, "");
  top->add_flag("--once", top_.once, "Print one table and end");
  option(top, "--interval", top_.interval_s, parse_duration, "DURATION", "Between two looks (1s)");
}

void Grammar::add_exec() {
  CLI::App* app = add(
      &app_,
      {"exec", "exec [OPTIONS] SANDBOX [--] CMD [ARG…]", "Run a command in a sandbox that is there",
       "Input is passed on when it is piped; -n keeps it for what comes after "
       "(in a `while read` loop).\nCtrl-C is sent to the command; twice ends "
       "it. Exit codes are those of `run`.\n\n"
       "  glovebox exec -it my-box bash\n"
       "  glovebox exec my-box -- sh -c 'echo $HOME'"},
      std::string(kInside));
  app->prefix_command();
  app->add_option("sandbox", exec_.sandbox, "")->required();
  app->add_flag("-i,--interactive", exec_.interactive, "Pass input on, from a terminal too");
  app->add_flag("-t,--tty", exec_.terminal, "Give it a terminal; implies -i");
  app->add_flag("-d,--detach", exec_.detach, "Leave it running and print its PID");
  app->add_flag("-n,--no-stdin", exec_.no_stdin, "Pass no input on");
  app->add_option("--cwd", exec_.cwd, "Directory to start in")->type_name("DIR");
  app->add_option("-u,--user", exec_.user, "User inside (default: user)")->type_name("NAME");
  pairs(app, "-e,--env", exec_.env, "variable", "Environment variable; repeat for more");
  option(app, "--timeout", exec_.timeout_s, parse_duration, "DURATION",
         "Kill it after that long; exit code 124");
}

void Grammar::add_cp() {
  CLI::App* app = add(&app_,
                      {"cp", "cp SOURCE… SANDBOX:PATH   or   cp SANDBOX:PATH… DESTINATION",
                       "Copy files and directories into and out of sandboxes",
                       "Relative paths inside start at the user's home. '-' is standard input "
                       "or output.\nSymbolic links are skipped; nothing outside the "
                       "destination is written.\n\n"
                       "  glovebox cp data/ my-box:/home/user\n"
                       "  glovebox cp my-box:result.csv .\n"
                       "  tar c . | glovebox cp - my-box:in.tar"},
                      std::string(kInside));
  // Not as positionals: CLI11 splits one in brackets, and a file may have such a name.
  app->allow_extras();
  app->add_option("-u,--user", copy_.user, "With this user's rights inside")->type_name("NAME");
}

void Grammar::add_processes() {
  CLI::App* ps =
      add(&app_, {"ps", "ps SANDBOX", "List commands in a sandbox", ""}, std::string(kInside));
  ps->add_option("sandbox", ps_.sandbox, "")->required();
  ps->add_flag("-a,--all", ps_.all, "Also those that have ended");

  CLI::App* logs =
      add(&app_,
          {"logs", "logs [-f] SANDBOX [PID]", "Show the output of commands in a sandbox",
           "The last mebibyte of each command's output is kept."},
          std::string(kInside));
  logs->add_option("sandbox", logs_.sandbox, "")->required();
  logs->add_option("pid", logs_.pid, "");
  logs->add_flag("-f,--follow", logs_.follow, "Go on until the command ends");

  CLI::App* kill =
      add(&app_,
          {"kill", "kill SANDBOX PID [-s SIGNAL]", "Send a signal to a command in a sandbox", ""},
          std::string(kInside));
  kill->add_option("sandbox", kill_.sandbox, "")->required();
  kill->add_option("pid", kill_.pid, "")->required();
  option(kill, "-s,--signal", kill_.signal, parse_signal, "SIGNAL", "TERM (default), KILL, 9, …");
  kill->add_flag("--tree", kill_.tree, "Kill all that it ever started; always SIGKILL");
}

void Grammar::add_states() {
  pause_.verb = "pause";
  resume_.verb = "resume";
  CLI::App* pause =
      add(&app_, {"pause", "pause SANDBOX…", "Stop a sandbox's processes in place", ""},
          std::string(kSandboxes));
  texts(pause, "sandbox", pause_.sandboxes, "")->required();
  CLI::App* resume = add(&app_, {"resume", "resume SANDBOX…", "Let a paused sandbox go on", ""},
                         std::string(kSandboxes));
  texts(resume, "sandbox", resume_.sandboxes, "")->required();
  CLI::App* extend =
      add(&app_,
          {"extend", "extend SANDBOX DURATION", "Set how much longer a sandbox lives, from now",
           "  glovebox extend my-box 2h"},
          std::string(kSandboxes));
  extend->add_option("sandbox", extend_.sandbox, "")->required();
  option(extend, "duration", extend_.timeout_s, parse_duration, "DURATION", "")->required();
}

void Grammar::add_host() {
  CLI::App* up = add(&app_,
                     {"up", "up [OPTIONS]", "Start Glovebox here, in the foreground",
                      "Needs root: the warden makes namespaces and cgroups. The daemon that "
                      "speaks HTTP runs as user `glovebox`, or as user id 61870 when there is "
                      "no such user."},
                     std::string(kHost));
  up_.data_dir = kDefaultDataDir;
  up_.run_dir = kDefaultRunDir;
  up->add_option("--data-dir", up_.data_dir,
                 "What must last (default " + std::string(kDefaultDataDir) + ")")
      ->type_name("DIR");
  up->add_option("--run-dir", up_.run_dir, "Sockets (default " + std::string(kDefaultRunDir) + ")")
      ->type_name("DIR");
  up->add_option("--listen", up_.listen,
                 "Address of the API (default 127.0.0.1:7070; port 0 takes a free one; `off`)")
      ->type_name("ADDR:PORT");
  up->add_option("--config", up_.config, "Configuration of the daemon (TOML)")->type_name("FILE");
  up->add_option("--pool", up_.pool, "Sandboxes kept ready")->type_name("N");
  up->add_option("--log-level", up_.log_level, "Of both programs (default warn)")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}))
      ->type_name("LEVEL");
  up->add_option("--ready-fd", up_.ready_fd, "Write a JSON line with the addresses there, once")
      ->type_name("FD");
  const std::string several = "To run several on one machine";
  up->add_option("--cgroup", up_.cgroup, "Name of the cgroup of all sandboxes (default glovebox)")
      ->type_name("NAME")
      ->group(several);
  up->add_option("--uid-base", up_.uid_base, "First of the host user ids used inside sandboxes")
      ->type_name("N")
      ->group(several);
  up->add_flag("--destroy-on-exit", up_.destroy_on_exit, "Remove every sandbox when it ends");

  add(&app_,
      {"doctor", "doctor [--json]", "Say what this machine can and cannot do",
       "Exit code 1 when sandboxes of the runtime `native` cannot work here."},
      std::string(kHost));

  CLI::App* config = add(&app_, {"config", "config COMMAND", "Look at configuration files", ""},
                         std::string(kHost));
  config->require_subcommand(1);
  CLI::App* check =
      add(config, {"check", "config check FILE", "Say everything that is wrong with a file", ""},
          "Commands");
  check->add_option("file", config_check_.file, "")->required();

  CLI::App* completion = add(&app_,
                             {"completion", "completion bash|zsh|fish", "Print a completion script",
                              "  source <(glovebox completion bash)"},
                             std::string(kHost));
  completion->add_option("shell", completion_.shell, "")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  add(&app_, {"version", "version", "Print the version", ""}, std::string(kHost));
}

CLI::ValidationError usage_error(const std::string& text) { return CLI::ValidationError(text); }

// Options that CLI11 left over.
void refuse_unknown_option(const std::vector<std::string>& rest) {
  for (const std::string& word : rest) {
    if (word.size() > 1 && word.starts_with('-')) throw usage_error("unknown option " + word);
  }
}

Parsed Grammar::take(std::vector<std::string> trailing, bool has_trailing) {
  Parsed parsed;
  parsed.globals = globals_;
  const CLI::App* used = app_.get_subcommands().front();
  const std::string name = used->get_name();
  std::vector<std::string> rest = used->remaining();
  if (name == "run") {
    if (!rest.empty()) refuse_unknown_option({rest.front()});
    if (has_trailing && !rest.empty()) {
      // "run FILE -- ARG": what follows is the file's.
      run_.file = rest.front();
      run_.args.assign(rest.begin() + 1, rest.end());
      run_.args.insert(run_.args.end(), trailing.begin(), trailing.end());
    } else if (has_trailing) {
      run_.args = std::move(trailing);
    } else if (!rest.empty()) {
      run_.file = rest.front();
      run_.args.assign(rest.begin() + 1, rest.end());
    }
    if (run_.file.empty() && run_.args.empty()) {
      throw usage_error("name a file to run, or a command after --");
    }
    parsed.command = std::move(run_);
  } else if (name == "exec") {
    if (!has_trailing && !rest.empty()) refuse_unknown_option({rest.front()});
    exec_.args = std::move(rest);
    exec_.args.insert(exec_.args.end(), trailing.begin(), trailing.end());
    if (exec_.args.empty() && !exec_.terminal) throw usage_error("name a command to run");
    if (exec_.detach && (exec_.terminal || exec_.interactive)) {
      throw usage_error("-d does not go together with -i or -t");
    }
    parsed.command = std::move(exec_);
  } else if (name == "create") {
    parsed.command = std::move(create_);
  } else if (name == "ls") {
    parsed.command = std::move(list_);
  } else if (name == "info") {
    parsed.command = std::move(info_);
  } else if (name == "cp") {
    refuse_unknown_option(rest);
    copy_.paths = std::move(rest);
    copy_.paths.insert(copy_.paths.end(), trailing.begin(), trailing.end());
    if (copy_.paths.size() < 2) throw usage_error("name a source and a destination");
    parsed.command = std::move(copy_);
  } else if (name == "logs") {
    parsed.command = std::move(logs_);
  } else if (name == "ps") {
    parsed.command = std::move(ps_);
  } else if (name == "kill") {
    parsed.command = std::move(kill_);
  } else if (name == "rm") {
    if (remove_.sandboxes.empty() && !remove_.all && remove_.labels.empty()) {
      throw usage_error("name sandboxes, or --label or --all");
    }
    parsed.command = std::move(remove_);
  } else if (name == "pause") {
    parsed.command = std::move(pause_);
  } else if (name == "resume") {
    parsed.command = std::move(resume_);
  } else if (name == "extend") {
    parsed.command = std::move(extend_);
  } else if (name == "top") {
    parsed.command = std::move(top_);
  } else if (name == "doctor") {
    parsed.command = DoctorOptions{};
  } else if (name == "config") {
    parsed.command = std::move(config_check_);
  } else if (name == "up") {
    parsed.command = std::move(up_);
  } else if (name == "completion") {
    parsed.command = std::move(completion_);
  } else {
    parsed.command = VersionOptions{};
  }
  return parsed;
}

// The first word that is no option, when it is no command: the usual slip.
std::string unknown_command(CLI::App& app, const std::vector<std::string>& args) {
  if (args.empty() || args.front().starts_with('-')) return {};
  const std::string& word = args.front();
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(sub->get_name());
  }
  if (std::find(names.begin(), names.end(), word) != names.end()) return {};
  const std::string best = nearest_word(word, names);
  std::string text = "no command '" + safe_text(word) + "'";
  if (!best.empty()) text += "; did you mean '" + best + "'?";
  return text;
}

Printed usage_failure(CLI::App& app, const std::string& text, bool json) {
  Printed printed;
  printed.exit_code = kExitUsage;
  if (json) {
    printed.err = error_json(Error(Errc::kInvalid, text)) + "\n";
    return printed;
  }
  const auto used = app.get_subcommands();
  const std::string command = used.empty() ? "glovebox" : "glovebox " + used.front()->get_name();
  printed.err = command + ": " + safe_text(text) + "\nHelp: " + command + " --help\n";
  return printed;
}

OptionModel model_of(const CLI::Option& option) {
  OptionModel model;
  for (const std::string& name : option.get_snames()) model.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) model.names.push_back("--" + name);
  model.help = option.get_description();
  model.takes_value = option.get_items_expected_max() > 0;
  return model;
}

CommandModel model_of(const CLI::App& app) {
  CommandModel model;
  model.name = app.get_name();
  model.help = app.get_description();
  for (const CLI::Option* option : app.get_options([](const CLI::Option*) { return true; })) {
    if (option->nonpositional()) model.options.push_back(model_of(*option));
  }
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    model.subcommands.push_back(model_of(*sub));
  }
  return model;
}

}  // namespace

CommandModel command_model() {
  Grammar grammar;
  CommandModel model = model_of(grammar.app());
  fill_known_values(model);
  return model;
}

std::variant<Parsed, Printed> parse_command_line(std::vector<std::string> args) {
  Grammar grammar;
  CLI::App& app = grammar.app();
  const auto dashes = std::find(args.begin(), args.end(), "--");
  // What is a command's own is never looked at; the options before it alone say "--json".
  std::vector<std::string> trailing;
  const bool takes_command = std::find_if(args.begin(), dashes, [](const std::string& a) {
                               return a == "run" || a == "exec" || a == "cp";
                             }) != dashes;
  const bool has_trailing = dashes != args.end() && takes_command;
  if (has_trailing) {
    trailing.assign(dashes + 1, args.end());
    args.erase(dashes, args.end());
  }
  const bool json = std::find(args.begin(), args.end(), "--json") != args.end();
  if (args.empty()) return Printed{app.help(), "", kExitOk};
  if (const std::string unknown = unknown_command(app, args); !unknown.empty()) {
    return usage_failure(app, unknown, json);
  }
  try {
    std::vector<std::string> reversed(args.rbegin(), args.rend());
    app.parse(std::move(reversed));
    Parsed parsed = grammar.take(std::move(trailing), has_trailing);
    fill_from_environment(parsed.globals);
    return parsed;
  } catch (const CLI::CallForHelp&) {
    const CLI::App* at = &app;
    while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
    return Printed{at->help(), "", kExitOk};
  } catch (const CLI::CallForVersion&) {
    return Printed{"glovebox " GLOVEBOX_VERSION "\n", "", kExitOk};
  } catch (const CLI::ParseError& error) {
    return usage_failure(app, error.what(), json);
  } catch (const std::exception& error) {
    return usage_failure(app, error.what(), json);
  }
}

}  // namespace glovebox::cli
