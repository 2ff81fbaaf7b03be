// The laws of private samples and their costs. Statistical tests have fixed seeds and alpha = 1e-6 each.
#include "runtime/private_sampling/sample_law.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "gtest/gtest.h"
#include "runtime/private_sampling/sample_cost.h"
#include "tests/unit/privacy/noise/chi_square.h"

namespace wisp::sample_law_test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<double> Normalised(std::vector<double> weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& w : weights) w /= sum;
  return weights;
}

// Returns lambda q + (1 - lambda) u with all of q on item `vertex`: the laws at the corners, where the worst pair lies.
std::vector<double> Corner(size_t vertex, double lambda, const std::vector<double>& u) {
  std::vector<double> law;
  for (size_t j = 0; j < u.size(); ++j) law.push_back((j == vertex ? lambda : 0) + (1 - lambda) * u[j]);
  return law;
}

// Returns the largest log(p_j / p'_j) and the largest delta at `epsilon` over all pairs of corners.
double WorstLogRatio(double lambda, const std::vector<double>& u) {
  double worst = 0;
  for (size_t a = 0; a < u.size(); ++a) {
    for (size_t b = 0; b < u.size(); ++b) {
      const auto p = Corner(a, lambda, u), q = Corner(b, lambda, u);
      for (size_t j = 0; j < u.size(); ++j) worst = std::max(worst, std::log(p[j] / q[j]));
    }
  }
  return worst;
}
double WorstDelta(double epsilon, double lambda, const std::vector<double>& u) {
  double worst = 0;
  for (size_t a = 0; a < u.size(); ++a) {
    for (size_t b = 0; b < u.size(); ++b) {
      const auto p = Corner(a, lambda, u), q = Corner(b, lambda, u);
      double delta = 0;
      for (size_t j = 0; j < u.size(); ++j) delta += std::max(0.0, p[j] - std::exp(epsilon) * q[j]);
      worst = std::max(worst, delta);
    }
  }
  return worst;
}

TEST(SampleCost, MixingEpsilonIsTheLargestLogRatioOfAnyTwoLaws) {
  for (double lambda : {1e-4, 0.1, 0.5, 0.99}) {
    for (size_t n = 2; n <= 6; ++n) {
      EXPECT_NEAR(ComputeEpsilon(UniformSampleCost(n, lambda)),
                  WorstLogRatio(lambda, std::vector<double>(n, 1.0 / static_cast<double>(n))), 1e-12);
      // Theorem 1 of the paper, in its own form.
      EXPECT_NEAR(ComputeEpsilon(UniformSampleCost(n, lambda)),
                  std::log((1 + (static_cast<double>(n) - 1) * lambda) / (1 - lambda)), 1e-12);
    }
    const std::vector<double> weights = {1, 3, 4, 8};
    const double charged = ComputeEpsilon(NonUniformSampleCost(weights, 0, lambda)),
                 worst = WorstLogRatio(lambda, Normalised(weights));
    EXPECT_GE(charged, worst - 1e-15);  // the logarithm of a rounded quotient
    EXPECT_NEAR(charged, worst, 1e-12);
  }
}

// The distribution has the share `floor` of the uniform, and the rest on one item. The charged probability stays below
// its least one, after rounding too.
TEST(SampleCost, AMixtureIsChargedForItsFloor) {
  for (double floor : {kLeastMixingFloor, 0.1, 1.0}) {
    for (size_t support : {2u, 20u, 260000u}) {
      std::vector<double> u(support, floor / static_cast<double>(support));
      u[0] += 1 - floor;
      const std::vector<double> weights = IntegerWeights(u);
      const double least =
          *std::min_element(weights.begin(), weights.end()) / std::accumulate(weights.begin(), weights.end(), 0.0);
      EXPECT_LE(MinMixtureProbability(floor, support), least) << floor << " " << support;
      EXPECT_GE(MinMixtureProbability(floor, support), least * (1 - 1e-4));
    }
  }
}

