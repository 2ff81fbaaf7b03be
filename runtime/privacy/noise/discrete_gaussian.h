// Exact samples of the discrete Gaussian over the integers: Pr[X = x] proportional to exp(-x^2 / (2 sigma^2)).
//
// What it is: the noise of the `exact` mode. Every sample has exactly this distribution, not nearly: no floating-point
// rounding enters the result, so nothing leaks through low-order bits (Mironov 2012). The discrete Gaussian is as
// private as the continuous one (Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy", 2020).
// What it is not: constant in time. The time a sample takes, and the entries of the constant tables it reads, depend on
// the noise only, never on the sum it is added to: who measures them learns of the noise, as from any sampler that
// rejects.
//
//   AddDiscreteGaussian(noise, grid.sigma_in_steps(noise_multiplier), sum);
#ifndef WISP_RUNTIME_PRIVACY_NOISE_DISCRETE_GAUSSIAN_H_
#define WISP_RUNTIME_PRIVACY_NOISE_DISCRETE_GAUSSIAN_H_

#include <cstdint>
#include <span>

#include "runtime/privacy/noise/random.h"

namespace wisp::privacy {

// Largest sigma: |X| then stays below 2^62 but for a chance of exp(-2^23).
inline constexpr uint64_t kMaxDiscreteGaussianSigma = uint64_t{1} << 50;

// Adds an independent sample to every element. sigma in 1 .. kMaxDiscreteGaussianSigma (ExactGrid::Validate sees to
// it); sigma = 0 is no noise. One word of the stream a sample, nearly (two for sigma above 2^33); a sigma below 32
// takes 32 / sigma times as many. Allocates nothing but for comparisons that double precision cannot decide, about one
// sample in 1e11.
void AddDiscreteGaussian(RandomStream& random, uint64_t sigma, std::span<int64_t> sum);

// The same samples for the same bits, with every comparison evaluated in multi-precision arithmetic instead of the few
// that need it. Hundreds of times slower: the reference that AddDiscreteGaussian is tested against.
void AddDiscreteGaussianSlowly(RandomStream& random, uint64_t sigma, std::span<int64_t> sum);

}  // namespace wisp::privacy

#endif  // WISP_RUNTIME_PRIVACY_NOISE_DISCRETE_GAUSSIAN_H_
