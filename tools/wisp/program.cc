// The main function of the program `wisp`.
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>

#include "runtime/core/text.h"
#include "tools/wisp/command_line.h"

namespace {

// A process that starts the program for its own use, as Python's package does, gives its id in WISP_ENDS_WITH. When
// that process ends, the program is asked to stop: nobody waits for its results, so it must not spend more budget.
void EndWithStarter() {
#ifdef __linux__
  const char* starter = std::getenv("WISP_ENDS_WITH");
  if (starter == nullptr) return;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (std::to_string(getppid()) != starter) std::exit(1);  // the starter has ended already
#endif
}

}  // namespace

int main(int argc, char** argv) {
  EndWithStarter();
  try {
    return wisp::tools::RunCommandLine(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr,
                 "wisp: there is not enough memory; wisp inspect MODEL --memory tells what a model takes, and fewer "
                 "--threads take less\n");
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "wisp: %s\n", wisp::Printable(error.what()).c_str());
    return 1;
  }
}
