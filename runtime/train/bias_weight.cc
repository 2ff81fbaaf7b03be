#include "runtime/train/bias_weight.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "runtime/privacy/noise/discrete_gaussian.h"
#include "runtime/privacy/noise/exact_sum.h"
#include "runtime/train/budget.h"
#include "runtime/train/count_grid.h"
#include "runtime/train/list_scorer.h"

namespace wisp {
namespace {

// docs/papers/what-helps.md has what was measured with these.
constexpr std::array<float, 5> kWeights = {0.75f, 1.25f, 1.5f, 1.75f, 2.0f};
// So many of a record's newest events are tested, as in an evaluation.
constexpr size_t kTargets = 8;
// A record's gain is taken to deviate by this share of the longest.
constexpr double kDeviation = 0.15;

}  // namespace

std::span<const float> CandidateBiasWeights() { return kWeights; }

bool HasBiasToWeigh(const Architecture& a) {
  return a.head.kind == HeadKind::kNextItem && a.head.output_bias == OutputBias::kFixed;
}

Result<privacy::ChargeRequest> BiasWeightCharge(const BiasWeightOptions& o, privacy::NoiseKind noise,
                                                uint64_t releases) {
  return MakeCharge({.noise_multiplier = o.noise_multiplier,
                     .count = releases,
                     .sigma_in_steps = CountSigma(o.noise_multiplier),
                     .num_coordinates = kWeights.size(),
                     .run = o.run,
                     .purpose = kBiasWeightPurpose,
                     .noise = noise,
                     .part = o.part});
}

BiasGains::BiasGains(const ModelView& graph, const Weights& weights, const ModelLists& lists,
                     std::span<const float> bias)
    : scorer_(graph, weights, lists, CacheBlocks::kAll), bias_(bias), scores_(graph.num_items()) {}

std::span<const int64_t> BiasGains::Of(const Record& record) {
  std::array<double, kWeights.size()> gains = {};
  const size_t padding =
      static_cast<size_t>(std::find_if(record.inputs.begin(), record.inputs.end(), [](int32_t id) { return id >= 0; }) -
                          record.inputs.begin());
  size_t tested = 0;
  for (size_t t = std::max(padding, record.inputs.size() - std::min(record.inputs.size(), kTargets));
       t < record.inputs.size(); ++t) {
    if (record.targets[t] < 0) continue;
    const std::span<const int32_t> history = record.inputs.subspan(padding, t + 1 - padding);
    const std::span<const float> scores = scorer_.Score(history, tested > 0);
    const double base = Ndcg(scorer_.FindPosition(record.targets[t], scores, history));
    for (size_t k = 0; k < gains.size(); ++k) {
      for (size_t i = 0; i < scores.size(); ++i) scores_[i] = scores[i] + (kWeights[k] - 1) * bias_[i];
      gains[k] += Ndcg(scorer_.FindPosition(record.targets[t], scores_, history)) - base;
    }
    ++tested;
  }
  on_grid_.assign(gains.size(), 0);
  double squares = 0;
  for (const double gain : gains) squares += gain * gain;
  if (tested == 0 || !std::isfinite(squares)) return on_grid_;
  // The mean over the events, no longer than kBiasGainNorm. Rounding towards 0 keeps it so.
  const double longest = std::max(kBiasGainNorm * static_cast<double>(tested), std::sqrt(squares) * (1 + 1e-12));
  for (size_t k = 0; k < gains.size(); ++k) on_grid_[k] = static_cast<int64_t>(gains[k] / longest * kCountSteps);
  return on_grid_;
}

Result<std::vector<int64_t>> ReleaseBiasGains(const ModelView& graph, const Weights& weights, const ModelLists& lists,
                                              std::span<const float> bias, std::span<const Record> records,
                                              const BiasWeightOptions& o, Workers& workers,
                                              privacy::RandomStream& noise) {
  if (o.ledger == nullptr)
    return PrivacyRefused("a weight of the bias needs a ledger: without one the budget spent would be forgotten");
  if (!(o.noise_multiplier > 0 && o.noise_multiplier <= privacy::ExactGrid::kMaxNoiseMultiplier))
    return InvalidArgument("the noise of the bias's weight is ", o.noise_multiplier, ", allowed is above 0, up to ",
                           privacy::ExactGrid::kMaxNoiseMultiplier);
  const auto kind = noise.IsSecure() ? privacy::NoiseKind::kSecure : privacy::NoiseKind::kReproducible;
  WISP_ASSIGN_OR_RETURN(const privacy::ChargeRequest charge, BiasWeightCharge(o, kind));
  WISP_RETURN_IF_ERROR(o.ledger->Charge(charge).status());
  std::vector<std::vector<int64_t>> parts(workers.size(), std::vector<int64_t>(kWeights.size()));
  workers.Run([&](size_t worker) {
    BiasGains gains(graph, weights, lists, bias);
    for (size_t r = worker; r < records.size(); r += workers.size()) {
      const std::span<const int64_t> of_record = gains.Of(records[r]);
      for (size_t k = 0; k < kWeights.size(); ++k) parts[worker][k] += of_record[k];
    }
  });
  std::vector<int64_t> sums(kWeights.size());
  for (const auto& part : parts) {
    for (size_t k = 0; k < sums.size(); ++k) sums[k] += part[k];
  }
  privacy::AddDiscreteGaussian(noise, CountSigma(o.noise_multiplier), sums);
  return sums;
}

float ChooseBiasWeight(std::span<const int64_t> sums, const BiasWeightOptions& o) {
  const double of_records = kDeviation * std::sqrt(static_cast<double>(o.num_records_public));
  const double deviation = std::hypot(o.noise_multiplier, of_records) * kCountSteps;
  const auto best = static_cast<double>(*std::max_element(sums.begin(), sums.end()));
  float chosen = 1;
  if (best <= deviation) return chosen;
  double least_change = std::numeric_limits<double>::infinity();
  for (size_t k = 0; k < sums.size(); ++k) {
    const double change = std::abs(std::log(kWeights[k]));
    if (static_cast<double>(sums[k]) < best - deviation || change >= least_change) continue;
    chosen = kWeights[k];
    least_change = change;
  }
  return chosen;
}

}  // namespace wisp
