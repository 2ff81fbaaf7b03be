// Built for speed: loops over the catalogue for every sample.
#include "runtime/private_sampling/sample_law.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/kernels.h"

namespace wisp {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The largest of these scores, ignoring NaN; -inf if no score is a number. Four maxima run in parallel, because each
// comparison waits for the previous one.
float Largest(std::span<const float> scores, std::span<const int32_t> items) {
  float best[4];
  std::fill_n(best, 4, -std::numeric_limits<float>::infinity());
  size_t i = 0;
  for (; i + 4 <= items.size(); i += 4) {
    for (size_t k = 0; k < 4; ++k) best[k] = std::max(best[k], scores[static_cast<size_t>(items[i + k])]);
  }
  for (; i < items.size(); ++i) best[0] = std::max(best[0], scores[static_cast<size_t>(items[i])]);
  return *std::max_element(best, best + 4);
}

// Keeps the best `keep` weights, ties by position, and sets the others to 0.
void KeepBest(size_t keep, double share, std::vector<double>& weights) {
  std::vector<uint32_t> order(weights.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return weights[a] != weights[b] ? weights[a] > weights[b] : a < b; });
  if (keep < order.size()) {
    for (size_t i = keep; i < order.size(); ++i) weights[order[i]] = 0;
    order.resize(keep);
  }
  if (share >= 1) return;
  double total = 0, held = 0;
  for (uint32_t i : order) total += weights[i];
  for (uint32_t i : order) {
    const double weight = weights[i];
    if (held >= share * total) weights[i] = 0;
    held += weight;
  }
}

}  // namespace

// Before the exponentials, scores of -inf and NaN are set to the lowest argument, whose exponential is not 0. Their
// weights become 0 afterwards.
void SoftmaxWeights(std::span<const float> scores, std::span<const int32_t> items, const SoftmaxOptions& options,
                    std::vector<double>& weights) {
  const float best = Largest(scores, items);
  weights.resize(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    weights[i] = static_cast<double>(scores[static_cast<size_t>(items[i])]) - static_cast<double>(best);
  }
  if (options.temperature != 1) {
    for (double& w : weights) w /= options.temperature;
  }
  kernels::BestOps().exp_double({.x = weights.data(), .y = weights.data(), .n = weights.size()});
  const bool has_finite = best < kInfinity && best > -kInfinity;
  for (size_t i = 0; i < items.size(); ++i) {
    const float score = scores[static_cast<size_t>(items[i])];
    if (!has_finite || !(score > -kInfinity)) weights[i] = score == best && best > 0 ? 1 : 0;
  }
  const size_t keep = options.top_k == 0 ? weights.size() : std::min(options.top_k, weights.size());
  if (keep < weights.size() || options.nucleus < 1) KeepBest(keep, options.nucleus, weights);
}

std::vector<double> IntegerWeights(std::span<const double> u) {
  const double largest = *std::max_element(u.begin(), u.end());
  double total = 0;  // sum of u / largest: cannot overflow, at least 1
  for (double x : u) total += x / largest;
  std::vector<double> weights;
  weights.reserve(u.size());
  for (double x : u) weights.push_back(std::max(1.0, std::floor(x / largest / total * 0x1.ffffp51)));
  return weights;
}

float AnchoredWeights(std::span<const float> scores, std::span<const float> base_scores, std::span<const int32_t> items,
                      const AnchoredOptions& options, std::vector<double>& weights) {
  const double c = options.clip;
  weights.resize(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    const auto item = static_cast<size_t>(items[i]);
    const double difference = static_cast<double>(scores[item]) - static_cast<double>(base_scores[item]);
    const double clipped = std::min(c, std::max(-c, difference));  // a NaN difference gives -c here, and 0 afterwards
    weights[i] = difference == difference ? clipped : 0;
  }
  return MovedWeights(base_scores, items, options, weights);
}

float MovedWeights(std::span<const float> base_scores, std::span<const int32_t> items, const AnchoredOptions& options,
                   std::vector<double>& weights) {
  const float best_base = Largest(base_scores, items);
  const double reach = best_base + options.clip;  // the header's m, a public number
  for (size_t i = 0; i < items.size(); ++i)
    weights[i] = static_cast<double>(base_scores[static_cast<size_t>(items[i])]) + weights[i] - reach;
  if (options.temperature != 1) {
    for (double& w : weights) w /= options.temperature;
  }
  kernels::BestOps().exp_double({.x = weights.data(), .y = weights.data(), .n = weights.size()});
  for (double& w : weights) w = std::max(0x1p53, 0x1p95 * w);
  return best_base;
}

void Centre(std::span<float> scores, std::span<const float> base_scores) {
  double sum = 0;
  for (size_t i = 0; i < scores.size(); ++i)
    sum += static_cast<double>(scores[i]) - static_cast<double>(base_scores[i]);
  const double mean = sum / static_cast<double>(scores.size());
  for (float& score : scores) score = static_cast<float>(score - mean);
}

}  // namespace wisp
