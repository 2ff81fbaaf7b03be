// Parts of a checkpoint that the trainer and a whole run share: numbers as texts that read back equal, streams, sizes,
// and the check that a ledger has paid.
#ifndef WISP_RUNTIME_TRAIN_CHECKPOINT_PARTS_H_
#define WISP_RUNTIME_TRAIN_CHECKPOINT_PARTS_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/arena.h"
#include "runtime/model/checkpoint.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/privacy/noise/random.h"
#include "runtime/train/optimizer.h"

namespace wisp::checkpoint_parts {

// The shortest text that reads back as the same number.
std::string Text(double value);
std::string Text(const OptimizerOptions& options);

// A run's identity without the number of threads. That number decides the bits of a run, and the bits of secure noise
// never repeat anyway.
std::string WithoutThreads(std::string config);
// The words of two such texts whose values differ, for a message: "threads (2, here 1), batch (32, here 64)".
std::string ListDifferences(const std::string& then, const std::string& now);

Status CheckSize(const char* what, size_t found, size_t needed);
std::vector<float> Copy(const AlignedArray<float>& array);

// Refuses a ledger that was not charged for the steps of a checkpoint, because another ledger or an old copy would
// report less than was spent. kPrivacyRefused unless the checkpoint's run was charged at least `steps` steps of this
// purpose.
Status CheckCharged(const privacy::Ledger& ledger, const Checkpoint& checkpoint, std::string_view purpose,
                    uint64_t steps);

// CheckCharged by the checkpoint's receipt, if it has one. Counting charges is not enough: a copy of the ledger that
// continued by itself may have as many for a run of that name.
Status CheckPaid(const privacy::Ledger& ledger, const Checkpoint& checkpoint);

// Refuses another declaration of tuning when a run resumes. The ledger knows from the run's name what was chosen by
// looking at the data, and a resumed run keeps its name: kInvalidArgument if `run` declares something else.
Status CheckTuning(const Checkpoint& checkpoint, const std::string& run);

// A trainer's streams: the first samples, the others draw the workers' noise. Nothing of secure streams is saved.
using Streams = std::vector<privacy::RandomStream*>;
void Save(const Streams& streams, Checkpoint& checkpoint);
// Checks that Restore will succeed; changes nothing.
Status Check(const Streams& streams, const Checkpoint& checkpoint);
Status Restore(const Streams& streams, const Checkpoint& checkpoint);

}  // namespace wisp::checkpoint_parts

#endif  // WISP_RUNTIME_TRAIN_CHECKPOINT_PARTS_H_
