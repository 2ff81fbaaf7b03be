// Guesses the unit of a log's times. If times are read in another unit than theirs, events keep their order, but
// sessions, days and ages are wrong. The guess is only reported and decides nothing, because it depends on the rows.
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
  // Numbers of times since 2001 that look like seconds and like milliseconds, by their size.
  uint64_t in_seconds = 0, in_milliseconds = 0;

  void Look(int64_t time);
  // A sentence if both units occur, or if most times are of another unit than `times_per_second`; empty otherwise. 0
  // means that only the order of times counts.
  std::string Warning(uint32_t times_per_second) const;
};

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_TIME_UNITS_H_
