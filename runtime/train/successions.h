// Counts of pairs of items that follow each other, released under DP. They raise the scores of a model. With few
// records and a small catalogue they teach more than steps on all weights: a pair is one number, and a pair within the
// noise is dropped.
//
//   sensitivity   each record adds 1/sqrt(n) to each of its n pairs: L2 norm at most 1 (rounded down to the grid). A
//                 pair is an item and the one before it, where the record has the item for the first time
//   released      the noised counts of all pairs of items; threshold, shrinking and scores are post-processing, with
//                 the weights that training starts from
//   ledger        PrivateSuccessions charges one Gaussian mechanism before it looks at a record
//   noise         exact discrete Gaussian, noise_multiplier standard deviations of 1, for every pair, chosen or not
#ifndef WISP_RUNTIME_TRAIN_SUCCESSIONS_H_
#define WISP_RUNTIME_TRAIN_SUCCESSIONS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/served_list.h"
#include "runtime/layers/model_view.h"
#include "runtime/layers/record.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/privacy/noise/random.h"

namespace wisp {

inline constexpr char kSuccessionsPurpose[] = "item successions";

struct SuccessionOptions {
  double noise_multiplier = 0;
  privacy::Ledger* ledger = nullptr;  // required
  std::string run;
};

// A pair whose noised count is above the threshold. By chance alone one pair of each item would be above it. `count` is
// the part above the threshold, in units of one record.
struct SuccessionCount {
  int32_t from, to;
  float count;
};

// The charge of `releases` calls of PrivateSuccessions. `options` need no ledger.
Result<privacy::ChargeRequest> SuccessionCharge(const SuccessionOptions& options, uint32_t num_items,
                                                privacy::NoiseKind noise, uint64_t releases = 1);

// The kept pairs, ascending by `from`, then `to`.
Result<std::vector<SuccessionCount>> PrivateSuccessions(std::span<const Record> records, uint32_t num_items,
                                                        const SuccessionOptions& options, privacy::RandomStream& noise);

// The successions of a model with these weights: each pair's score rises by
// 0.75 log(1 + count / (5 noise_multiplier p)), where p is the model's own probability of `to` after `from` alone.
std::vector<Succession> ScoreSuccessions(const ModelView& graph, const Weights& weights, const ModelLists& lists,
                                         std::span<const SuccessionCount> counts, double noise_multiplier);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_SUCCESSIONS_H_
