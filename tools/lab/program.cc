// The main function of the program `wisp-lab`.
#include "tools/wisp/program_commands.h"

int main(int argc, char** argv) { return wisp::tools::RunProgram(wisp::tools::MakeLabCommands, argc, argv); }
