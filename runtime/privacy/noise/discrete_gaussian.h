// Exact samples of the discrete Gaussian over the integers: Pr[X = x] proportional to exp(-x^2 / (2 sigma^2)).
//
// It is the noise of the `exact` mode. Every sample has exactly this distribution, not nearly: no floating-point
// rounding enters the result, so nothing leaks through low-order bits (Mironov 2012). The discrete Gaussian is as
// private as the continuous one (Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy", 2020). It
// does not run in constant time. The time of a sample, and the entries of the constant tables it reads, depend only on
// the noise, never on the sum it is added to: somebody who measures them learns about the noise, as with any sampler
// that rejects.
//
//   AddDiscreteGaussian(noise, grid.sigma_in_steps(noise_multiplier), sum);
#ifndef WISP_RUNTIME_PRIVACY_NOISE_DISCRETE_GAUSSIAN_H_
#define WISP_RUNTIME_PRIVACY_NOISE_DISCRETE_GAUSSIAN_H_

#include <cstdint>
#include <span>

#include "runtime/privacy/noise/random.h"

namespace wisp::privacy {

// The largest sigma; |X| then stays below 2^62 except with probability exp(-2^23).
inline constexpr uint64_t kMaxDiscreteGaussianSigma = uint64_t{1} << 50;

// Adds an independent sample to every element. sigma is in 1 .. kMaxDiscreteGaussianSigma (ExactGrid::Validate ensures
// it); sigma = 0 adds no noise. A sample takes little more than one word of the stream (two for sigma above 2^33); a
// sigma below 32 takes 32 / sigma times as many. Nothing is allocated except for comparisons that double precision
// cannot decide, about one sample in 1e11.
void AddDiscreteGaussian(RandomStream& random, uint64_t sigma, std::span<int64_t> sum);

// Gives the same samples for the same bits, but evaluates every comparison in multi-precision arithmetic instead of the
// few that need it. Hundreds of times slower: the reference for tests of AddDiscreteGaussian.
void AddDiscreteGaussianSlowly(RandomStream& random, uint64_t sigma, std::span<int64_t> sum);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_NOISE_DISCRETE_GAUSSIAN_H_
