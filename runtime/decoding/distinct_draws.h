// Draws without replacement, exact and approximate, with the public part of a mixture. Internal to runtime/inference.
//
// Which arithmetic a guarantee rests on is said in draw_law.h, which computes the weights.
// What it is not: constant-time. How long a draw takes may depend on the scores; someone who can time single draws of
// this process sees more than the items.
#ifndef WISP_RUNTIME_DECODING_DISTINCT_DRAWS_H_
#define WISP_RUNTIME_DECODING_DISTINCT_DRAWS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/privacy/noise/random.h"

namespace wisp {

// Weights: integers of 1 and above, at most 2^96, fewer than 2^31 of them.
class ExactLaw {
 public:
  void Assign(std::span<const double> integer_weights);
  // An index that was not removed, with probability exactly its weight / the sum of those. One must be left.
  size_t Draw(privacy::RandomStream& random) const;
  void Remove(size_t index);

 private:
  static constexpr size_t kBlock = 32;
  std::vector<double> weights_;          // 0 where removed
  std::vector<unsigned __int128> sums_;  // of blocks
  unsigned __int128 total_ = 0;
};

// Weights: 0 and above. What rounding makes of them.
class ApproximateLaw {
 public:
  void Assign(std::span<const double> weights);
  // An index with weight above 0 that was not removed, with probability about in proportion; size() where there is
  // none.
  size_t Draw(privacy::RandomStream& random) const;
  void Remove(size_t index);
  size_t size() const { return weights_.size(); }

 private:
  static constexpr size_t kBlock = 64;
  double SumOf(size_t block) const;
  std::vector<double> weights_, sums_;
};

// lambda q + (1 - lambda) u, exactly that mixture of what ApproximateLaw draws and u. Where q is all 0 it counts as u.
class MixedLaw {
 public:
  // `q`: as for ApproximateLaw. `u`: as for ExactLaw, as many; empty: uniform.
  void Assign(double lambda, std::span<const double> q, std::span<const double> u);
  // An index that was not removed. One must be left.
  size_t Draw(privacy::RandomStream& random) const;
  void Remove(size_t index);

 private:
  size_t DrawPublic(privacy::RandomStream& random) const;

  double lambda_ = 0;
  ApproximateLaw q_;
  ExactLaw u_;
  bool uniform_ = true;
  std::vector<uint8_t> removed_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_DECODING_DISTINCT_DRAWS_H_
