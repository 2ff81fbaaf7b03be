// The main function of the program `wisp`.
#include "tools/wisp/program_commands.h"

int main(int argc, char** argv) { return wisp::tools::RunProgram(wisp::tools::MakeCommands, argc, argv); }
