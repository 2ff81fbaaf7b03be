// Which session each event of one user is in, where the log was read before: sessions that were two then stay two,
// whatever comes late. docs/algorithms.md, section 11, has the rule and why no record changes by another's absence.
//
//   const std::vector<uint32_t> session_of = CutSessions(events, gap);
#ifndef WISP_RUNTIME_DATA_SESSIONS_H_
#define WISP_RUNTIME_DATA_SESSIONS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/data/sequences.h"

namespace wisp::data {

// Says that a session or a day may have an event of that time. Training leaves others out.
inline bool IsTimeOfUnit(int64_t time, const Units& units) {
  return time >= 0 && time / int64_t{units.times_per_second} <= kLatestSecond;
}

struct ArrivedEvent {
  int64_t time = 0;
  uint32_t arrival = 0;  // its place in the log: a later one is greater
  uint32_t reading = 0;  // when the log was first read with it: never decreases with the arrival
};

// Of events of one user, by time. The session of each, numbered from 0 in the order in which they began to be known. In
// a log that was never read before they are the events without a pause of more than `gap` between neighbours.
std::vector<uint32_t> CutSessions(std::span<const ArrivedEvent> events, int64_t gap);

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_SESSIONS_H_