TEST(SampleCost, NonUniformAfterSamplesIsTheWorstOverAllItemsThatMayBeGone) {
  const std::vector<double> sorted = {1, 2, 2, 5, 7, 19};
  for (size_t sampled = 0; sampled + 2 <= sorted.size(); ++sampled) {
    double least = 1;
    for (uint32_t gone = 0; gone < 1u << sorted.size(); ++gone) {
      if (static_cast<size_t>(std::popcount(gone)) != sampled) continue;
      double smallest = 1e9, sum = 0;
      for (size_t j = 0; j < sorted.size(); ++j) {
        if ((gone >> j & 1) != 0) continue;
        smallest = std::min(smallest, sorted[j]);
        sum += sorted[j];
      }
      least = std::min(least, smallest / sum);
    }
    const SampleCost cost = NonUniformSampleCost(sorted, sampled, 0.25);
    EXPECT_LE(cost.min_probability, least) << sampled;
    EXPECT_NEAR(cost.min_probability, least, 1e-15) << sampled;
  }
}

TEST(SampleCost, WhatCoversIsWorseAtEveryEpsilon) {
  const double lambda = 0.2;
  for (double epsilon : {0.0, 0.1, 0.5, 1.0}) {
    for (size_t n = 3; n <= 6; ++n) {
      const double larger = WorstDelta(epsilon, lambda, std::vector<double>(n, 1.0 / static_cast<double>(n)));
      const double smaller = WorstDelta(epsilon, lambda, std::vector<double>(n - 1, 1.0 / static_cast<double>(n - 1)));
      EXPECT_GE(larger, smaller - 1e-15);
    }
    EXPECT_GE(WorstDelta(epsilon, lambda, {0.1, 0.2, 0.7}), WorstDelta(epsilon, lambda, {0.2, 0.3, 0.5}));
  }
  EXPECT_TRUE(Covers(UniformSampleCost(5, lambda), UniformSampleCost(4, lambda)));
  EXPECT_FALSE(Covers(UniformSampleCost(4, lambda), UniformSampleCost(5, lambda)));
  EXPECT_FALSE(Covers(UniformSampleCost(5, 0.1), UniformSampleCost(5, lambda)));
  const std::vector<double> low = {1, 9}, high = {2, 8};
  EXPECT_TRUE(Covers(NonUniformSampleCost(low, 0, lambda), NonUniformSampleCost(high, 0, lambda)));
  EXPECT_FALSE(Covers(NonUniformSampleCost(high, 0, lambda), NonUniformSampleCost(low, 0, lambda)));
  EXPECT_FALSE(Covers(UniformSampleCost(5, lambda), NonUniformSampleCost(high, 0, lambda)));
  EXPECT_FALSE(Covers(AnchoredSampleCost(1, 1, 9), AnchoredSampleCost(1.1, 1, 9)));
}

TEST(SampleCost, NothingIsChargedWhereNothingDependsOnTheRecords) {
  const std::vector<double> one = {4}, two = {4, 5};
  for (const SampleCost& cost :
       {UniformSampleCost(9, 0), UniformSampleCost(1, 0.5), NonUniformSampleCost(one, 0, 0.5),
        NonUniformSampleCost(two, 1, 0.5), NonUniformSampleCost(two, 0, 0), AnchoredSampleCost(1, 1, 1)}) {
    EXPECT_EQ(cost.kind, SampleCost::Kind::kNothing);
    EXPECT_EQ(ComputeEpsilon(cost), 0);
    EXPECT_FALSE(ToMechanism(cost, 1, privacy::Adjacency::kAddRemove).ok());
  }
}

TEST(SampleCost, LambdaForEpsilonSpendsItAndNoMore) {
  for (double epsilon : {0.01, 1.0, 69.3}) {
    for (uint64_t samples : {1u, 100u}) {
      const double lambda = *LambdaForEpsilon(epsilon, samples, 10000);
      const double spent = static_cast<double>(samples) * ComputeEpsilon(UniformSampleCost(10000, lambda));
      // At 69.3 per sample, 1 - lambda is 1e-26, and the nearest double below 1 must serve.
      if (epsilon / static_cast<double>(samples) < 10) {
        EXPECT_NEAR(spent, epsilon, 1e-10 * epsilon);
      }
      EXPECT_LE(spent, epsilon * (1 + 1e-15));
    }
  }
  EXPECT_LT(*LambdaForEpsilon(1e6, 1, 2), 1);
  EXPECT_FALSE(LambdaForEpsilon(0, 1, 2).ok());
  EXPECT_FALSE(LambdaForEpsilon(1, 0, 2).ok());
}

