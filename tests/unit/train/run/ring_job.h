// A small private job on a ring of 20 items: users walk around it, each from a place of its own, 8 items each.
#ifndef WISP_TESTS_UNIT_TRAIN_RUN_RING_JOB_H_
#define WISP_TESTS_UNIT_TRAIN_RUN_RING_JOB_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/data/sequences.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/train/run/job.h"

namespace wisp::test {

inline void AddRingUser(data::Sequences& sequences, size_t user) {
  for (size_t t = 0; t < 8; ++t) sequences.items.push_back(static_cast<int32_t>((user * 7 + t) % 20));
  sequences.offsets.push_back(sequences.items.size());
  sequences.user_keys.push_back(std::to_string(user));
}

inline data::Sequences RingSequences(size_t num_users) {
  data::Sequences sequences;
  for (size_t u = 0; u < num_users; ++u) AddRingUser(sequences, u);
  for (int i = 0; i < 20; ++i) sequences.item_keys.push_back(std::to_string(i));
  return sequences;
}

// `path` is the ledger's.
inline privacy::Ledger OpenRingLedger(const std::string& path) {
  return *privacy::Ledger::Open(path, {.dataset = "ring", .record = privacy::RecordSpec::OfEvents({})});
}

// Phantom clipping with batches of 20. The caller sets the steps or epochs and the goal. Both arguments must outlive
// the job.
inline TrainingJob RingJob(const data::Sequences& sequences, privacy::Ledger& ledger,
                           OutputBias output_bias = OutputBias::kNone) {
  TrainingJob job{.sequences = &sequences};
  job.spec.architecture = UniformArchitecture{.num_items = 20,
                                              .max_length = 8,
                                              .width = 8,
                                              .num_heads = 1,
                                              .num_blocks = 1,
                                              .inner_width = 8,
                                              .output_bias = output_bias};
  job.spec.training = {.method = Method::kPhantom,
                       .sampling = Sampling::kPoisson,
                       .expected_batch = 20,
                       .num_records_public = static_cast<uint32_t>(sequences.num_users()),
                       .num_threads = 1};
  job.spec.training.privacy.ledger = &ledger;
  job.spec.training.privacy.run = "run";
  return job;
}

}  // namespace wisp::test

#endif  // WISP_TESTS_UNIT_TRAIN_RUN_RING_JOB_H_
