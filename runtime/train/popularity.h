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

#include "runtime/layers/recommender.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/privacy/noise/random.h"

namespace wisp {

struct PopularityOptions {
  double noise_multiplier = 5;
  privacy::Ledger* ledger = nullptr;  // required
  std::string run;
  privacy::RecordPart part = privacy::RecordPart::kAll;  // whose records these are
  uint32_t num_records_public = 0;  // N as declared; read for the frequencies only, 0: none are given
};

struct Popularity {
  // Log of each item's share, floored at the noise level, centred to mean 0. An item counts where it is an input or a
  // target of the record.
  std::vector<float> bias;
  // Estimate of the probability that a record contains each item, above 0 and up to 1; empty unless N was declared.
  // From the same release: with h the histogram, h / N times the mean of sqrt(n), which is the sum of h over N.
  std::vector<float> frequencies;
  // The released histogram itself, in records' shares 1 / sqrt(n).
  std::vector<float> histogram;
};

// The k largest of `scores`, ascending by index; ties by smaller index. Post-processing.
std::vector<int32_t> LargestRows(std::span<const float> scores, size_t k);

Result<Popularity> PrivatePopularity(std::span<const Record> records, uint32_t num_items,
                                     const PopularityOptions& options, privacy::RandomStream& noise);

// How far the discrete noise of a release is from the Gaussian that is accounted for.
double PopularityLossSlack(double noise_multiplier, uint32_t num_items);

// `distinct` <- the items that the record's inputs or targets name, ascending.
void DistinctItems(const Record& record, std::vector<int32_t>& distinct);

// The same without noise, for non-private training: floored at one record's share.
std::vector<float> PopularityBias(std::span<const Record> records, uint32_t num_items);

// Writes `bias` into the output bias of `weights`. The architecture must have one.
void SetOutputBias(const Architecture& architecture, std::span<const float> bias, std::span<float> weights);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_POPULARITY_H_