struct AnchoredCase {
  std::vector<float> base;
  double clip, temperature;
};

// Returns the logarithms of the weights, in long double.
std::vector<double> AnchoredLogs(const AnchoredCase& c, std::span<const float> scores) {
  std::vector<int32_t> items(c.base.size());
  std::iota(items.begin(), items.end(), 0);
  std::vector<double> weights;
  AnchoredWeights(scores, c.base, items, {.clip = c.clip, .temperature = c.temperature}, weights);
  for (double& w : weights) w = std::log(w);
  return weights;
}

TEST(AnchoredWeights, NoTwoModelsDifferByMoreThanIsCharged) {
  const std::vector<AnchoredCase> cases = {{{0, 0, 0, 0}, 0.5, 1},     {{3, -2, 0.25, -9}, 0.7, 0.3},
                                           {{0, -40, -25, -30}, 2, 1}, {{1e5f, 99999, 99990, 0}, 1, 0.2},
                                           {{5, 5, 5, -12}, 3, 1},     {{0, -1e-3f, 1e-3f, 7}, 1e-6, 1}};
  const float moves[] = {-kInf, -1e9f, -0.1f, 0, 0.3f, 1e9f, kInf, kNan};
  for (const AnchoredCase& c : cases) {
    const double charged = AnchoredSampleCost(c.clip, c.temperature, c.base.size()).range;
    std::vector<std::vector<double>> logs;
    for (uint32_t code = 0; code < 4096; ++code) {  // 8^4 models
      std::vector<float> scores = c.base;
      for (size_t j = 0; j < 4; ++j) scores[j] += moves[code >> 3 * j & 7];
      logs.push_back(AnchoredLogs(c, scores));
    }
    double worst = 0;
    for (size_t a = 0; a < logs.size(); a += 1) {
      for (size_t b = 0; b < logs.size(); b += 7) {
        double low = 1e9, high = -1e9;
        for (size_t j = 0; j < 4; ++j) {
          low = std::min(low, logs[a][j] - logs[b][j]);
          high = std::max(high, logs[a][j] - logs[b][j]);
        }
        worst = std::max(worst, high - low);
      }
    }
    // The logarithms of this test are themselves off by 1e-14.
    EXPECT_LE(worst, charged + 1e-13) << "clip " << c.clip;
    EXPECT_GE(worst, 0.49 * (charged - kAnchoredRangeSlack)) << "the bound says nothing, clip " << c.clip;
  }
}

TEST(AnchoredWeights, AnUnlikelyItemReachesTheEpsilonThatIsCharged) {
  const AnchoredCase c{{0, -20}, 1, 1};
  const auto law = [&](float a, float b) {
    const std::vector<float> scores = {a, b};
    auto w = AnchoredLogs(c, scores);
    for (double& x : w) x = std::exp(x - 50);
    return Normalised(w);
  };
  const double worst = std::log(law(-99, 99)[1] / law(99, -99)[1]);
  EXPECT_LE(worst, AnchoredSampleCost(1, 1, 2).range);
  EXPECT_NEAR(worst, 4, 1e-5);
}

TEST(AnchoredWeights, TheErrorOfTheArithmeticIsPaidFor) {
  for (double clip : {1e-3, 0.5, 40.0}) {
    for (double temperature : {0.1, 1.0, 7.0})
      EXPECT_GE(AnchoredSampleCost(clip, temperature, 2).range, 4 * clip / temperature + kAnchoredRangeSlack);
  }
}

