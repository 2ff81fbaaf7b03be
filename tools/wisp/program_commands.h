// A command line with commands, its help and its exit codes, for the programs wisp and wisp-lab.
//
//   const std::unique_ptr<ProgramCommands> commands = MakeCommands();
//   return commands->Run(argc, argv);
#ifndef WISP_TOOLS_WISP_PROGRAM_COMMANDS_H_
#define WISP_TOOLS_WISP_PROGRAM_COMMANDS_H_

#include <CLI/CLI.hpp>

#include <memory>
#include <string>

#include "tools/wisp/options.h"

namespace wisp::tools {

class ProgramCommands {
 public:
  virtual ~ProgramCommands() = default;

  // Parses the command line, runs its command, and returns the program's exit code. Errors go to standard error.
  int Run(int argc, char** argv);

  // All commands and options. Parsing fills the variables behind them and runs no command: tests walk through it.
  CLI::App& app() { return app_; }

 protected:
  ProgramCommands(const char* name, const std::string& purpose);

  CLI::App app_;
  Chosen chosen_;

 private:
  int End(Status status);
};

// The commands of `wisp`.
std::unique_ptr<ProgramCommands> MakeCommands();
// The commands of `wisp-lab`, defined in tools/lab.
std::unique_ptr<ProgramCommands> MakeLabCommands();

// The body of main: runs the commands, and turns exceptions into sentences and the exit code 1.
int RunProgram(std::unique_ptr<ProgramCommands> (*make)(), int argc, char** argv);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_PROGRAM_COMMANDS_H_
