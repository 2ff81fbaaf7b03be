// Divides events by their order: leave-one-out (the last event of each user is the test, the one before it the
// validation, the rest is for training; views into the sequences, no copies), and by time. Knows nothing of windows,
// records or models.
//
//   const Split split = MakeSplit(data.sequences, HoldOut::kValidationAndTest);
//   for (const HeldOutItem& held : split.test) Rank(held.history, held.item);
#ifndef WISP_RUNTIME_DATA_SPLIT_H_
#define WISP_RUNTIME_DATA_SPLIT_H_

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/data/sequences.h"

namespace wisp::data {

enum class HoldOut {
  kNothing,  // all events are for training
  kTest,     // for the final training, when nothing is chosen by validation any more
  kValidationAndTest,
};

struct HeldOutItem {
  uint32_t user;
  std::span<const int32_t>
      history;  // everything of the user before the item; the test's includes the validation's item
  int32_t item;
};

struct Split {
  std::vector<std::span<const int32_t>> train;  // of each user of the sequences, in their order
  std::vector<HeldOutItem> validation;          // empty unless kValidationAndTest
  std::vector<HeldOutItem> test;                // empty for kNothing
  uint64_t not_held_out = 0;  // users with too few events to give some up and keep two: trained with whole, not tested
  uint64_t untrainable = 0;   // users with fewer than two training events: nothing to predict from
};

// A moment that divides a log's events. What it says of an event hangs on the event's own time alone: taking a record
// away moves no event of another one to the other side.
struct Moment {
  int64_t second = 0;             // since 1970
  uint32_t times_per_second = 1;  // of the log
  // A time beyond kLatestSecond is none in these units, and comes after nothing.
  bool IsBefore(int64_t time) const {
    return time >= (second + 1) * times_per_second && time / times_per_second <= kLatestSecond;
  }
};

// The same users with those events alone that do not come after the moment: all of them where there are no times.
Sequences EventsUntil(const Sequences& sequences, const Moment& moment);

// `sequences` must outlive the result.
Split MakeSplit(const Sequences& sequences, HoldOut hold_out);

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_SPLIT_H_
