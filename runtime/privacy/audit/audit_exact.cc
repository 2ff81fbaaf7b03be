// Built for speed: loops over every outcome of an audit.
#include "runtime/privacy/audit/audit_exact.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "runtime/privacy/accounting/mechanism.h"

namespace wisp::privacy {
namespace {

constexpr double kSumTolerance = 1e-9;

Status CheckDistribution(std::span<const double> p) {
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    if (!(p[i] >= 0 && std::isfinite(p[i]))) return InvalidArgument("probability ", i, " is ", p[i]);
    sum += p[i];
  }
  if (std::abs(sum - 1) <= kSumTolerance) return OkStatus();
  return InvalidArgument("probabilities sum to ", sum, ", not to 1 within 1e-9");
}

Status CheckPair(std::span<const double> p, std::span<const double> q) {
  if (p.size() != q.size()) {
    return InvalidArgument("distributions over ", p.size(), " and ", q.size(), " outputs");
  }
  WISP_RETURN_IF_ERROR(CheckDistribution(p));
  return CheckDistribution(q);
}

double OneSidedDelta(std::span<const double> p, std::span<const double> q, double epsilon) {
  const double factor = std::exp(epsilon);
  double delta = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    // An infinite factor times 0 would be NaN.
    delta += q[i] == 0 ? p[i] : std::max(0.0, p[i] - factor * q[i]);
  }
  return delta;
}

// The smallest epsilon >= 0 with OneSidedDelta <= delta. Outputs are taken in the order of their ratios: between the
// k-th and the next, delta(epsilon) = sum of p - e^epsilon * sum of q over the first k.
double OneSidedEpsilon(std::span<const double> p, std::span<const double> q, double delta) {
  std::vector<std::pair<double, size_t>> ratios;
  double sum_p = 0, sum_q = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    if (q[i] == 0) {
      sum_p += p[i];
    } else if (p[i] > q[i]) {
      ratios.emplace_back(std::log(p[i]) - std::log(q[i]), i);
    }
  }
  if (sum_p > delta) return kInfinity;
  std::sort(ratios.begin(), ratios.end(), std::greater<>());
  for (size_t k = 0; k < ratios.size(); ++k) {
    sum_p += p[ratios[k].second];
    sum_q += q[ratios[k].second];
    const double next = k + 1 < ratios.size() ? ratios[k + 1].first : 0;
    if (sum_p - std::exp(next) * sum_q > delta)
      return std::min(ratios[k].first, std::max(0.0, std::log((sum_p - delta) / sum_q)));
  }
  return 0;
}

// Enumerates all tuples that begin with `sampled`, which has probability p under one model and q under the other.
class Enumeration {
 public:
  Enumeration(uint32_t samples, const NextSample& next_p, const NextSample& next_q)
      : num_samples_(samples), next_p_(next_p), next_q_(next_q) {}

  Status Extend(double p, double q) {
    if (sampled_.size() == num_samples_) {
      if (pair_.p.size() == kMostTuples) return InvalidArgument("more than ", kMostTuples, " tuples");
      pair_.p.push_back(p);
      pair_.q.push_back(q);
      return OkStatus();
    }
    std::vector<double> after_p, after_q;
    if (p > 0) WISP_RETURN_IF_ERROR(Ask(next_p_, after_p));
    if (q > 0) WISP_RETURN_IF_ERROR(Ask(next_q_, after_q));
    for (uint32_t item = 0; item < num_items_; ++item) {
      const double with_p = p > 0 ? p * after_p[item] : 0, with_q = q > 0 ? q * after_q[item] : 0;
      if (with_p == 0 && with_q == 0) continue;
      sampled_.push_back(item);
      WISP_RETURN_IF_ERROR(Extend(with_p, with_q));
      sampled_.pop_back();
    }
    return OkStatus();
  }

  DistributionPair Take() && { return std::move(pair_); }

 private:
  Status Ask(const NextSample& next, std::vector<double>& after) {
    WISP_ASSIGN_OR_RETURN(after, next(sampled_));
    WISP_RETURN_IF_ERROR(CheckDistribution(after));
    if (num_items_ == 0) num_items_ = after.size();
    if (after.size() == num_items_) return OkStatus();
    return InvalidArgument("a sample among ", after.size(), " items after one among ", num_items_);
  }

  uint32_t num_samples_;
  const NextSample& next_p_;
  const NextSample& next_q_;
  size_t num_items_ = 0;
  std::vector<uint32_t> sampled_;
  DistributionPair pair_;
};

}  // namespace

Result<double> MaxLogRatio(std::span<const double> p, std::span<const double> q) {
  WISP_RETURN_IF_ERROR(CheckPair(p, q));
  double largest = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] == 0 && q[i] == 0) continue;
    largest = std::max(largest, std::abs(std::log(p[i]) - std::log(q[i])));
  }
  return largest;
}

Result<double> HockeyStick(std::span<const double> p, std::span<const double> q, double epsilon) {
  WISP_RETURN_IF_ERROR(CheckPair(p, q));
  if (!(epsilon >= 0)) return InvalidArgument("epsilon is ", epsilon, ", allowed are 0 and above");
  return std::max(OneSidedDelta(p, q, epsilon), OneSidedDelta(q, p, epsilon));
}

Result<double> ExactEpsilon(std::span<const double> p, std::span<const double> q, double delta) {
  WISP_RETURN_IF_ERROR(CheckPair(p, q));
  if (!(delta >= 0 && delta < 1)) return InvalidArgument("delta is ", delta, ", allowed are 0 and values below 1");
  // Differences of rounded sums cannot tell a delta of 0 from 1e-17.
  if (delta == 0) return MaxLogRatio(p, q);
  return std::max(OneSidedEpsilon(p, q, delta), OneSidedEpsilon(q, p, delta));
}

Result<DistributionPair> OrderedSamples(uint32_t samples, const NextSample& p, const NextSample& q) {
  if (samples == 0) return InvalidArgument("tuples of no samples");
  Enumeration enumeration(samples, p, q);
  WISP_RETURN_IF_ERROR(enumeration.Extend(1, 1));
  return std::move(enumeration).Take();
}

NextSample WithoutReplacement(std::vector<double> probabilities) {
  return [probabilities = std::move(probabilities)](std::span<const uint32_t> sampled) -> Result<std::vector<double>> {
    std::vector<double> left = probabilities;
    for (uint32_t item : sampled) left[item] = 0;
    double sum = 0;
    for (double p : left) sum += p;
    if (!(sum > 0)) return InvalidArgument("nothing is left to sample after ", sampled.size(), " samples");
    for (double& p : left) p /= sum;
    return left;
  };
}

}  // namespace wisp::privacy
