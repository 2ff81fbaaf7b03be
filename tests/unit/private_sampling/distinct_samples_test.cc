// Sampling without replacement. Statistical tests have fixed seeds and alpha = 1e-6 each.
#include "runtime/private_sampling/distinct_samples.h"

#include <cmath>
#include <numeric>

#include "gtest/gtest.h"
#include "tests/unit/privacy/noise/chi_square.h"

namespace wisp::distinct_samples_test {
namespace {

using privacy::RandomStream;
using privacy::StreamPurpose;

constexpr double kAlpha = 1e-6;

RandomStream Seeded(uint64_t seed) { return RandomStream::Reproducible(seed, StreamPurpose::kDecoding); }

std::vector<double> Normalised(std::vector<double> weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& w : weights) w /= sum;
  return weights;
}

// After removals, samples equal those of a law with only the remaining weights, with the same random numbers: 300
// items, five blocks.
TEST(ExactLaw, ForgetsWhatWasRemoved) {
  auto random = privacy::RandomStream::Reproducible(8, privacy::StreamPurpose::kDecoding);
  auto same = privacy::RandomStream::Reproducible(8, privacy::StreamPurpose::kDecoding);
  std::vector<double> weights;
  for (int i = 0; i < 300; ++i)
    weights.push_back(i % 3 == 0 ? 1 + i : std::floor(std::ldexp(1 + i / 300.0, i % 3 == 1 ? 95 : 53)));
  ExactLaw law;
  law.Assign(weights);
  std::vector<int> left(300);
  std::iota(left.begin(), left.end(), 0);
  while (!left.empty()) {
    std::vector<double> of_left;
    for (int i : left) of_left.push_back(weights[static_cast<size_t>(i)]);
    ExactLaw alone;
    alone.Assign(of_left);
    const size_t sampled = law.Sample(random), index = alone.Sample(same);
    ASSERT_EQ(sampled, static_cast<size_t>(left[index]));
    law.Remove(sampled);
    left.erase(left.begin() + static_cast<ptrdiff_t>(index));
  }
}

TEST(ExactLaw, HasTheLawOfItsWeightsOverManyBlocks) {
  auto random = privacy::RandomStream::Reproducible(9, privacy::StreamPurpose::kDecoding);
  std::vector<double> weights, law(200);
  for (int i = 0; i < 200; ++i) weights.push_back(i % 7 == 0 ? 1 : std::ldexp(1 + i, 53));
  ExactLaw exact;
  exact.Assign(weights);
  double sum = 0;
  for (size_t gone : {63, 64, 65, 128, 199}) exact.Remove(gone), weights[gone] = 0;
  for (double w : weights) sum += w;
  for (size_t i = 0; i < 200; ++i) law[i] = weights[i] / sum;
  std::vector<uint64_t> counts(200);
  for (int i = 0; i < 200000; ++i) ++counts[exact.Sample(random)];
  for (size_t i = 0; i < 200; ++i) {
    if (i % 7 == 0) law[i] = 0;  // one in 2^66: never
  }
  EXPECT_GT(ChiSquarePValue(counts, law), 1e-6);
}

TEST(ExactLaw, HasTheLawOfItsIntegersHoweverLarge) {
  const std::vector<std::vector<double>> cases = {{1, 2, 3, 4},
                                                  {0x1p53, 0x1p54, 0x1p53},
                                                  {0x1p95, 0x1p53, 0x1p94 + 0x1p53},
                                                  {0x1p63, 0x1p63 + 0x1p52, 0x1p62},
                                                  {0x1p63, 0x1p63},
                                                  {5}};
  for (size_t k = 0; k < cases.size(); ++k) {
    RandomStream random = Seeded(100 + k);
    std::vector<uint64_t> counts(cases[k].size());
    ExactLaw exact;
    exact.Assign(cases[k]);
    for (int i = 0; i < 200000; ++i) ++counts[exact.Sample(random)];
    if (counts.size() == 1) continue;
    EXPECT_GT(ChiSquarePValue(counts, Normalised(cases[k])), kAlpha) << k;
  }
}

TEST(MixedLaw, HasExactlyTheLawOfTheMixture) {
  const std::vector<double> q = {0, 1, 0.5, 0}, u = {4, 1, 2, 3}, uniform = {1, 1, 1, 1};
  uint64_t seed = 200;
  for (double lambda : {0.0, 0.3, 0.9, 1.0}) {
    for (bool is_uniform : {true, false}) {
      RandomStream random = Seeded(seed++);
      std::vector<uint64_t> counts(q.size());
      MixedLaw mixed;
      mixed.Assign(lambda, q, is_uniform ? std::span<const double>() : u);
      for (int i = 0; i < 300000; ++i) ++counts[mixed.Sample(random)];
      std::vector<double> law = Normalised(is_uniform ? uniform : u);
      for (size_t j = 0; j < q.size(); ++j) law[j] = (1 - lambda) * law[j] + lambda * q[j] / 1.5;
      EXPECT_GT(ChiSquarePValue(counts, law), kAlpha) << lambda << " " << is_uniform;
    }
  }
}

TEST(MixedLaw, WithoutAnyScoreTheModelCountsAsThePublicDistribution) {
  const std::vector<double> q = {0, 0, 0}, u = {1, 2, 5};
  RandomStream random = Seeded(300);
  std::vector<uint64_t> counts(q.size());
  MixedLaw mixed;
  mixed.Assign(0.8, q, u);
  for (int i = 0; i < 100000; ++i) ++counts[mixed.Sample(random)];
  EXPECT_GT(ChiSquarePValue(counts, Normalised(u)), kAlpha);
}

// Sums of blocks must be exact. The largest weights, each odd in its last place, stand beside the smallest.
TEST(ExactLaw, SumsAreExact) {
  constexpr size_t kSize = 97;  // three blocks and an odd item
  std::vector<double> weights(kSize);
  for (size_t i = 0; i < kSize; ++i)
    weights[i] = i % 3 == 0   ? 0x1p96 - std::ldexp(1.0 + 2 * static_cast<double>(i), 43)
                 : i % 3 == 1 ? 0x1p53 - 1 - 2.0 * i
                              : 1;
  ExactLaw law;
  law.Assign(weights);
  // Items are removed one by one, and the last one must be sampled: a sum that is off by one would loop forever or pass
  // the end.
  RandomStream random = Seeded(310);
  for (size_t left = kSize; left > 1; --left) {
    const size_t index = law.Sample(random);
    ASSERT_LT(index, kSize);
    ASSERT_GT(weights[index], 0) << "sampled twice";
    law.Remove(index);
    weights[index] = 0;
  }
  const size_t last = law.Sample(random);
  EXPECT_GT(weights[last], 0);
}

// Samples without replacement in three blocks and compares with the law over the remaining items, for uniform and for
// other public parts.
TEST(MixedLaw, RemovedItemsAreSampledNoMore) {
  std::vector<double> q(150), u(150);
  for (size_t i = 0; i < q.size(); ++i)
    q[i] = i % 4 == 0 ? 0 : 1.0 + static_cast<double>(i % 9), u[i] = 1 + static_cast<double>(i % 5);
  uint64_t seed = 320;
  for (bool is_uniform : {true, false}) {
    MixedLaw mixed;
    mixed.Assign(0.6, q, is_uniform ? std::span<const double>() : u);
    std::vector<double> q_left = q, u_left = is_uniform ? std::vector<double>(u.size(), 1.0) : u;
    for (size_t gone : {0, 1, 63, 64, 127, 128, 149}) mixed.Remove(gone), q_left[gone] = u_left[gone] = 0;
    q_left = Normalised(q_left), u_left = Normalised(u_left);
    std::vector<double> law(q.size());
    for (size_t i = 0; i < law.size(); ++i) law[i] = 0.6 * q_left[i] + 0.4 * u_left[i];
    std::vector<uint64_t> counts(q.size());
    RandomStream random = Seeded(seed++);
    for (int i = 0; i < 300000; ++i) ++counts[mixed.Sample(random)];
    EXPECT_GT(ChiSquarePValue(counts, law), kAlpha) << is_uniform;
    for (size_t i = 0; i < law.size(); ++i) EXPECT_TRUE(law[i] > 0 || counts[i] == 0) << i;
  }
}

}  // namespace
}  // namespace wisp::distinct_samples_test
