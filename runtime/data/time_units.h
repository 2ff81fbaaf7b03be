// Which unit the times of a log seem to have. A log with times of another unit than it is read with has its events in
// order, and its sessions, days and ages wrong. Only to be said: nothing is decided by it, for it tells of the rows.
//
//   TimeUnits seen;
//   for (const Event& e : events) seen.Look(e.time);
//   if (const std::string warning = seen.Warning(units.times_per_second); !warning.empty()) Show(warning);
#ifndef WISP_RUNTIME_DATA_TIME_UNITS_H_
#define WISP_RUNTIME_DATA_TIME_UNITS_H_

#include <cstdint>
#include <string>

namespace wisp::data {

struct TimeUnits {
  // Of times since 2001: those that look like seconds and like milliseconds, by their size.
  uint64_t in_seconds = 0, in_milliseconds = 0;

  void Look(int64_t time);
  // A sentence where both are there, or where the log is read with so many times to the second and most of its times
  // are of another unit; empty where all is as it should be. 0 to the second: only the order of times counts.
  std::string Warning(uint32_t times_per_second) const;
};

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_TIME_UNITS_H_
