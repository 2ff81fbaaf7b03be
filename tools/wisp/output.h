// What commands print: results on standard output as text or JSON, progress on standard error.
#ifndef WISP_TOOLS_WISP_OUTPUT_H_
#define WISP_TOOLS_WISP_OUTPUT_H_

#include <chrono>
#include <cstdint>
#include <string>

namespace wisp::tools {

// A bar on a terminal; elsewhere a line at each tenth.
class Progress {
 public:
  explicit Progress(std::string title);
  ~Progress();
  void Update(uint64_t done, uint64_t total, const std::string& suffix);

 private:
  std::string title_;
  bool terminal_, drawn_ = false;
  uint64_t last_tenth_ = 0;
  std::chrono::steady_clock::time_point start_;
};

std::string Fixed(double value, int digits);

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_OUTPUT_H_
