// The command line of `wisp`, whole: what the program runs, and what tests walk through.
#ifndef WISP_TOOLS_WISP_COMMAND_LINE_H_
#define WISP_TOOLS_WISP_COMMAND_LINE_H_

#include <CLI/CLI.hpp>

#include <functional>

namespace wisp::tools {

// Does what the command line says. Returns the exit code of the program.
int RunCommandLine(int argc, char** argv);

// Hands all commands and options to `use`. Parsing fills the variables behind them and runs no command.
void UseCommandLine(const std::function<void(CLI::App&)>& use);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_COMMAND_LINE_H_
