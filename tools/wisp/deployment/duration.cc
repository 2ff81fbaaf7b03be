#include "tools/wisp/deployment/duration.h"

#include <charconv>
#include <string_view>
#include <utility>

#include "runtime/core/text.h"
#include "runtime/data/date_time.h"

namespace wisp::tools {

Result<uint64_t> ParseDuration(const char* option, const std::string& text) {
  constexpr uint64_t kDay = 86400, kMost = 1000 * 365 * kDay;
  constexpr std::pair<std::string_view, uint64_t> kUnits[] = {
      {"second", 1},      {"minute", 60},       {"hour", 3600},      {"day", kDay},
      {"week", 7 * kDay}, {"month", 30 * kDay}, {"year", 365 * kDay}};
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view rest(end, static_cast<size_t>(text.data() + text.size() - end));
  if (rest.starts_with(' ')) rest.remove_prefix(1);
  if (rest.ends_with('s') && number != 1) rest.remove_suffix(1);
  for (const auto& [name, seconds] : kUnits) {
    if (error == std::errc() && rest == name && number > 0 && number <= kMost / seconds) return number * seconds;
  }
  return InvalidArgument(option, " is '", OneLine(text),
                         "', allowed is a number and second, minute, hour, day, week, month or year: \"1 year\"");
}

Result<int64_t> ParseMoment(const std::string& option, const std::string& text) {
  constexpr size_t kDayAlone = std::string_view("2026-01-01").size();
  int64_t second = 0;
  const bool read = data::ParseTime(text, 1, second);
  if (read && text.size() == kDayAlone && text[4] == '-') second += 86400 - 1;  // the end of that day
  if (read && second > 0) return second;
  return InvalidArgument(option, " is '", OneLine(text),
                         "', allowed is a day such as 2026-01-01, or seconds since 1970 above 0");
}

}  // namespace wisp::tools
