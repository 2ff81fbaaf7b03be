// The date and the time for people to read. Do not use them as a protocol's clock.
#ifndef WISP_RUNTIME_CORE_DATE_H_
#define WISP_RUNTIME_CORE_DATE_H_

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>

namespace wisp {

inline constexpr int64_t kSecondsPerDay = 86400;

namespace date_parts {

// Appends the last `digits` digits of a number >= 0, with leading zeros.
inline void Append(std::string& text, int number, size_t digits) {
  text.append(digits, '0');
  for (size_t at = text.size(); number > 0 && digits > 0; number /= 10, --digits)
    text[--at] = static_cast<char>('0' + number % 10);
}

inline std::tm Utc(std::time_t seconds) {
  std::tm parts{};
#if defined(_WIN32)
  gmtime_s(&parts, &seconds);
#else
  gmtime_r(&seconds, &parts);
#endif
  return parts;
}

}  // namespace date_parts

// In UTC: 2026-05-01.
inline std::string UtcDate(std::time_t seconds) {
  const std::tm parts = date_parts::Utc(seconds);
  std::string text;
  date_parts::Append(text, 1900 + parts.tm_year, 4);
  date_parts::Append(text += '-', 1 + parts.tm_mon, 2);
  date_parts::Append(text += '-', parts.tm_mday, 2);
  return text;
}

// In UTC: 2026-05-01T12:30:00.
inline std::string UtcTime(std::time_t seconds) {
  const std::tm parts = date_parts::Utc(seconds);
  std::string text = UtcDate(seconds);
  date_parts::Append(text += 'T', parts.tm_hour, 2);
  date_parts::Append(text += ':', parts.tm_min, 2);
  date_parts::Append(text += ':', parts.tm_sec, 2);
  return text;
}

inline std::string Today() { return UtcDate(std::time(nullptr)); }

}  // namespace wisp

#endif  // WISP_RUNTIME_CORE_DATE_H_
