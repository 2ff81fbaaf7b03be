#include "tools/wisp/option_faults.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "runtime/core/decimal.h"
#include "runtime/core/text.h"
#include "tools/wisp/recipe/known_words.h"

namespace wisp::tools {
namespace {

constexpr std::string_view kNotConverted = "Could not convert: ";  // CLI11's sentence begins with this

const CLI::App* LastNamed(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().back();
  return command;
}

// Returns a name such as "wisp privacy decoding".
std::string WholeName(const CLI::App* command) {
  const CLI::App* parent = command->get_parent();
  return (parent == nullptr ? "" : WholeName(parent) + " ") + command->get_name();
}

// Finds the option, of the command or of those above it, whose name begins the text; null if no option does.
const CLI::Option* OptionAt(const CLI::App* command, std::string_view text) {
  const CLI::Option* found = nullptr;
  for (; command != nullptr; command = command->get_parent()) {
    for (const CLI::Option* option : command->get_options()) {
      const std::string name = option->get_name();
      if (text.starts_with(name) && (found == nullptr || name.size() > found->get_name().size())) found = option;
    }
  }
  return found;
}

// Returns a number unchanged, and any other text in quotes.
std::string Quoted(const std::string& value) {
  char* end = nullptr;
  std::strtod(value.c_str(), &end);
  return !value.empty() && *end == '\0' ? value : "'" + value + "'";
}

// Describes the values that the option takes, after it could not read `value`.
std::string AllowedFor(const CLI::Option& option, const std::string& value) {
  if (option.get_items_expected_max() == 0) return option.get_name() + " alone, without a value";
  std::string described = option.get_type_name();
  const std::string type = described.substr(0, described.find(':'));
  if (type == "FLOAT") return "a number";
  if (type == "INT") return "a whole number";
  if (type != "UINT") return described;
  // 64 bits take all digits.
  return value.find_first_not_of("0123456789") == std::string::npos ? "a whole number up to 4294967295"
                                                                    : "a whole number from 0 on";
}

std::string NotConverted(const CLI::App* command, const std::string& told) {
  const std::string rest = told.substr(kNotConverted.size());  // "--epochs = x"
  const CLI::Option* option = OptionAt(command, rest);
  if (option == nullptr) return told;
  const std::string between = option->get_name() + " = ";
  if (!rest.starts_with(between)) return told;
  const std::string value = rest.substr(between.size());
  return option->get_name() + " is " + Quoted(value) + ", allowed is " + AllowedFor(*option, value);
}

// Handles too many values, and missing ones.
std::string WrongCount(const CLI::App* command, const std::string& told) {
  const CLI::Option* option = OptionAt(command, told);
  if (option == nullptr) return told;
  if (option->count() == 0) return option->get_name() + " needs a value behind it";
  if (option->get_items_expected_max() != 1) return told;
  if (option->count() < 2) return option->get_name() + " needs a value behind it";
  return option->get_name() + " is given " + std::to_string(option->count()) + " times, allowed is once";
}

// CLI11 names a positional by its option alone, which no help line shows first.
std::string Missing(const CLI::App* command, const std::string& told) {
  const auto is_missing = [](const CLI::Option* o) { return o->get_required() && o->get_positional() && o->empty(); };
  for (const CLI::Option* option : command->get_options(is_missing)) {
    if (option->get_lnames().empty()) continue;
    return WholeName(command) + ": '" + option->get_name(/*positional=*/true) + "' is required, by its place or as --" +
           option->get_lnames().front();
  }
  if (told != "A subcommand is required") return told;
  return "a command is needed; " +
         ListCommands(WholeName(command), command->get_subcommands([](const CLI::App*) { return true; }));
}

// Returns the words that follow everything that the command takes, in the order of the command line.
std::string More(const CLI::App* command) {
  std::string more;
  for (const std::string& word : command->remaining()) more += (more.empty() ? "" : " ") + word;
  return "'" + more + "' is more than " + WholeName(command) + " takes";
}

bool IsWhole(std::string_view value, bool negative) {
  if (negative && value.starts_with('-')) value.remove_prefix(1);
  return !value.empty() && value.find_first_not_of("0123456789") == std::string_view::npos;
}

bool IsDecimal(const std::string& value) {
  double number = 0;
  const auto [end, error] = ReadDecimal(value.data(), value.data() + value.size(), number);
  return error == std::errc() && end == value.data() + value.size() && std::isfinite(number);
}

// The parser would read digits after a leading zero as octal. Never refuses.
std::string WithoutZeros(std::string& value) {
  if (IsWhole(value, false)) value.erase(0, std::min(value.find_first_not_of('0'), value.size() - 1));
  return "";
}

// Handles "--a requires --b" and "--a excludes --b".
std::string Beside(const std::string& told, const std::string& between, const std::string& sentence) {
  const size_t at = told.find(between);
  return at == std::string::npos ? told
                                 : told.substr(0, at) + " is given, and " + told.substr(at + between.size()) + sentence;
}

template <class Kind>
bool Is(const CLI::ParseError& error) {
  return dynamic_cast<const Kind*>(&error) != nullptr;
}

std::string Fault(const CLI::App* command, const CLI::ParseError& error) {
  std::string told = error.what();
  if (told.starts_with(kNotConverted)) return NotConverted(command, told);
  if (Is<CLI::ArgumentMismatch>(error)) return WrongCount(command, told);
  if (Is<CLI::RequiredError>(error)) return Missing(command, told);
  if (Is<CLI::RequiresError>(error)) return Beside(told, " requires ", " is not, which it needs");
  if (Is<CLI::ExcludesError>(error)) return Beside(told, " excludes ", " too; allowed is one of the two");
  const size_t colon = told.find(": ");
  if (colon == std::string::npos) return told;
  const std::string before = told.substr(0, colon), behind = told.substr(colon + 2);
  if (Is<CLI::ValidationError>(error) && behind.starts_with("is ")) return before + " " + behind;  // by Saying
  if (Is<CLI::ExtrasError>(error)) return More(command);
  return told;
}

}  // namespace

CLI::Validator Saying(const CLI::Validator& check, const std::string& allowed) {
  CLI::Validator saying = check;
  return saying.operation([check, allowed](std::string& value) {
    return check(value).empty() ? std::string() : "is " + Quoted(value) + ", " + allowed;
  });
}

void CheckNumbers(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const std::string described = option->get_type_name();
    const std::string type = described.substr(0, described.find_first_of(": "));
    if (type != "UINT" && type != "INT" && type != "FLOAT") continue;
    const auto refused = [type](std::string& value) {
      return std::string((type == "FLOAT" ? IsDecimal(value) : IsWhole(value, type == "INT")) ? "" : "is no number");
    };
    if (type != "FLOAT") option->transform(CLI::Validator(WithoutZeros, ""));
    option->check(Saying(CLI::Validator(refused, ""), "allowed is " + AllowedFor(*option, "-")));
  }
  for (CLI::App* command : app.get_subcommands({})) CheckNumbers(*command);
}

CLI::Validator OneOf(const std::vector<std::string>& words) {
  std::string allowed;
  for (size_t i = 0; i < words.size(); ++i)
    allowed += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
  return Saying(CLI::IsMember(words), (words.size() == 1 ? "allowed is " : "allowed are ") + allowed);
}

std::string UsageFault(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = LastNamed(app);
  return Printable(Fault(command, error)) + "; see " + WholeName(command) + " --help";
}

}  // namespace wisp::tools
