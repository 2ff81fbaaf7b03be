#include "runtime/train/bias_weight.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/core/text.h"
#include "runtime/privacy/named_numbers.h"
#include "runtime/privacy/noise/discrete_gaussian.h"
#include "runtime/privacy/noise/exact_sum.h"
#include "runtime/train/budget.h"
#include "runtime/train/gain_sums.h"
#include "runtime/train/list_scorer.h"

namespace wisp {
namespace {

// So many of a record's newest events are tested, as in an evaluation.
constexpr size_t kTargets = 8;

}  // namespace

bool HasBiasToWeigh(const Architecture& a) {
  return a.head.kind == HeadKind::kNextItem && a.head.output_bias == OutputBias::kFixed;
}

Result<privacy::ChargeRequest> BiasWeightCharge(const BiasWeightOptions& o, privacy::NoiseKind noise,
                                                uint64_t releases) {
  return MakeCharge({.noise_multiplier = o.noise_multiplier,
                     .count = releases,
                     .sigma_in_steps = GainSigma(o.noise_multiplier),
                     .num_coordinates = 2 * kBiasWeights.size(),
                     .run = o.run,
                     .purpose = kBiasWeightPurpose,
                     .noise = noise});
}

BiasGains::BiasGains(const ModelView& graph, const Weights& weights, const ModelLists& lists,
                     std::span<const float> bias)
    : scorer_(graph, weights, lists, CacheBlocks::kAll), bias_(bias), scores_(graph.num_items()) {}

std::span<const int64_t> BiasGains::Of(const Record& record) {
  std::array<double, kBiasWeights.size()> gains = {};
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
      for (size_t i = 0; i < scores.size(); ++i) scores_[i] = scores[i] + (kBiasWeights[k] - 1) * bias_[i];
      gains[k] += Ndcg(scorer_.FindPosition(record.targets[t], scores_, history)) - base;
    }
    ++tested;
  }
  for (double& gain : gains) gain /= static_cast<double>(std::max<size_t>(1, tested)) * kBiasGainScale;
  PutOnGrid(gains, on_grid_);
  return on_grid_;
}

Result<WeighedBias> ReleaseBiasGains(const ModelView& graph, const Weights& weights, const ModelLists& lists,
                                     std::span<const float> bias, std::span<const Record> records,
                                     const BiasWeightOptions& o, Workers& workers, privacy::RandomStream& noise) {
  if (o.ledger == nullptr)
    return PrivacyRefused("a weight of the bias needs a ledger: without one the budget spent would be forgotten");
  if (!(o.noise_multiplier > 0 && o.noise_multiplier <= privacy::ExactGrid::kMaxNoiseMultiplier))
    return InvalidArgument("the noise of the bias's weight is ", o.noise_multiplier, ", allowed is above 0, up to ",
                           privacy::ExactGrid::kMaxNoiseMultiplier);
  const auto kind = noise.IsSecure() ? privacy::NoiseKind::kSecure : privacy::NoiseKind::kReproducible;
  WISP_ASSIGN_OR_RETURN(const privacy::ChargeRequest charge, BiasWeightCharge(o, kind));
  WISP_ASSIGN_OR_RETURN(const privacy::ChargeId id, o.ledger->Charge(charge));
  constexpr size_t kSums = 2 * kBiasWeights.size();
  std::vector<std::array<int64_t, kSums>> parts(workers.size());
  workers.Run([&](size_t worker) {
    BiasGains gains(graph, weights, lists, bias);
    for (size_t r = worker; r < records.size(); r += workers.size()) {
      const std::span<const int64_t> of_record = gains.Of(records[r]);
      for (size_t k = 0; k < kSums; ++k) parts[worker][k] += of_record[k];
    }
  });
  std::array<int64_t, kSums> sums = {};
  for (const auto& part : parts) {
    for (size_t k = 0; k < kSums; ++k) sums[k] += part[k];
  }
  privacy::AddDiscreteGaussian(noise, GainSigma(o.noise_multiplier), sums);
  WeighedBias weighed{.noise_multiplier = o.noise_multiplier, .base = o.base};
  for (size_t k = 0; k < kBiasWeights.size(); ++k) {
    weighed.gains[k] = static_cast<double>(sums[k]) / kGainSteps;
    weighed.squares[k] = static_cast<double>(sums[kBiasWeights.size() + k]) / (kSquareWeight * kGainSteps);
  }
  WISP_RETURN_IF_ERROR(o.ledger->AddResult(id, ToText(weighed)));
  WISP_RETURN_IF_ERROR(o.ledger->MarkReleased(id));
  return weighed;
}

float WeighedBias::Choose() const {
  const size_t best = static_cast<size_t>(std::max_element(gains.begin(), gains.end()) - gains.begin());
  // Noise deviates, and so does the choice of these records among others.
  const double deviation = std::sqrt(std::pow(noise_multiplier * RecordNorm(), 2) + std::max(0.0, squares[best]));
  float chosen = 1;
  if (gains[best] <= deviation) return chosen;
  double least_change = std::numeric_limits<double>::infinity();
  for (size_t k = 0; k < gains.size(); ++k) {
    const double change = std::abs(std::log(kBiasWeights[k]));
    if (gains[k] < gains[best] - deviation || change >= least_change) continue;
    chosen = kBiasWeights[k];
    least_change = change;
  }
  return chosen;
}

namespace {

constexpr std::string_view kGain = "bias_weight_gain";

// Calls `field` with the name and the value of each field, in the order of the text.
template <class Weighed, class Use>
void ForEachField(Weighed& weighed, const Use& field) {
  for (auto& gain : weighed.gains) field(kGain, gain);
  for (auto& square : weighed.squares) field("square", square);
  field("noise_multiplier", weighed.noise_multiplier);
  field("base", weighed.base);
}

}  // namespace

bool IsWeighedBias(std::string_view text) { return text.starts_with(kGain); }

Result<std::vector<StoredWeighedBias>> ReadWeighedBiases(const privacy::Ledger& ledger, uint64_t base) {
  WISP_ASSIGN_OR_RETURN(std::vector<privacy::LedgerResult> results, ledger.Results());
  std::vector<StoredWeighedBias> stored;
  for (privacy::LedgerResult& result : results) {
    if (!IsWeighedBias(result.text)) continue;
    WISP_ASSIGN_OR_RETURN(const WeighedBias weighed, ParseWeighedBias(result.text));
    if (weighed.base == base) stored.push_back({weighed, std::move(result)});
  }
  return stored;
}

std::string ToText(const WeighedBias& weighed) {
  std::string text;
  ForEachField(weighed, [&](std::string_view name, auto value) { privacy::PutNumber(text, name, value); });
  return text;
}

Result<WeighedBias> ParseWeighedBias(const std::string& text) {
  WeighedBias weighed;
  std::string_view rest = text;
  bool read = true;
  ForEachField(weighed,
               [&](std::string_view name, auto& value) { read = read && privacy::TakeNumber(rest, name, value); });
  if (read && rest.empty() && weighed.noise_multiplier > 0) return weighed;
  return InvalidData("the weights of a bias are '", OneLine(text), "', which cannot be read");
}

}  // namespace wisp