TEST(AnchoredWeights, AreTheFormulaWithinTheErrorThatIsCharged) {
  std::mt19937_64 rng(5);
  double worst = 0;
  for (int round = 0; round < 2000; ++round) {
    const double temperature = std::exp2(std::uniform_real_distribution<double>(-6, 4)(rng));
    const double clip = temperature * std::uniform_real_distribution<double>(0.01, 6)(rng);
    const double size = round % 2 == 0 ? 5 : temperature * 0x1p19;
    std::vector<float> base, scores;
    const float offset = static_cast<float>(std::uniform_real_distribution<double>(-size, size)(rng));
    for (int j = 0; j < 8; ++j) {
      base.push_back(offset + static_cast<float>(std::uniform_real_distribution<double>(-8, 8)(rng) * temperature));
      scores.push_back(base.back() + static_cast<float>(std::normal_distribution<double>(0, 2 * clip)(rng)));
    }
    const auto logs = AnchoredLogs({base, clip, temperature}, scores);
    const double m = *std::max_element(base.begin(), base.end()) + clip;
    for (size_t j = 0; j < base.size(); ++j) {
      const double d = std::clamp(static_cast<double>(scores[j]) - base[j], -clip, clip);
      const long double t = (static_cast<long double>(base[j]) + d - m) / temperature;
      const long double psi = std::max<long double>(53 * std::log(2.0L), 95 * std::log(2.0L) + t);
      worst = std::max(worst, static_cast<double>(std::abs(logs[j] - psi)));
    }
  }
  RecordProperty("worst", std::to_string(worst));
  EXPECT_LT(4 * worst, kAnchoredRangeSlack);
}

TEST(AnchoredWeights, AreIntegersNotBelowTheFloor) {
  const std::vector<float> base = {0, -3.3f, -28.9f, -29.2f, -90, 0.1f}, scores = {1, -3, -29, -28, -90, 0};
  const std::vector<int32_t> items = {0, 1, 2, 3, 4, 5};
  std::vector<double> weights;
  AnchoredWeights(scores, base, items, {.clip = 0.3, .temperature = 1}, weights);
  for (double w : weights) EXPECT_TRUE(w >= 0x1p53 && w <= 0x1p95 && w == std::floor(w)) << w;
  EXPECT_EQ(weights[4], 0x1p53);
}

TEST(SoftmaxWeights, TruncatesAndTakesAnyScore) {
  const std::vector<float> scores = {1, 3, kNan, -kInf, 2, 3};
  const std::vector<int32_t> all = {0, 1, 2, 3, 4, 5}, few = {2, 3}, odd = {4, 0};
  std::vector<double> w;
  SoftmaxWeights(scores, all, {.temperature = 2}, w);
  const std::vector<double> expected = {std::exp(-1.0), 1, 0, 0, std::exp(-0.5), 1};
  for (size_t i = 0; i < w.size(); ++i) EXPECT_DOUBLE_EQ(w[i], expected[i]) << i;
  SoftmaxWeights(scores, all, {.top_k = 1}, w);
  EXPECT_EQ(w, (std::vector<double>{0, 1, 0, 0, 0, 0}));
  SoftmaxWeights(scores, all, {.nucleus = 0.6}, w);
  EXPECT_EQ(w, (std::vector<double>{0, 1, 0, 0, 0, 1}));
  SoftmaxWeights(scores, few, {}, w);
  EXPECT_EQ(w, (std::vector<double>{0, 0}));
  SoftmaxWeights(scores, odd, {}, w);
  EXPECT_EQ(w[0], 1);
  EXPECT_DOUBLE_EQ(w[1], std::exp(-1.0));
  const std::vector<float> infinite = {kInf, 0, kInf};
  SoftmaxWeights(infinite, std::vector<int32_t>{0, 1, 2}, {}, w);
  EXPECT_EQ(w, (std::vector<double>{1, 0, 1}));
}

TEST(IntegerWeights, AreIntegersOfOneAndAboveInProportion) {
  const std::vector<double> u = {1e300, 3e300, 1e-300, 2e299};
  const auto w = IntegerWeights(u);
  for (double x : w) EXPECT_TRUE(x >= 1 && x == std::floor(x));
  EXPECT_EQ(w[2], 1);
  EXPECT_NEAR(w[1] / w[0], 3, 1e-14);
  EXPECT_LT(std::accumulate(w.begin(), w.end(), 0.0), 0x1p52 + 4);
  EXPECT_GT(std::accumulate(w.begin(), w.end(), 0.0), 0x1p51);
}

}  // namespace
}  // namespace wisp::sample_law_test
