// Built for speed: noise for every number that is released.
#include "runtime/privacy/noise/discrete_gaussian.h"

#include "runtime/privacy/noise/discrete_gaussian_sampler.h"

namespace wisp::privacy {
namespace {

template <GaussianPath path>
void AddSamples(RandomStream& random, uint64_t sigma, std::span<int64_t> sum) {
  if (sigma == 0) return;
  GaussianSampler<path> sampler(random, sigma);
  for (int64_t& s : sum) s += sampler.Next();
}

}  // namespace

void AddDiscreteGaussian(RandomStream& random, uint64_t sigma, std::span<int64_t> sum) {
  AddSamples<GaussianPath::kFiltered>(random, sigma, sum);
}

void AddDiscreteGaussianSlowly(RandomStream& random, uint64_t sigma, std::span<int64_t> sum) {
  AddSamples<GaussianPath::kSlow>(random, sigma, sum);
}

}  // namespace wisp::privacy
