// Built for speed: a sum over the catalogue for every sample.
#include "runtime/private_sampling/sample_cost.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "runtime/private_sampling/context_sum.h"
#include "runtime/private_sampling/sample_law.h"
#include "runtime/privacy/accounting/decoding_calibration.h"

namespace wisp {
namespace {

double Up(double x) { return std::nextafter(x, std::numeric_limits<double>::infinity()); }
double Down(double x) { return std::nextafter(x, 0); }

// How far logits of neighbouring data sets move apart, in units of clip / (B tau).
double GetLogitMove(privacy::Adjacency adjacency) { return adjacency == privacy::Adjacency::kReplaceOne ? 4 : 2; }

}  // namespace

SampleCost UniformSampleCost(uint64_t support, double lambda) {
  if (support < 2 || lambda == 0) return {};
  return {.kind = SampleCost::Kind::kUniformMixing, .support = support, .lambda = lambda};
}

// The bound holds for every set of items that may be gone. Let w_r be the smallest remaining weight: the r - 1 smaller
// ones are gone. The remaining weights sum to at most R + w_r, the total less the `sampled` smallest of the others. w_r
// / (R + w_r) grows with w_r, so r = 1 is the worst case.
SampleCost NonUniformSampleCost(std::span<const double> sorted, size_t sampled, double lambda) {
  if (sampled + 1 >= sorted.size() || lambda == 0) return {};
  double rest = 0;  // integers below 2^53, so the sum is exact
  for (size_t j = sampled + 1; j < sorted.size(); ++j) rest += sorted[j];
  return {.kind = SampleCost::Kind::kNonUniformMixing,
          .lambda = lambda,
          .min_probability = Down(sorted[0] / (rest + sorted[0]))};
}

SampleCost AnchoredSampleCost(double clip, double temperature, uint64_t support) {
  if (support < 2) return {};
  return {.kind = SampleCost::Kind::kBoundedRange, .range = Up(Up(4 * clip / temperature) + kAnchoredRangeSlack)};
}

SampleCost AggregateSampleCost(const AggregateCostOptions& o) {
  // The product and the quotient round twice; each Up covers at least one rounding.
  const double range = Up(Up(GetLogitMove(o.adjacency) * o.clip / (o.contexts * o.temperature)));
  return {.kind = SampleCost::Kind::kBoundedRange, .range = Up(range + kAggregateRangeSlack)};
}

double MinMixtureProbability(double floor, uint64_t support) {
  return floor / static_cast<double>(support) * (1 - 0x1p-16);
}

Result<double> AggregateClipForRange(double range, AggregateCostOptions o) {
  o.clip = (range - kAggregateRangeSlack) * o.temperature * o.contexts / GetLogitMove(o.adjacency) * (1 - 0x1p-48);
  if (o.clip > 0 && AggregateSampleCost(o).range <= range) return o.clip;
  return PrivacyRefused("aggregate decoding with epsilon ", range, " a sample at temperature ", o.temperature,
                        ": there is no clip for it, less than the arithmetic's error is left");
}

Result<double> ClipForRange(double range, double temperature) {
  const double clip = privacy::LargestClipForRange(range - kAnchoredRangeSlack, temperature);
  if (clip > 0 && AnchoredSampleCost(clip, temperature, 2).range <= range) return clip;
  return PrivacyRefused("anchored decoding with epsilon ", range, " a sample at temperature ", temperature,
                        ": there is no clip for it, less than the arithmetic's error is left");
}

double ComputeEpsilon(const SampleCost& cost) {
  switch (cost.kind) {
    case SampleCost::Kind::kNothing:
      return 0;
    case SampleCost::Kind::kUniformMixing:
      return std::log1p(cost.lambda * static_cast<double>(cost.support) / (1 - cost.lambda));
    case SampleCost::Kind::kNonUniformMixing:
      return std::log1p(cost.lambda / ((1 - cost.lambda) * cost.min_probability));
    case SampleCost::Kind::kBoundedRange:
      return cost.range;
  }
  return std::numeric_limits<double>::infinity();
}

bool Covers(const SampleCost& charged, const SampleCost& sample) {
  if (sample.kind == SampleCost::Kind::kNothing) return true;
  return charged.kind == sample.kind && charged.lambda >= sample.lambda && charged.support >= sample.support &&
         charged.min_probability <= sample.min_probability && charged.range >= sample.range;
}

Result<privacy::Mechanism> ToMechanism(const SampleCost& cost, uint64_t count, privacy::Adjacency adjacency) {
  using privacy::Mechanism;
  switch (cost.kind) {
    case SampleCost::Kind::kNothing:
      break;
    case SampleCost::Kind::kUniformMixing:
      return Mechanism::RandomisedResponse(
          {.support = cost.support, .lambda = cost.lambda, .count = count, .adjacency = adjacency});
    case SampleCost::Kind::kNonUniformMixing:
      return Mechanism::NonUniformResponse(
          {.min_probability = cost.min_probability, .lambda = cost.lambda, .count = count, .adjacency = adjacency});
    case SampleCost::Kind::kBoundedRange:
      return Mechanism::BoundedRange({.range = cost.range, .count = count, .adjacency = adjacency});
  }
  return InvalidArgument("a sample that costs nothing is no mechanism: it is not charged");
}

Result<double> LambdaForEpsilon(double epsilon, uint64_t samples, uint64_t support) {
  if (!(epsilon > 0 && std::isfinite(epsilon)))
    return InvalidArgument("epsilon is ", epsilon, ", allowed is a positive number");
  if (samples == 0 || support == 0) return InvalidArgument("the number of samples and the support must be 1 and above");
  const double gain = std::expm1(epsilon / static_cast<double>(samples));
  if (!std::isfinite(gain)) return Down(1);
  // Three roundings and expm1 err by less than 8 units in the last place.
  return gain / (gain + static_cast<double>(support)) * (1 - 0x1p-50);
}

}  // namespace wisp
