// The whole command line of `wisp`. The program runs it, and tests walk through it.
#ifndef WISP_TOOLS_WISP_COMMAND_LINE_H_
#define WISP_TOOLS_WISP_COMMAND_LINE_H_

#include <CLI/CLI.hpp>

#include <functional>

namespace wisp::tools {

// Runs the command line and returns the program's exit code.
int RunCommandLine(int argc, char** argv);

// Hands all commands and options to `use`. Parsing fills the variables behind them and runs no command.
void UseCommandLine(const std::function<void(CLI::App&)>& use);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_COMMAND_LINE_H_
