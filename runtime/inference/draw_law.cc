#include "runtime/inference/draw_law.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/kernels.h"

namespace wisp {
namespace {

using privacy::RandomStream;
using Wide = unsigned __int128;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Uniform on {0, ..., n - 1} without bias: bits enough for n - 1, again until below n (two tries on average at most).
Wide UniformBelowWide(RandomStream& random, Wide n) {
  const uint64_t high = static_cast<uint64_t>((n - 1) >> 64);
  if (high == 0 && static_cast<uint64_t>(n) != 0) return random.UniformBelow(static_cast<uint64_t>(n));
  const uint64_t mask = high == 0 ? 0 : ~uint64_t{0} >> std::countl_zero(high);
  for (;;) {
    const Wide word = static_cast<Wide>(random.NextU64() & mask) << 64 | random.NextU64();
    if (word < n) return word;
  }
}

// A double that is an integer from 1 to 2^127, exactly: its mantissa, shifted.
Wide IntegerOf(double integer) {
  const uint64_t bits = std::bit_cast<uint64_t>(integer);
  const uint64_t mantissa = (bits & ((uint64_t{1} << 52) - 1)) | uint64_t{1} << 52;
  const int shift = static_cast<int>(bits >> 52) - 1075;
  return shift >= 0 ? static_cast<Wide>(mantissa) << shift : static_cast<Wide>(mantissa >> -shift);
}

// Keeps the best `keep` weights, ties by position, and makes the others 0.
void KeepBest(size_t keep, double share, std::vector<double>& weights) {
  std::vector<uint32_t> order(weights.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return weights[a] != weights[b] ? weights[a] > weights[b] : a < b; });
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

void SoftmaxWeights(std::span<const float> scores, std::span<const int32_t> items, const SoftmaxOptions& options,
                    std::vector<double>& weights) {
  double best = -kInfinity;
  for (int32_t item : items) best = std::max<double>(best, scores[static_cast<size_t>(item)]);  // NaN is never taken
  weights.resize(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    const double score = scores[static_cast<size_t>(items[i])];
    const double weight = score == best ? (best == -kInfinity ? 0 : 1) : std::exp((score - best) / options.temperature);
    weights[i] = weight > 0 ? weight : 0;  // NaN counts as 0
  }
  const size_t keep = options.top_k == 0 ? weights.size() : std::min(options.top_k, weights.size());
  if (keep < weights.size() || options.nucleus < 1) KeepBest(keep, options.nucleus, weights);
}

size_t DrawApproximately(RandomStream& random, std::span<const double> weights) {
  double total = 0;
  for (double w : weights) total += w;
  const double point = random.UniformDouble() * total;
  size_t last = weights.size();
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] > 0)) continue;
    last = i;
    sum += weights[i];
    if (point < sum) break;
  }
  return last;
}

// Converting the weights takes longest (28 us of a draw among 3,416 items by the compiler's own conversion, a library call; a
// quarter of it by IntegerOf): it is done once for all draws.
void ExactLaw::Assign(std::span<const double> integer_weights) {
  weights_.resize(integer_weights.size());
  sums_.assign((weights_.size() + kBlock - 1) / kBlock, 0);
  total_ = 0;
  for (size_t i = 0; i < weights_.size(); ++i) {
    weights_[i] = IntegerOf(integer_weights[i]);
    sums_[i / kBlock] += weights_[i];
    total_ += weights_[i];
  }
}

size_t ExactLaw::Draw(RandomStream& random) const {
  Wide point = UniformBelowWide(random, total_);
  size_t i = 0;
  for (; point >= sums_[i / kBlock]; i += kBlock) point -= sums_[i / kBlock];
  for (; point >= weights_[i]; ++i) point -= weights_[i];
  return i;
}

void ExactLaw::Remove(size_t index) {
  total_ -= weights_[index];
  sums_[index / kBlock] -= weights_[index];
  weights_[index] = 0;
}

size_t DrawExactly(RandomStream& random, std::span<const double> integer_weights) {
  ExactLaw law;
  law.Assign(integer_weights);
  return law.Draw(random);
}

size_t DrawMixed(RandomStream& random, double lambda, std::span<const double> q, std::span<const double> u) {
  if (random.Bernoulli(lambda)) {
    const size_t index = DrawApproximately(random, q);
    if (index < q.size()) return index;
  }
  return u.empty() ? random.UniformBelow(q.size()) : DrawExactly(random, u);
}

std::vector<double> IntegerWeights(std::span<const double> u) {
  const double largest = *std::max_element(u.begin(), u.end());
  double total = 0;  // of u / largest: no overflow, at least 1
  for (double x : u) total += x / largest;
  std::vector<double> weights;
  weights.reserve(u.size());
  for (double x : u) weights.push_back(std::max(1.0, std::floor(x / largest / total * 0x1.ffffp51)));
  return weights;
}

float AnchoredWeights(std::span<const float> scores, std::span<const float> base_scores, std::span<const int32_t> items,
                      const AnchoredOptions& options, std::vector<double>& weights) {
  const double c = options.clip;
  float best_base = -std::numeric_limits<float>::infinity();
  for (int32_t item : items) best_base = std::max(best_base, base_scores[static_cast<size_t>(item)]);
  const double reach = best_base + c;  // m of the header: public
  weights.resize(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    const double base = base_scores[static_cast<size_t>(items[i])];
    const double difference = static_cast<double>(scores[static_cast<size_t>(items[i])]) - base;
    const double moved = std::isnan(difference) ? 0 : std::clamp(difference, -c, c);
    weights[i] = base + moved - reach;
  }
  if (options.temperature != 1) {
    for (double& w : weights) w /= options.temperature;
  }
  kernels::BestOps().exp_double({.x = weights.data(), .y = weights.data(), .n = weights.size()});
  for (double& w : weights) w = std::max(0x1p53, 0x1p95 * w);
  return best_base;
}

void Centre(std::span<float> scores, std::span<const float> base_scores) {
  double sum = 0;
  for (size_t i = 0; i < scores.size(); ++i) sum += static_cast<double>(scores[i]) - static_cast<double>(base_scores[i]);
  const double mean = sum / static_cast<double>(scores.size());
  for (float& score : scores) score = static_cast<float>(score - mean);
}

}  // namespace wisp
