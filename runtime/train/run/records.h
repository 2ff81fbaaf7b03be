// Training records and ranking cases from users' sequences (leave-one-out: docs/algorithms.md, section 8). They are
// views, not copies.
#ifndef WISP_RUNTIME_TRAIN_RUN_RECORDS_H_
#define WISP_RUNTIME_TRAIN_RUN_RECORDS_H_

#include <cstdint>
#include <vector>

#include "runtime/core/status.h"
#include "runtime/data/split.h"
#include "runtime/layers/record.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/train/run/evaluate.h"

namespace wisp {

using data::HoldOut;

// The definition of one record of a log. kInvalidArgument for a gap out of range, or for a unit that has no gap.
// kPrivacyRefused for kInteraction: one event has nothing before or after it, so a recommender learns nothing from it
// alone. If it were trained together with the event before, each event would be in two records.
Result<privacy::RecordSpec> MakeEventRecord(const privacy::RecordSpec::Events& events);
// Returns the units by which the events of a log are grouped into these records. Its errors are those of
// MakeEventRecord.
Result<data::Units> MakeUnits(const privacy::RecordSpec::Events& events);

struct RecordSet {
  // One per user (or smaller unit) with at least two training items: inputs s[..-1], targets s[1..].
  std::vector<Record> records;
  std::vector<RankingCase> validation;  // empty unless kValidationAndTest
  std::vector<RankingCase> test;        // empty for kNothing
  uint64_t too_short = 0;               // users without a training record
};

// Keeps the newest max_length transitions of each user. `sequences` must outlive the result.
RecordSet MakeRecords(const data::Sequences& sequences, uint32_t max_length, HoldOut hold_out);

// A log as evaluation divides it: the events of each record that may train, and the cases. `sequences` must outlive it.
struct DividedLog {
  std::vector<std::span<const int32_t>> train;
  std::vector<RankingCase> cases;
};

// One case for each record of at least `needed` events, and more than `from_end`. Its target is the event at that
// distance from the end (1 is the last); its history is what came before, which may train. Other records train whole.
DividedLog DivideFromEnd(const data::Sequences& sequences, size_t from_end, size_t needed);

// Events up to the moment may train. A record's case is its first event after the moment that has a history; its
// history is what came before. Needs times.
DividedLog DivideAt(const data::Sequences& sequences, const data::Moment& moment);

// The steps of so many passes: ceil(epochs * records / expected_batch), 0 for no epochs. kInvalidArgument unless 0 <=
// epochs <= 1e6, because other values would make an endless run that keeps charging.
Result<uint64_t> EpochsToSteps(double epochs, double num_records, uint32_t expected_batch);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RUN_RECORDS_H_
