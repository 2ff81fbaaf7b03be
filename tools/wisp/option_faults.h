// What is wrong with options that exist, in sentences that name the option, its value and what is allowed. (Names that
// do not exist: recipe/known_words.h.)
//
//   c->add_option("--threads", threads)->check(Within(0, 1024));
//   catch (const CLI::ParseError& error) { Say(UsageFault(app, error)); }
//   // "--threads is 5000, allowed are 0 to 1024; see wisp train --help"
#ifndef WISP_TOOLS_WISP_OPTION_FAULTS_H_
#define WISP_TOOLS_WISP_OPTION_FAULTS_H_

#include <CLI/CLI.hpp>

#include <sstream>
#include <string>
#include <vector>

namespace wisp::tools {

// `allowed`: "allowed are 0 to 1024". The help shows what `check` shows.
CLI::Validator Saying(const CLI::Validator& check, const std::string& allowed);

// A number from least to most.
template <class Number>
CLI::Validator Within(Number least, Number most) {
  std::ostringstream allowed;
  allowed << "allowed are " << least << " to " << most;
  return Saying(CLI::Range(least, most), allowed.str());
}

// Lets the options of a command and of those below it that take a number refuse whatever is not one in decimal. The
// parser itself makes a large number of a minus, 8 of 010, and nothing at all of an empty text.
void CheckNumbers(CLI::App& app);

// One of the words.
CLI::Validator OneOf(const std::vector<std::string>& words);

// The sentence for what the parser threw, with the help of the command that was named last, by its whole name:
// "...; see wisp privacy decoding --help".
std::string UsageFault(const CLI::App& app, const CLI::ParseError& error);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_OPTION_FAULTS_H_
