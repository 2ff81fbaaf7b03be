// What commands print: results on standard output as text or JSON, progress on standard error.
#ifndef WISP_TOOLS_WISP_OUTPUT_H_
#define WISP_TOOLS_WISP_OUTPUT_H_

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace wisp::tools {

// A bar on a terminal; elsewhere a line at the first update, at each tenth, and where nothing was shown for ten seconds.
class Progress {
 public:
  explicit Progress(std::string title);
  ~Progress();
  void Update(uint64_t done, uint64_t total, const std::string& suffix);

 private:
  std::string title_;
  bool terminal_, drawn_ = false;
  uint64_t last_tenth_ = 0;
  std::chrono::steady_clock::time_point start_, shown_;
};

std::string Fixed(double value, int digits);
// What stands behind the last '/'.
std::string FileName(const std::string& path);

// Of the figures that a private run prints: the names of those that were computed from the data without noise. No guarantee
// covers them; they are for the device's owner only.
std::vector<std::string> NotPrivate(const nlohmann::ordered_json& figures);
// The same as a sentence, for people.
std::string NotPrivateInWords(const nlohmann::ordered_json& figures);
// Every name: of what is computed from data or weights that nothing protects.
std::vector<std::string> AllOf(const nlohmann::ordered_json& figures);
// What stands below such figures, for people.
inline constexpr char kLocalOnly[] = "local only: computed from the data, not private, for this device's owner";

}  // namespace wisp::tools

#endif  // WISP_TOOLS_WISP_OUTPUT_H_
