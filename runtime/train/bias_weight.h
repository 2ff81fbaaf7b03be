// How much a model's fixed output bias should weigh on the device: one number, chosen by the lists that people of the
// training records would have been shown. It costs little and needs few people, because only a handful of sums is
// released.
//
//   sensitivity   each record adds one vector: its mean gain in NDCG@10 over the base with each candidate weight, cut
//                 to the L2 norm kBiasGainNorm. Candidates are constants, so a record changes no other record's vector
//   released      the noised sum of the vectors; the chosen weight is post-processing
//   ledger        ReleaseBiasGains charges one Gaussian mechanism before it looks at a record
//   noise         exact discrete Gaussian, noise_multiplier standard deviations of kBiasGainNorm
#ifndef WISP_RUNTIME_TRAIN_BIAS_WEIGHT_H_
#define WISP_RUNTIME_TRAIN_BIAS_WEIGHT_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/served_list.h"
#include "runtime/core/threads.h"
#include "runtime/layers/model_view.h"
#include "runtime/layers/record.h"
#include "runtime/privacy/ledger/ledger.h"
#include "runtime/privacy/noise/random.h"
#include "runtime/train/list_scorer.h"

namespace wisp {

inline constexpr char kBiasWeightPurpose[] = "weight of the output bias";

// The length of the longest vector that one record adds, in NDCG@10.
inline constexpr double kBiasGainNorm = 0.25;

struct BiasWeightOptions {
  double noise_multiplier = 0;
  privacy::Ledger* ledger = nullptr;  // required
  std::string run;
  privacy::RecordPart part = privacy::RecordPart::kAll;  // whose records these are
  uint32_t num_records_public = 0;                       // how many there are, as far as anybody may know
};

// The weights that are tried beside 1.
std::span<const float> CandidateBiasWeights();

// True if there is a bias to weigh: a next-item head with a fixed one.
bool HasBiasToWeigh(const Architecture& architecture);

// The charge of `releases` calls of ReleaseBiasGains. `options` need no ledger.
Result<privacy::ChargeRequest> BiasWeightCharge(const BiasWeightOptions& options, privacy::NoiseKind noise,
                                                uint64_t releases = 1);

// The gains of one record with each candidate over `bias` as it is, on the grid of count_grid.h whose unit is
// kBiasGainNorm. The lists are those after the record's newest events. All 0 if a score is not finite.
class BiasGains {
 public:
  // `graph`, `weights`, `bias` and the memory behind `lists` must outlive this object. `bias` [num_items] is that in
  // `weights`.
  BiasGains(const ModelView& graph, const Weights& weights, const ModelLists& lists, std::span<const float> bias);

  // [candidates], valid until the next call.
  std::span<const int64_t> Of(const Record& record);

 private:
  ListScorer scorer_;
  const std::span<const float> bias_;
  std::vector<float> scores_;  // with a candidate
  std::vector<int64_t> on_grid_;
};

// Charges, then sums the gains of all records and adds noise: [candidates], on the grid of BiasGains. The arguments
// before `records` are those of BiasGains.
Result<std::vector<int64_t>> ReleaseBiasGains(const ModelView& graph, const Weights& weights, const ModelLists& lists,
                                              std::span<const float> bias, std::span<const Record> records,
                                              const BiasWeightOptions& options, Workers& workers,
                                              privacy::RandomStream& noise);

// The weight as far as the released sums say: 1 if none is a standard deviation better, else the one nearest to 1 that
// is no more than a standard deviation below the best.
float ChooseBiasWeight(std::span<const int64_t> sums, const BiasWeightOptions& options);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_BIAS_WEIGHT_H_
