// Built for speed: loops over the vocabulary for every context and sample.
#include "runtime/private_sampling/context_sum.h"

#include <algorithm>
#include <cmath>

#include "runtime/private_sampling/sample_law.h"

namespace wisp {

void AddClipped(std::span<const float> scores, std::span<const float> base_scores, double clip,
                std::span<int64_t> sums) {
  constexpr auto kSteps = static_cast<double>(kContextSteps);
  const double steps_per_logit = kSteps / clip;
  for (size_t i = 0; i < sums.size(); ++i) {
    const double steps = (static_cast<double>(scores[i]) - static_cast<double>(base_scores[i])) * steps_per_logit;
    const double clipped = std::min(kSteps, std::max(-kSteps, steps));
    sums[i] += steps == steps ? static_cast<int64_t>(std::nearbyint(clipped)) : 0;
  }
}

float AggregateWeights(std::span<const int64_t> sums, std::span<const float> base_scores,
                       std::span<const int32_t> items, const AggregateOptions& options, std::vector<double>& weights) {
  const int64_t most = kContextSteps * static_cast<int64_t>(options.contexts);
  const double logits_per_step = options.clip / static_cast<double>(most);
  weights.resize(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    const int64_t sum = std::min(most, std::max(-most, sums[static_cast<size_t>(items[i])]));
    weights[i] = static_cast<double>(sum) * logits_per_step;
  }
  return MovedWeights(base_scores, items, {.clip = options.clip, .temperature = options.temperature}, weights);
}

}  // namespace wisp
