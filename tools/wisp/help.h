// The text of --help, which fits a screen, and of --help-all, which lists every option in its group.
//
//   app.formatter(std::make_shared<HelpText>());   // before commands are added
//   SetGroups(app);                                // after all options were added
#ifndef WISP_TOOLS_WISP_HELP_H_
#define WISP_TOOLS_WISP_HELP_H_

#include <CLI/CLI.hpp>

#include <string>

namespace wisp::tools {

// A description is one or more sentences, then lines that begin with two spaces, which are examples. In --help the text
// of an option is its first clause, up to a full stop or a semicolon.
class HelpText : public CLI::FormatterBase {
 public:
  static constexpr size_t kLines = 24, kColumns = 100;  // what --help may take

  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

// Puts each option in a group: the one that --help shows, or one that only --help-all shows. Commands that the table in
// help_groups.cc does not name show all their options.
void SetGroups(CLI::App& app);
inline constexpr char kFirstGroup[] = "Options";  // the group that --help shows
inline constexpr char kNoGroup[] = "Others";      // the group of an option that the table does not name

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_HELP_H_
