#include "tools/wisp/help.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace wisp::tools {
namespace {

constexpr size_t kNameColumns = 28, kCommandColumns = 15;

// Writes `head`, then the text in lines that begin at `column`.
std::string Wrapped(const std::string& head, size_t column, const std::string& text) {
  std::string out = head, line;
  const auto end_line = [&] {
    out += out.size() == head.size() && head.size() + 1 < column ? std::string(column - head.size(), ' ') + line
                                                                 : "\n" + std::string(column, ' ') + line;
    line.clear();
  };
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    begin = end + 1;
    if (word.empty()) continue;
    if (!line.empty() && column + line.size() + 1 + word.size() > HelpText::kColumns) end_line();
    line += (line.empty() ? "" : " ") + word;
  }
  if (!line.empty()) end_line();
  return out + "\n";
}

// Returns the text up to the first of these ends, or all of it. A line ends where a space would.
std::string UpTo(std::string text, std::initializer_list<std::string_view> ends) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  size_t end = text.size();
  for (const std::string_view sign : ends) end = std::min(end, text.find(sign));
  text.resize(end);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// Splits a description into its sentences and its examples.
std::pair<std::string, std::string> SplitDescription(const std::string& description) {
  const size_t examples = description.find("\n  ");
  return {description.substr(0, examples),
          examples == std::string::npos ? "" : description.substr(examples + 1) + "\n"};
}

std::string NameColumn(const CLI::Option& option) {
  std::string name = "  ";
  const std::string whole = option.get_lnames().empty() ? option.get_name() : "--" + option.get_lnames().front();
  name += option.get_positional() ? "[" + whole + "]" : whole;
  if (option.get_items_expected_max() == 0) return name;
  const std::string type = option.get_type_name();
  name += type.starts_with("TEXT") ? " TEXT" : " N";
  return name + (option.get_items_expected_max() > 1 ? " ..." : "");
}

std::string ListNames(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) names.push_back("--" + option->get_lnames().front());
  std::sort(names.begin(), names.end());
  std::string joined;
  for (const std::string& name : names) joined += (joined.empty() ? "" : ", ") + name;
  return joined;
}

std::string Describe(const CLI::Option& option, bool all) {
  std::string text = all ? option.get_description() : UpTo(option.get_description(), {"; ", ". "});
  if (option.get_required()) text += " (required)";
  if (!option.get_default_str().empty()) text += " (default: " + option.get_default_str() + ")";
  if (!all) return text;
  if (const std::string needed = ListNames(option.get_needs()); !needed.empty()) text += " Needs " + needed + ".";
  if (const std::string other = ListNames(option.get_excludes()); !other.empty()) text += " Not with " + other + ".";
  return text;
}

std::string DescribeCommands(const std::vector<const CLI::App*>& commands) {
  std::string text = "\n";
  for (const CLI::App* command : commands)
    text += Wrapped("  " + command->get_name(), kCommandColumns,
                    UpTo(SplitDescription(command->get_description()).first, {". ", "; "}));
  return text;
}

}  // namespace

std::string HelpText::make_help(const CLI::App* app, std::string, CLI::AppFormatMode mode) const {
  const bool all = mode == CLI::AppFormatMode::All;
  const auto [sentences, examples] = SplitDescription(app->get_description());
  std::string text = Wrapped("", 0, sentences).substr(1) + examples;
  const auto commands = app->get_subcommands([](const CLI::App*) { return true; });
  if (!commands.empty()) text += DescribeCommands(commands);
  size_t hidden = 0;
  std::string groups;
  for (const std::string& group : app->get_groups()) {
    const auto in_group = app->get_options([&](const CLI::Option* option) { return option->get_group() == group; });
    if (!all && group != kFirstGroup) {
      hidden += in_group.size();
      groups += (groups.empty() ? "" : ", ") + group;
      continue;
    }
    text += all && group != kFirstGroup ? "\n" + group + ":\n" : "\n";
    for (const CLI::Option* option : in_group) {
      const bool is_help = option == app->get_help_ptr() || option == app->get_help_all_ptr();
      if (is_help && !all) continue;
      text += Wrapped(NameColumn(*option), kNameColumns, Describe(*option, all));
    }
  }
  if (hidden > 0)
    text += "\n" + Wrapped("", 0, "--help-all shows " + std::to_string(hidden) + " more: " + groups).substr(1);
  return text;
}

}  // namespace wisp::tools
