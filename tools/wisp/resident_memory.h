// Measures which memory of this process is resident, as the system counts it.
#ifndef WISP_TOOLS_WISP_RESIDENT_MEMORY_H_
#define WISP_TOOLS_WISP_RESIDENT_MEMORY_H_

#include <cstdint>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace wisp::tools {

struct ResidentMemory {
  int64_t own_bytes = 0;     // private to the process
  int64_t mapped_bytes = 0;  // pages of files, among them its program and libraries
};

// Returns nullopt where there is no /proc/self/status (Linux has it from 4.5 on).
inline std::optional<ResidentMemory> MeasureResidentMemory() {
  std::ifstream status("/proc/self/status");
  ResidentMemory memory;
  int found = 0;
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    std::string name;
    int64_t kilobytes = 0;
    if (!(words >> name >> kilobytes)) continue;
    if (name == "RssAnon:") memory.own_bytes = 1024 * kilobytes, ++found;
    if (name == "RssFile:") memory.mapped_bytes = 1024 * kilobytes, ++found;
  }
  if (found != 2) return std::nullopt;
  return memory;
}

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_RESIDENT_MEMORY_H_
