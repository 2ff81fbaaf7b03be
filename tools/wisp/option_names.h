// Translates the library's sentences into the program's words. The library calls a setting by its name in C, between
// grave accents; the program has an option for it.
//
//   InProgramWords("private training needs a ledger (`ledger_path`)")   // "... (--ledger)"
#ifndef WISP_TOOLS_WISP_OPTION_NAMES_H_
#define WISP_TOOLS_WISP_OPTION_NAMES_H_

#include <string>

namespace wisp::tools {

// Returns true if WISP_EXIT_CODES=c is set, as Python's package sets it: messages then use the words of C.
bool TellsAsInC();

// Replaces names of settings by the program's options; unchanged if TellsAsInC().
std::string InProgramWords(std::string sentence);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_OPTION_NAMES_H_
