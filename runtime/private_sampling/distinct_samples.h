// Samples without replacement, exact and approximate, and the public part of a mixture. Internal to this folder.
//
// sample_law.h computes the weights and says which arithmetic a guarantee rests on. Samples are not constant-time:
// their duration may depend on the scores. An attacker who can time single samples of this process learns more than the
// items.
#ifndef WISP_RUNTIME_PRIVATE_SAMPLING_DISTINCT_SAMPLES_H_
#define WISP_RUNTIME_PRIVATE_SAMPLING_DISTINCT_SAMPLES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/privacy/noise/random.h"

namespace wisp {

// Weights are integers of at least 1 and at most 2^96; there are fewer than 2^31.
class ExactLaw {
 public:
  void Assign(std::span<const double> integer_weights);
  // Samples an index that was not removed, with probability exactly its weight / the sum of the remaining weights. At
  // least one must remain.
  size_t Sample(privacy::RandomStream& random) const;
  void Remove(size_t index);

 private:
  static constexpr size_t kBlock = 32;
  std::vector<double> weights_;          // 0 for removed indices
  std::vector<unsigned __int128> sums_;  // of blocks of weights
  unsigned __int128 total_ = 0;
};

// Weights are 0 or above. The law is whatever floating-point rounding makes of them.
class ApproximateLaw {
 public:
  void Assign(std::span<const double> weights);
  // Samples an index with weight above 0 that was not removed, with approximately proportional probability. Returns
  // size() if no index has weight.
  size_t Sample(privacy::RandomStream& random) const;
  void Remove(size_t index);
  size_t size() const { return weights_.size(); }

 private:
  static constexpr size_t kBlock = 64;
  double GetSum(size_t block) const;
  std::vector<double> weights_, sums_;
};

// lambda q + (1 - lambda) u: exactly that mixture of u and what ApproximateLaw samples. A q that is all 0 counts as u.
class MixedLaw {
 public:
  // `q` is as for ApproximateLaw. `u` has as many weights, as for ExactLaw; empty: uniform.
  void Assign(double lambda, std::span<const double> q, std::span<const double> u);
  // Samples an index that was not removed. At least one must remain.
  size_t Sample(privacy::RandomStream& random) const;
  void Remove(size_t index);

 private:
  size_t SamplePublic(privacy::RandomStream& random) const;

  double lambda_ = 0;
  ApproximateLaw q_;
  ExactLaw u_;
  bool uniform_ = true;
  std::vector<uint8_t> removed_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_PRIVATE_SAMPLING_DISTINCT_SAMPLES_H_
