#include "tools/wisp/life/duration.h"

#include <charconv>
#include <chrono>
#include <string_view>
#include <utility>

#include "runtime/core/text.h"

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
  const auto fault = [&] {
    return InvalidArgument(option, " is '", OneLine(text),
                           "', allowed is a day such as 2026-01-01, or seconds since 1970 above 0");
  };
  const char *at = text.data(), *const end = at + text.size();
  int64_t number = 0;
  const auto take = [&](int64_t& value) {
    const auto [rest, error] = std::from_chars(at, end, value);
    at = rest;
    return error == std::errc();
  };
  if (!take(number)) return fault();
  if (at == end) return number > 0 ? Result<int64_t>(number) : fault();
  int64_t month = 0, day = 0;
  const auto dash = [&] { return at != end && *at++ == '-'; };
  if (text.size() != 10 || !dash() || !take(month) || !dash() || !take(day) || at != end) return fault();
  const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(number)),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day)));
  if (!date.ok() || number < 1970) return fault();
  return (std::chrono::sys_days(date).time_since_epoch().count() + 1) * int64_t{86400} - 1;
}

}  // namespace wisp::tools
