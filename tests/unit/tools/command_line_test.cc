// Every option of every command: its value arrives as it was given, or is refused in a sentence that names it.
#include "tools/wisp/program_commands.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/wisp/option_faults.h"
#include "tools/wisp/recipe/known_words.h"

namespace wisp::tools::command_line_test {
namespace {

using Words = std::vector<std::string>;

// Calls `use` with each command and its name in words.
void ForEachCommand(CLI::App& app, const Words& path, const std::function<void(CLI::App&, const Words&)>& use) {
  use(app, path);
  for (CLI::App* command : app.get_subcommands({})) {
    Words below = path;
    below.push_back(command->get_name());
    ForEachCommand(*command, below, use);
  }
}

std::string GetName(const CLI::Option& option) {
  return option.get_lnames().empty() ? "" : "--" + option.get_lnames().front();
}

bool IsNumber(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.starts_with("UINT") || type.starts_with("INT") || type.starts_with("FLOAT");
}

// The effect of a command line on an option: the text of the variable behind it, or the sentence that refuses it.
struct Outcome {
  std::string value, refusal;
};

Outcome Parse(CLI::App& app, CLI::Option& option, const Words& words) {
  std::vector<const char*> argv = {"wisp"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  const int argc = static_cast<int>(argv.size());
  Outcome outcome;
  outcome.refusal = UnknownWord(app, argc, argv.data());
  if (!outcome.refusal.empty()) return outcome;
  try {
    app.parse(argc, argv.data());
  } catch (const CLI::RequiredError&) {  // other options without which this one is refused
  } catch (const CLI::RequiresError&) {
  } catch (const CLI::ParseError& error) {
    outcome.refusal = UsageFault(app, error);
  }
  option.capture_default_str();
  outcome.value = option.get_default_str();
  return outcome;
}

// Hands the commands of both programs to `use`, one program after the other.
void ForEachProgram(const std::function<void(CLI::App&)>& use) {
  for (const auto make : {MakeCommands, MakeLabCommands}) use(make()->app());
}

// Both ways to write an option: its value after it, or after an equals sign.
void ForEachValue(const std::function<void(CLI::App&, CLI::Option&, const Words&, const std::string&)>& use,
                  const Words& values, const std::function<bool(const CLI::Option&)>& wanted) {
  size_t seen = 0;
  ForEachProgram([&](CLI::App& app) {
    ForEachCommand(app, {}, [&](CLI::App& command, const Words& path) {
      for (CLI::Option* option : command.get_options()) {
        const std::string name = GetName(*option);
        if (name.empty() || option->get_items_expected_max() == 0 || !wanted(*option)) continue;
        ++seen;
        for (const std::string& value : values) {
          Words words = path;
          words.insert(words.end(), {name, value});
          use(app, *option, words, value);
          if (value.empty()) continue;
          words.resize(path.size());
          words.push_back(name + "=" + value);
          use(app, *option, words, value);
        }
      }
    });
  });
  EXPECT_GT(seen, 80u);
}

std::string Joined(const Words& words) {
  std::string joined;
  for (const std::string& word : words) joined += " '" + word + "'";
  return joined;
}

TEST(CommandLine, Texts_arriveAsGivenOrAreRefused) {
  size_t arrived = 0;
  const auto check = [&](CLI::App& app, CLI::Option& option, const Words& words, const std::string& value) {
    const Outcome outcome = Parse(app, option, words);
    if (outcome.refusal.empty()) {
      EXPECT_EQ(outcome.value, value) << Joined(words);
      ++arrived;
    } else {
      EXPECT_NE(outcome.refusal.find(GetName(option) + " is '" + value + "'"), std::string::npos)
          << Joined(words) << ": " << outcome.refusal;
    }
  };
  ForEachValue(check, {"[a, b]", "[]", "[END]", "[a,b", "{}",    "[{}]", "%%",   "-x",  "--json", "--", "-",
                       "",       " ",  "a,b",   "a=b",  "\"a\"", "'a'",  "a\nb", "{a}", "#a",     "@a", "%a"},
               [](const CLI::Option& option) { return !IsNumber(option); });
  EXPECT_GT(arrived, 3000u);
}

TEST(CommandLine, InvalidNumbers_AreRefused) {
  const auto check = [](CLI::App& app, CLI::Option& option, const Words& words, const std::string& value) {
    const std::string refusal = Parse(app, option, words).refusal;
    EXPECT_NE(refusal.find(GetName(option) + " is '" + value + "'"), std::string::npos) << Joined(words) << refusal;
  };
  ForEachValue(check, {"[1, 2]", "[]", "{}", "%%", "-x", "--json", "", "1,2", "1 ", "x", "1x"}, IsNumber);
}

TEST(CommandLine, NumbersThatOnlyCWouldRead_areRefused) {
  const auto check = [](CLI::App& app, CLI::Option& option, const Words& words, const std::string& value) {
    EXPECT_NE(Parse(app, option, words).refusal.find(GetName(option) + " is "), std::string::npos)
        << Joined(words) << ": " << value << " was taken";
  };
  ForEachValue(check, {"0x10", "nan", "inf", " 1", "+1"}, IsNumber);
}

// An option that may be given several times takes one value at a time: a word after its value is not a second value.
TEST(CommandLine, AWordBehindAValue_isNotASecondValue) {
  size_t repeated = 0;
  ForEachProgram([&](CLI::App& app) {
    ForEachCommand(app, {}, [&](CLI::App& command, const Words& path) {
      for (CLI::Option* option : command.get_options()) {
        if (option->get_items_expected_max() < 2) continue;
        ++repeated;
        Words words = path;
        words.insert(words.end(), {GetName(*option), "1", GetName(*option), "2", "3"});
        const Outcome outcome = Parse(app, *option, words);
        if (command.get_subcommands({}).empty()) {
          EXPECT_EQ(option->count(), 2u) << Joined(words);
        } else {
          EXPECT_NE(outcome.refusal.find("no command '3'"), std::string::npos) << Joined(words) << outcome.refusal;
        }
      }
    });
  });
  EXPECT_EQ(repeated, 15u);
}

TEST(CommandLine, ZerosBeforeANumber_areNotOctal) {
  const std::unique_ptr<ProgramCommands> commands = MakeCommands();
  CLI::App& app = commands->app();
  CLI::Option* users = app.get_subcommand("synth")->get_option("--users");
  EXPECT_EQ(Parse(app, *users, {"synth", "--users", "010"}).value, "10");
  EXPECT_EQ(Parse(app, *users, {"synth", "--users", "000"}).value, "0");
}

}  // namespace
}  // namespace wisp::tools::command_line_test
