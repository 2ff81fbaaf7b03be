// Writes errors about existing options as sentences that name the option, its value and what is allowed.
// (recipe/known_words.h handles names that do not exist.)
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

// Gives `check` the message `allowed`, such as "allowed are 0 to 1024". The help shows what `check` shows.
CLI::Validator Saying(const CLI::Validator& check, const std::string& allowed);

// Accepts a number from `least` to `most`.
template <class Number>
CLI::Validator Within(Number least, Number most) {
  std::ostringstream allowed;
  allowed << "allowed are " << least << " to " << most;
  return Saying(CLI::Range(least, most), allowed.str());
}

// Makes all numeric options of a command and of its sub-commands refuse values that are not decimal numbers. The parser
// alone reads a minus as a large number, 010 as 8, and an empty text as nothing at all.
void CheckNumbers(CLI::App& app);

// Accepts one of the words.
CLI::Validator OneOf(const std::vector<std::string>& words);

// Writes the sentence for the error that the parser threw. It names the help of the last command, by its whole name:
// "...; see wisp privacy decoding --help".
std::string UsageFault(const CLI::App& app, const CLI::ParseError& error);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_OPTION_FAULTS_H_
