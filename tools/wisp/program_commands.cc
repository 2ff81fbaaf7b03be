#include "tools/wisp/program_commands.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "runtime/core/text.h"
#include "tools/wisp/help.h"
#include "tools/wisp/option_names.h"
#include "tools/wisp/options.h"
#include "tools/wisp/recipe/known_words.h"
#include "tools/wisp/system.h"

namespace wisp::tools {
namespace {

// Flushes standard output, and returns an error if some of it could not be written.
Status FlushedOutput() {
  const bool failed_before = std::ferror(stdout) != 0;
  if (std::fflush(stdout) == 0 && !failed_before) return OkStatus();
  return IoError("standard output could not be written", failed_before ? "" : std::string(": ") + std::strerror(errno),
                 ": the output of this command is lost, but its work is done and its charges stay");
}

// With WISP_EXIT_CODES=c, as Python's package sets it, exit code 3 is split as in the C interface: 3 for data, 5 if the
// system refused (such as a missing file), and 6 for what this build cannot do.
int ExitCode(const Status& status) {
  const bool as_in_c = TellsAsInC();
  switch (status.code()) {
    case StatusCode::kOk:
      return 0;
    case StatusCode::kInvalidArgument:
      return 2;
    case StatusCode::kInvalidData:
      return 3;
    case StatusCode::kIo:
      return as_in_c ? 5 : 3;
    case StatusCode::kUnsupported:
      return as_in_c ? 6 : 3;
    case StatusCode::kPrivacyRefused:
      return 4;
    case StatusCode::kCancelled:
      return 130;
    case StatusCode::kTooEarly:
      return 8;
  }
  return 1;
}

}  // namespace

ProgramCommands::ProgramCommands(const char* name, const std::string& purpose)
    : app_(std::string(name) + ": " + purpose +
               "\n"
               "Exit codes: 0 done, 2 usage, 3 data, 4 a refused privacy request or a refuted claim, 8 too early, 130 "
               "cancelled, 1 a fault of the program.",
           name) {
  app_.formatter(std::make_shared<HelpText>());
  app_.set_help_flag("-h,--help", "Show what most people need");
  app_.set_help_all_flag("--help-all", "Show every option");
  app_.set_version_flag("--version", std::string(name) + " " WISP_VERSION);
  app_.require_subcommand(1);
}

// Prints the error, if there is one, and returns the exit code.
int ProgramCommands::End(Status status) {
  if (const Status printed = FlushedOutput(); status.ok()) status = printed;
  if (!status.ok())
    std::fprintf(stderr, "%s: %s\n", app_.get_name().c_str(), OneLine(InProgramWords(status.message())).c_str());
  return ExitCode(status);
}

int ProgramCommands::Run(int argc, char** argv) {
  if (const std::string fault = UnknownWord(app_, argc, argv); !fault.empty()) {
    std::fprintf(stderr, "%s: %s\n", app_.get_name().c_str(), OneLine(fault).c_str());
    return 2;
  }
  try {
    app_.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      app_.exit(error);
      return End(OkStatus());
    }
    std::fprintf(stderr, "%s: %s\n", app_.get_name().c_str(), Printable(UsageFault(app_, error)).c_str());
    return 2;
  }
  return End(chosen_.action());
}

int RunProgram(std::unique_ptr<ProgramCommands> (*make)(), int argc, char** argv) {
  TakeCommandLine(argc, argv);
  ExitWithStarter();
  std::string name = "wisp";
  try {
    const std::unique_ptr<ProgramCommands> commands = make();
    name = commands->app().get_name();
    return commands->Run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: there is not enough memory; %sfewer --threads take less\n", name.c_str(),
                 name == "wisp" ? "wisp inspect MODEL --memory tells what a model takes, and " : "");
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), Printable(error.what()).c_str());
    return 1;
  }
}

}  // namespace wisp::tools
