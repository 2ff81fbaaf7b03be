// The day, for what people read. No clock of a protocol.
#ifndef WISP_RUNTIME_CORE_DATE_H_
#define WISP_RUNTIME_CORE_DATE_H_

#include <cstdint>
#include <ctime>
#include <string>

namespace wisp {

inline constexpr int64_t kSecondsOfDay = 86400;

// Now in UTC, as strftime writes it: 2026-05-01.
inline std::string UtcNow(const char* format) {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  return std::string(text, std::strftime(text, sizeof(text), format, &utc));
}

inline std::string Today() { return UtcNow("%Y-%m-%d"); }

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_DATE_H_
