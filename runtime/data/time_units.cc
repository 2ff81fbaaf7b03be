#include "runtime/data/time_units.h"

#include "runtime/core/text.h"
#include "runtime/data/sequences.h"

namespace wisp::data {
namespace {

constexpr uint32_t kMillisecond = 1000;  // units in a second

}  // namespace

void TimeUnits::Look(int64_t time) {
  constexpr int64_t kFirst = 1000000000;  // 2001
  const auto within = [&](int64_t second) { return time >= kFirst * second && time <= kLatestSecond * second; };
  in_seconds += within(1);
  in_milliseconds += within(kMillisecond);
}

std::string TimeUnits::Warning(uint32_t times_per_second) const {
  if (in_seconds > 0 && in_milliseconds > 0)
    return "times of " + Counted(in_seconds, "event") + " look like seconds, of " + Counted(in_milliseconds, "event") +
           " like milliseconds: a log has one unit, or the order of its events is wrong";
  const bool wrong =
      (times_per_second == 1 && in_milliseconds > 0) || (times_per_second == kMillisecond && in_seconds > 0);
  if (!wrong) return "";
  return "times of " + Counted(in_seconds + in_milliseconds, "event") + " look like " +
         (in_seconds > 0 ? "seconds" : "milliseconds") + ", and are read with " + std::to_string(times_per_second) +
         " to the second: sessions, days and what is late come out wrong. Seconds have 1 to the second, milliseconds "
         "1000 (`times_per_second`)";
}

}  // namespace wisp::data
