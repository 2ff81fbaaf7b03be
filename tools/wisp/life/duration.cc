#include "tools/wisp/life/duration.h"

#include <charconv>
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

}  // namespace wisp::tools
