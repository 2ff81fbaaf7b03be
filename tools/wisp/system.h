// A program's needs of the operating system. The library has runtime/core/platform.h.
#ifndef WISP_TOOLS_WISP_SYSTEM_H_
#define WISP_TOOLS_WISP_SYSTEM_H_

#include <string>
#include <vector>

namespace wisp::tools {

// The words of the command line in UTF-8, and output that is neither translated nor shown in another code page. Call it
// first. The words live as long as the process.
void TakeCommandLine(int& argc, char**& argv);

bool IsErrorTerminal();  // standard error is a terminal

// A process that starts the program for its own use, as Python's package does, gives its id in WISP_ENDS_WITH. When
// that process ends, the program is asked to stop: nobody waits for its results, so it must not spend more budget.
void ExitWithStarter();

// The folder of this program with a separator; empty if the system does not say.
std::string FindOwnFolder();

// Becomes `program` with these words. Returns only where that fails, with errno.
void Become(const std::string& program, std::vector<std::string> words);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_SYSTEM_H_
