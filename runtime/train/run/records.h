// From users' sequences to training records and ranking cases (leave-one-out: docs/algorithms.md, section 8). Views, no
// copies.
#ifndef WISP_RUNTIME_TRAIN_RUN_RECORDS_H_
#define WISP_RUNTIME_TRAIN_RUN_RECORDS_H_

#include <cstdint>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/data/split.h"
#include "runtime/layers/recommender.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/train/run/evaluate.h"

namespace wisp {

using data::HoldOut;

// What one record of a log is, from what people say of it. kInvalidArgument for a gap out of range, or of a unit that
// has none. kPrivacyRefused for kInteraction: one event alone has nothing that it follows and nothing that follows it,
// so a recommender learns nothing from it; and were it trained together with the event before, each would be in two
// records.
Result<privacy::RecordSpec> RecordOfEvents(const privacy::RecordSpec::Events& events);
// How the events of a log become such records; the same errors.
Result<data::Units> UnitsOf(const privacy::RecordSpec::Events& events);

struct RecordSet {
  // One per user (or smaller unit) with at least two training items: inputs s[..-1], targets s[1..].
  std::vector<Record> records;
  std::vector<RankingCase> validation;  // empty unless kValidationAndTest
  std::vector<RankingCase> test;        // empty for kNothing
  uint64_t too_short = 0;               // users without a training record
};

// Keeps the newest max_length transitions of each user. `sequences` must outlive the result.
RecordSet MakeRecords(const data::Sequences& sequences, uint32_t max_length, HoldOut hold_out);

// Of each record of `needed` events or more, and more than `from_end`: what was wanted is its event so far from the
// end, where 1 is the last, after those before it.
std::vector<RankingCase> CasesFromEnd(const data::Sequences& sequences, size_t from_end, size_t needed);

// Steps of so many passes: ceil(epochs * records / expected_batch), 0 for no epochs. kInvalidArgument unless 0 <=
// epochs <= 1e6: what is no such number would make an endless run, which charges on and on.
Result<uint64_t> StepsOfEpochs(double epochs, double num_records, uint32_t expected_batch);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_RECORDS_H_
