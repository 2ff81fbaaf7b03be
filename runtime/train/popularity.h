// A fixed output bias: the log of how often records contain each item, from a histogram released under DP, once.
//
//   sensitivity   each record adds 1/sqrt(n) to each of its n distinct items: L2 norm at most 1 (rounded down to the
//                 grid)
//   released      the noised histogram; floor, log and the bias are post-processing
//   ledger        PrivatePopularityBias charges one Gaussian mechanism before it looks at a record
//   noise         exact discrete Gaussian, noise_multiplier standard deviations of 1
#ifndef WISP_RUNTIME_TRAIN_POPULARITY_H_
#define WISP_RUNTIME_TRAIN_POPULARITY_H_

#include <span>
#include <string>
#include <vector>

#include "runtime/core/architecture.h"
#include "runtime/layers/record.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/privacy/noise/random.h"

namespace wisp {

struct PopularityOptions {
  double noise_multiplier = 5;
  privacy::Ledger* ledger = nullptr;  // required
  std::string run;
  uint32_t num_records_public = 0;  // N as declared; read only for the frequencies; 0: none are returned
};

struct Popularity {
  // The log of each item's share, floored at the noise level, centred to mean 0. An item counts for a record if it is
  // an input or a target.
  std::vector<float> bias;
  // The estimated probability that a record contains each item, above 0 and at most 1; empty unless N was declared. It
  // follows from the same release: with h the histogram, it is h / N times the mean of sqrt(n), which is estimated by
  // the sum of h over N.
  std::vector<float> frequencies;
  // The released histogram itself; a record adds 1 / sqrt(n) to each of its items.
  std::vector<float> histogram;
};

// The indices of the k largest `scores`, ascending; ties go to the smaller index. Post-processing of a release.
std::vector<int32_t> LargestRows(std::span<const float> scores, size_t k);

Result<Popularity> PrivatePopularity(std::span<const Record> records, uint32_t num_items,
                                     const PopularityOptions& options, privacy::RandomStream& noise);

// The charge of PrivatePopularity. `options` need no ledger.
Result<privacy::ChargeRequest> PopularityCharge(const PopularityOptions& options, uint32_t num_items,
                                                privacy::NoiseKind noise);

// Sets `distinct` to the items that are inputs or targets of the record, ascending.
void DistinctItems(const Record& record, std::vector<int32_t>& distinct);

// The bias without noise, for non-private training: floored at one record's share.
std::vector<float> PopularityBias(std::span<const Record> records, uint32_t num_items);

// Writes `bias` into the output bias of `weights`. The architecture must have one.
void SetOutputBias(const Architecture& architecture, std::span<const float> bias, std::span<float> weights);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_POPULARITY_H_
