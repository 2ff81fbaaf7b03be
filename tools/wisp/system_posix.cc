#include "tools/wisp/system.h"
#if !defined(_WIN32)

#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "runtime/core/platform.h"

namespace wisp::tools {

void TakeCommandLine(int&, char**&) {}

bool IsErrorTerminal() { return isatty(STDERR_FILENO) == 1; }

void ExitWithStarter() {
#ifdef __linux__
  const char* starter = std::getenv("WISP_ENDS_WITH");
  if (starter == nullptr) return;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (std::to_string(getppid()) != starter) std::exit(1);  // the starter has ended already
#endif
}

std::string FindOwnFolder() {
  const std::string own = platform::ReadLink("/proc/self/exe");
  return own.substr(0, platform::FindName(own));
}

void Become(const std::string& program, std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
}

}  // namespace wisp::tools

#endif  // !defined(_WIN32)
