// Finds commands and options that do not exist, and suggests the names that may have been meant. The parser of options
// reports these badly or late. (option_faults.h handles existing options.)
//
//   // "there is no command 'trian'; ..."
//   if (const std::string fault = UnknownWord(app, argc, argv); !fault.empty()) ...
#ifndef WISP_TOOLS_WISP_RECIPE_KNOWN_WORDS_H_
#define WISP_TOOLS_WISP_RECIPE_KNOWN_WORDS_H_

#include <CLI/CLI.hpp>

#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "tools/wisp/recipe/near_names.h"

namespace wisp::tools {

inline std::string ListCommands(const std::string& path, const std::vector<const CLI::App*>& commands) {
  std::string names;
  for (const CLI::App* c : commands) names += (names.empty() ? "" : ", ") + c->get_name();
  return "the commands of " + path + " are " + names;
}

inline std::string UnknownOption(const std::string& path, const CLI::App& app, const std::string& name) {
  // One hyphen instead of two is a typing error too.
  NearNames near(name.starts_with("--") ? name : "-" + name, NearNames::Beginnings::kDoNotCount);
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& known : option->get_lnames()) near.Add("--" + known);
  }
  return path + " has no option '" + name + "'" + "; " + path + " --help-all lists all" + near.Question();
}

// Returns a sentence about the first word of the command line that is neither a command, an option nor a value, or
// about an option without its value. Empty if there is no such word.
inline std::string UnknownWord(const CLI::App& whole, int argc, const char* const* argv) {
  const CLI::App* app = &whole;
  std::string path = whole.get_name();
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--") return "";
    const bool longer = word.starts_with("--");
    if (longer || (word.size() > 1 && word[0] == '-' && std::isalpha(static_cast<unsigned char>(word[1])) != 0)) {
      const std::string name = longer ? word.substr(0, word.find('=')) : word;
      const CLI::Option* option = app->get_option_no_throw(name);
      if (option == nullptr) return UnknownOption(path, *app, name);
      // The parser would take the next word as the value: after an empty path that could be the limit, which would then
      // not hold.
      if (word == name + "=")
        return path + ": " + word + " has nothing behind it; give " + name + " a value or leave it out";
      if (name == word && option->get_items_expected_min() > 0) ++i;  // skips its value, whatever it is
      continue;
    }
    const std::vector<const CLI::App*> commands = app->get_subcommands([](const CLI::App*) { return true; });
    if (commands.empty() || word.empty()) continue;
    const auto next =
        std::find_if(commands.begin(), commands.end(), [&](const CLI::App* c) { return c->get_name() == word; });
    if (next == commands.end()) return "there is no command '" + word + "'; " + ListCommands(path, commands);
    app = *next;
    path += " " + app->get_name();
  }
  return "";
}

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_RECIPE_KNOWN_WORDS_H_
