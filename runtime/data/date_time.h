// Parses times of events: numbers in the log's own unit, and dates of ISO 8601. All parsing of times is here.
//
//   int64_t time;
//   if (!ParseTime("2026-11-27T09:30:00+01:00", 1, time)) return Error(kTimeFormats);   // 1795768200
//
// A date is YYYY-MM-DD, alone (midnight) or with a time behind "T" or a blank: hh:mm, hh:mm:ss, hh:mm:ss.fff. Then
// follows Z, an offset (+01:00, +0100, +01) or nothing, which is UTC. A date and time that are both written without
// separators are accepted too, as in 20261127T093000Z; a date without separators and without a time is a number. The
// system's locale and time zone are ignored.
#ifndef WISP_RUNTIME_DATA_DATE_TIME_H_
#define WISP_RUNTIME_DATA_DATE_TIME_H_

#include <cstdint>
#include <string_view>

namespace wisp::data {

// The end of a message about a text that is neither a number nor a date.
inline constexpr std::string_view kTimeFormats =
    "allowed is a number between -9e18 and 9e18, such as 978300760 (seconds), or a date of ISO 8601, such as "
    "2026-11-27T09:30:00Z";

// Parses a whole number, a number with a fraction, which is rounded towards the past (some exports write 8.8e8 or
// 881250949.0), or a date, which counts units since 1970, `per_second` to the second.
bool ParseTime(std::string_view text, uint32_t per_second, int64_t& time);

// Parses a date, not a number.
bool ParseDate(std::string_view text, uint32_t per_second, int64_t& time);

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_DATE_TIME_H_
