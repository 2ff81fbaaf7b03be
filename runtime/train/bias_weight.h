// How much a model's fixed output bias should weigh on the device: one number, chosen by the lists that people of the
// training records would have been shown. It costs little and needs few people, because only a handful of sums is
// released.
//
// The weights that are tried are constants: nobody's events made them. So all events are evidence of the base with
// another weight, also those that train later, and it can be served at once (runtime/personalise/weighed_base.h).
//
//   sensitivity   each record adds one vector: its mean gains in NDCG@10 over the base with each weight, in units of
//                 kBiasGainScale, as gain_sums.h bounds it. A record changes no other record's vector
//   released      the noised sums; what is chosen by them is post-processing
//   ledger        ReleaseBiasGains charges one Gaussian mechanism before it looks at a record, and stores the sums
#ifndef WISP_RUNTIME_TRAIN_BIAS_WEIGHT_H_
#define WISP_RUNTIME_TRAIN_BIAS_WEIGHT_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
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

// The mean gain of a record, in NDCG@10, that counts as 1; longer vectors of gains are cut to that.
inline constexpr double kBiasGainScale = 0.1;

struct BiasWeightOptions {
  double noise_multiplier = 0;
  privacy::Ledger* ledger = nullptr;  // required
  std::string run;
  uint64_t base = 0;  // content hash of the model whose bias is weighed
};

// The weights that are tried beside 1.
inline constexpr std::array<float, 5> kBiasWeights = {0.75f, 1.25f, 1.5f, 1.75f, 2.0f};

// True if there is a bias to weigh: a next-item head with a fixed one.
bool HasBiasToWeigh(const Architecture& architecture);

// The charge of `releases` calls of ReleaseBiasGains. `options` need no ledger.
Result<privacy::ChargeRequest> BiasWeightCharge(const BiasWeightOptions& options, privacy::NoiseKind noise,
                                                uint64_t releases = 1);

// The released sums of gains with each of kBiasWeights, and of their squares, in units of kBiasGainScale.
struct WeighedBias {
  std::array<double, kBiasWeights.size()> gains = {}, squares = {};
  double noise_multiplier = 0;
  uint64_t base = 0;  // BiasWeightOptions::base

  // The weight as far as the sums say: 1 if none is a standard deviation better, else the one nearest to 1 that is no
  // more than a standard deviation below the best.
  float Choose() const;
  bool operator==(const WeighedBias&) const = default;
};

// The text that the ledger stores with the charge, "bias_weight_gain=1.5 ... base=7", and back; kInvalidData for
// anything else.
std::string ToText(const WeighedBias& weighed);
Result<WeighedBias> ParseWeighedBias(const std::string& text);
// True if a ledger's result begins as such a text does.
bool IsWeighedBias(std::string_view text);

// The releases of a ledger that weighed the bias of that model, the oldest first.
struct StoredWeighedBias {
  WeighedBias weighed;
  privacy::LedgerResult result;
};
Result<std::vector<StoredWeighedBias>> ReadWeighedBiases(const privacy::Ledger& ledger, uint64_t base);

// The gains of one record with each weight over `bias` as it is, on the grid of gain_sums.h. The lists are those after
// the record's newest events.
class BiasGains {
 public:
  // `graph`, `weights`, `bias` and the memory behind `lists` must outlive this object. `bias` [num_items] is that in
  // `weights`.
  BiasGains(const ModelView& graph, const Weights& weights, const ModelLists& lists, std::span<const float> bias);

  // [2 * kBiasWeights.size()], valid until the next call.
  std::span<const int64_t> Of(const Record& record);

 private:
  ListScorer scorer_;
  const std::span<const float> bias_;
  std::vector<float> scores_;  // with another weight
  std::array<int64_t, 2 * kBiasWeights.size()> on_grid_ = {};
};

// Charges, then sums the gains of all records, adds noise, stores the sums with the charge (Ledger::AddResult) and
// returns them. The arguments before `records` are those of BiasGains.
Result<WeighedBias> ReleaseBiasGains(const ModelView& graph, const Weights& weights, const ModelLists& lists,
                                     std::span<const float> bias, std::span<const Record> records,
                                     const BiasWeightOptions& options, Workers& workers, privacy::RandomStream& noise);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_BIAS_WEIGHT_H_
