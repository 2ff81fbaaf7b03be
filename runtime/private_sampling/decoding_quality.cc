#include "runtime/private_sampling/decoding_quality.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/private_sampling/sample_law.h"

namespace wisp {
namespace {

// The model's share of a sample in this mode. kPlain samples with lambda 1.
double ComputeShare(const ItemLaw& law) { return law.mode == DecodingMode::kPlain ? 1 : law.lambda; }

double Total(std::span<const double> weights) {
  double total = 0;
  for (double w : weights) total += w;
  return total;
}

}  // namespace

double ItemProbability(const ItemLaw& law, const ItemScores& scores, std::span<const int32_t> support, int32_t target) {
  const auto place = std::find(support.begin(), support.end(), target);
  if (place == support.end()) return 0;
  const size_t index = static_cast<size_t>(place - support.begin());
  std::vector<double> weights;
  if (law.mode == DecodingMode::kBaseAnchored) {
    std::vector<float> centred(scores.model.begin(), scores.model.end());
    Centre(centred, scores.base);
    AnchoredWeights(centred, scores.base, support, {.clip = law.clip, .temperature = law.temperature}, weights);
    return weights[index] / Total(weights);
  }
  SoftmaxWeights(scores.model, support, {.temperature = law.temperature}, weights);
  const double uniform = 1 / static_cast<double>(support.size()), total = Total(weights), share = ComputeShare(law);
  if (!(total > 0)) return uniform;  // MixedLaw: a q that is all 0 counts as u
  return share * (weights[index] / total) + (1 - share) * uniform;
}

void Perplexity::Add(double probability) {
  surprise_ -= std::log(probability);
  ++count_;
}

double Perplexity::Value() const { return std::exp(surprise_ / static_cast<double>(count_)); }

}  // namespace wisp
