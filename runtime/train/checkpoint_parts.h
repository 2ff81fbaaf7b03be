// What the trainer and a whole run do with checkpoints: texts that read back as the same numbers, streams, sizes, and
// whether a ledger has paid.
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

// Shortest text that reads back as the same number.
std::string Text(double value);
std::string Text(const OptimizerOptions& options);

// The trainers' text without the number of records, which older checkpoints of private runs hold: nobody is to read it
// there, and a log that has grown is no reason to refuse.
std::string WithoutRecords(std::string config);
// The same without the number of threads: it decides the bits of a run, and those of secure noise never come again.
std::string WithoutThreads(std::string config);
// The words of two such texts whose values differ, for a sentence: "threads (2, here 1), batch (32, here 64)".
std::string WhatDiffers(const std::string& then, const std::string& now);

Status CheckSize(const char* what, size_t found, size_t needed);
std::vector<float> Copy(const AlignedArray<float>& array);

// A ledger that was not charged for the steps of a checkpoint, another one or an old copy, would report less than was
// spent. kPrivacyRefused unless the checkpoint's run was charged at least `steps` steps of this purpose.
Status CheckCharged(const privacy::Ledger& ledger, const Checkpoint& checkpoint, std::string_view purpose,
                    uint64_t steps);

// The same by the checkpoint's receipt, where it has one: a ledger with as many charges to a run of that name may be a
// copy from before that went on by itself.
Status CheckPaid(const privacy::Ledger& ledger, const Checkpoint& checkpoint);

// The ledger knows what was chosen by looking at the data from the run's name, and a run that goes on keeps its own:
// kInvalidArgument where `run` declares something else.
Status CheckTuning(const Checkpoint& checkpoint, const std::string& run);

// The streams of a trainer: the first samples, the others are the workers' noise. Of secure ones nothing is saved.
using Streams = std::vector<privacy::RandomStream*>;
void Save(const Streams& streams, Checkpoint& checkpoint);
// Whether Restore can; nothing has happened yet.
Status Check(const Streams& streams, const Checkpoint& checkpoint);
Status Restore(const Streams& streams, const Checkpoint& checkpoint);

}  // namespace wisp::checkpoint_parts

#endif  // WISP_RUNTIME_TRAIN_CHECKPOINT_PARTS_H_
