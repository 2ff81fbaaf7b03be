// The gains of whole deployments that were measured, as docs/gains.md shows them. tools/lab/reproduce/gains.py writes
// the source from docs/results/gains.jsonl.
#ifndef WISP_RUNTIME_PERSONALISE_MEASURED_GAINS_H_
#define WISP_RUNTIME_PERSONALISE_MEASURED_GAINS_H_

#include <cstdint>
#include <span>

namespace wisp {

struct MeasuredGain {
  const char *data, *differs;  // the data set, and what is different on the device
  const char* carried_by;  // what brings the gain; by_counts and by_bias: releases of successions, of the bias' weight
  bool by_counts = false, by_bias = false;
  uint32_t people = 0, runs = 0;
  double epsilon = 0;
  uint32_t items = 0;
  double noise_to_signal = 0, noise_of_an_item = 0, succession_signal = 0;  // at kTypicalEvents
  // NDCG@10 over the base's, less 1, over all seeds: of what is served, if found_better, else of the newest candidate.
  double lowest = 0, highest = 0;
  bool new_items = false;     // the base lacks items that people choose
  bool found_better = false;  // with all seeds another model than the base is served in the end
};

std::span<const MeasuredGain> MeasuredGains();

}  // namespace wisp

#endif  // WISP_RUNTIME_PERSONALISE_MEASURED_GAINS_H_
