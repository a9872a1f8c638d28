#include "cli/completion_command.h"

#include <fmt/format.h>

#include <memory>
#include <ostream>

#include "common/state_directory.h"
#include "inventory/driver_choice.h"
#include "simdriver/machine.h"
#include "simdriver/presets.h"

namespace aliquot::cli {
namespace {

std::vector<const CLI::App*> shown_subcommands(const CLI::App& app) {
  std::vector<const CLI::App*> shown;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!sub->get_group().empty() && !sub->get_name().empty()) shown.push_back(sub);
  return shown;
}

// Those of its groups too, which the parser keeps as commands without a name, with a --help each.
std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  std::vector<const CLI::Option*> all = app.get_options();
  for (const CLI::App* group :
       app.get_subcommands([](const CLI::App* sub) { return sub->get_name().empty(); }))
    for (const CLI::Option* option : options_of(*group))
      if (!option->check_lname("help")) all.push_back(option);
  return all;
}

std::string words_of(const CLI::App& app) {
  std::string words;
  const auto add = [&](const std::string& word) { words += (words.empty() ? "" : " ") + word; };
  for (const CLI::App* sub : shown_subcommands(app)) add(sub->get_name());
  for (const CLI::Option* option : options_of(app))
    for (const std::string& name : option->get_lnames()) add("--" + name);
  return words;
}

// Which names `aliquot completion names` lists for a value of this option; empty: none.
std::string names_for(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (type == "MACHINE") return "machines";
  if (type == "PRESET|FILE") return "presets";
  if (type == "NAME|PRESET") return "machines presets";
  return "";
}

struct Completed {
  std::string path;   // "sim up"; empty: the program itself. Or it with an option: "sim up --node"
  std::string words;  // what may follow it
  std::string names;  // and whose names
};

void add_completed(std::vector<Completed>& all, const CLI::App& app, const std::string& path) {
  Completed command{path, words_of(app), ""};
  for (const CLI::Option* option : options_of(app)) {
    const std::string names = names_for(*option);
    if (names.empty()) continue;
    if (option->get_lnames().empty()) command.names = names;  // a word of its own
    for (const std::string& name : option->get_lnames())
      all.push_back({fmt::format("{} --{}", path, name), "", names});
  }
  all.push_back(std::move(command));
  for (const CLI::App* sub : shown_subcommands(app))
    add_completed(all, *sub, path.empty() ? sub->get_name() : path + ' ' + sub->get_name());
}

// man(7) takes a leading dot or quote as a request, and a bare - as a hyphen.
std::string man_text(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '-' || c == '\\') escaped += '\\';
    escaped += c;
  }
  if (!escaped.empty() && (escaped[0] == '.' || escaped[0] == '\'')) escaped.insert(0, "\\&");
  return escaped;
}

void add_man_section(std::string& page, const CLI::App& app, const std::string& path) {
  for (const CLI::App* sub : shown_subcommands(app)) {
    const std::string name = path + ' ' + sub->get_name();
    page += ".SS " + man_text(name) + '\n' + man_text(sub->get_description()) + '\n';
    for (const CLI::Option* option : options_of(*sub)) {
      if (option->get_group().empty() || option->check_lname("help")) continue;
      const std::string type = option->get_type_name();
      page += ".TP\n.B " + man_text(option->get_name(true, true)) +
              (type.empty() ? "" : " \\fI" + man_text(type) + "\\fR") + '\n' +
              man_text(option->get_description()) + '\n';
    }
    add_man_section(page, *sub, name);
  }
}

// "machines" that run, or "presets"; none where they cannot be listed.
std::vector<std::string> names_of(std::string_view kind) {
  if (kind == "machines") return inventory::running_machines(state_directory());
  const auto simulator = simdriver::simulator_directory();
  if (!simulator) return {};
  const auto presets = simdriver::preset_names(*simulator);
  return presets ? *presets : std::vector<std::string>{};
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  std::vector<Completed> all;
  add_completed(all, app, "");
  // "'run' | 'sim' | 'sim up'": the words that name a command; others are options' values.
  std::string paths;
  std::string cases;
  std::string values;
  for (const Completed& one : all) {
    const std::string asked =
        one.names.empty() ? "" : "\"$(\"$1\" completion names " + one.names + " 2>/dev/null)\"";
    if (one.words.empty()) {
      values += "    '" + one.path + "') words=" + asked + " ;;\n";
      continue;
    }
    if (!one.path.empty()) paths += (paths.empty() ? "'" : " | '") + one.path + "'";
    cases += "    '" + one.path + "') words='" + one.words + "'" +
             (asked.empty() ? "" : "\" \"" + asked) + " ;;\n";
  }
  return "# bash completion for aliquot: eval \"$(aliquot completion bash)\"\n"
         "_aliquot() {\n"
         "  local path='' word words=''\n"
         "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
         "    case $word in --) return ;; esac\n"
         "    case \"${path:+$path }$word\" in\n"
         "      " +
         paths +
         ") path=\"${path:+$path }$word\" ;;\n"
         "    esac\n"
         "  done\n"
         "  case $path in\n" +
         cases +
         "  esac\n"
         "  case \"$path ${COMP_WORDS[COMP_CWORD - 1]}\" in\n" +
         values +
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
         "}\n"
         "complete -o default -F _aliquot aliquot\n";
}

std::string man_page(const CLI::App& app) {
  std::string page = ".TH ALIQUOT 1 \"\" \"aliquot " ALIQUOT_VERSION
                     "\"\n.SH NAME\naliquot \\- share GPUs\n"
                     ".SH SYNOPSIS\n.B aliquot\n\\fICOMMAND\\fR [\\fIOPTION\\fR...]\n"
                     ".SH DESCRIPTION\n" +
                     man_text(app.get_description()) + "\n.SH COMMANDS\n";
  add_man_section(page, app, "aliquot");
  return page +
         ".SH EXIT STATUS\n0 when it worked, 1 when it could not, 2 for a usage error; "
         "\\fBrun\\fR ends with the status of its command.\n";
}

void add_completion_command(CLI::App& app, Invocation& invocation) {
  CLI::App* completion =
      app.add_subcommand("completion", "Print a completion script (bash: eval it in ~/.bashrc)");
  CLI::App* bash = completion->add_subcommand("bash", "For bash");
  auto what = std::make_shared<std::vector<std::string>>();
  CLI::App* names = completion->add_subcommand("names", "What the script asks for")->group("");
  names->add_option("what", *what)->check(CLI::IsMember({"machines", "presets"}));
  names->callback([what, &invocation] {
    for (const std::string& kind : *what)
      for (const std::string& name : names_of(kind)) invocation.out << name << '\n';
  });
  completion->require_subcommand(1);
  bash->callback([&] { invocation.out << bash_completion(app); });
  app.add_subcommand("man", "Print the manual page (aliquot man | man -l -)")->callback([&] {
    invocation.out << man_page(app);
  });
}

}  // namespace aliquot::cli
