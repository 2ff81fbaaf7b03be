// Splits events by their order: leave-one-out (the last event of each user is for testing, the one before it for
// validation, the rest for training; views into the sequences, no copies), and by time. It knows nothing of windows,
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
  kTest,     // for the final training, when validation no longer chooses anything
  kValidationAndTest,
};

struct HeldOutItem {
  uint32_t user;
  std::span<const int32_t>
      history;  // all events of the user before the item; for the test this includes the validation's item
  int32_t item;
};

struct Split {
  std::vector<std::span<const int32_t>> train;  // one span per user of the sequences, in their order
  std::vector<HeldOutItem> validation;          // empty unless kValidationAndTest
  std::vector<HeldOutItem> test;                // empty for kNothing
  uint64_t not_held_out = 0;  // users with too few events to hold some out and keep two: trained on whole, not tested
  uint64_t untrainable = 0;   // users with fewer than two training events: nothing to predict from
};

// A moment that splits a log's events. An event's side depends on its own time alone: removing a record moves no event
// of another one to the other side.
struct Moment {
  int64_t second = 0;             // seconds since 1970
  uint32_t times_per_second = 1;  // the log's unit
  // A time beyond kLatestSecond is invalid in this unit, and lies after no moment.
  bool IsBefore(int64_t time) const {
    return time >= (second + 1) * times_per_second && time / times_per_second <= kLatestSecond;
  }
};

// A copy of the sequences with only those events that are not after the moment; all events if there are no times.
Sequences EventsUntil(const Sequences& sequences, const Moment& moment);

// `sequences` must outlive the result.
Split MakeSplit(const Sequences& sequences, HoldOut hold_out);

}  // namespace wisp::data

#endif  // WISP_RUNTIME_DATA_SPLIT_H_
