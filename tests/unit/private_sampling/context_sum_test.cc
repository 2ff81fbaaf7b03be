// The law of samples after private contexts: what one context adds, how two neighbouring sums differ, and what is
// charged for it.
#include "runtime/private_sampling/context_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "runtime/private_sampling/sample_cost.h"

namespace wisp::context_sum_test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<double> Logs(const std::vector<int64_t>& sums, const std::vector<float>& base,
                         const AggregateOptions& options) {
  std::vector<int32_t> items(base.size());
  std::iota(items.begin(), items.end(), 0);
  std::vector<double> weights;
  AggregateWeights(sums, base, items, options, weights);
  for (double& w : weights) w = std::log(w);
  return weights;
}

double Range(const std::vector<double>& a, const std::vector<double>& b) {
  double low = 1e9, high = -1e9;
  for (size_t j = 0; j < a.size(); ++j) {
    low = std::min(low, a[j] - b[j]);
    high = std::max(high, a[j] - b[j]);
  }
  return high - low;
}

TEST(ContextSum, NoContextAddsMoreThanItsSteps) {
  const std::vector<float> base = {0, 1, -3, 100, 0, 0, -kInf}, scores = {kInf, -kInf, kNan, 100.5f, 1e-9f, 3e38f, 0};
  for (double clip : {1e-3, 1.0, 700.0}) {
    std::vector<int64_t> sums(base.size(), 0);
    AddClipped(scores, base, clip, sums);
    for (int64_t steps : sums) EXPECT_LE(std::abs(steps), kContextSteps) << clip;
    EXPECT_EQ(sums[0], kContextSteps);
    EXPECT_EQ(sums[1], -kContextSteps);
    EXPECT_EQ(sums[2], 0) << "what is no number";
    EXPECT_EQ(sums[5], kContextSteps);
    const double expected = std::clamp(0.5 / clip, -1.0, 1.0) * static_cast<double>(kContextSteps);
    EXPECT_NEAR(static_cast<double>(sums[3]), expected, 0.5);
    std::vector<int64_t> twice = sums;
    AddClipped(scores, base, clip, twice);
    for (size_t j = 0; j < sums.size(); ++j) EXPECT_EQ(twice[j], 2 * sums[j]);
  }
}

TEST(ContextSum, AreTheFormulaWithinTheErrorThatIsCharged) {
  std::mt19937_64 rng(11);
  double worst = 0;
  for (int round = 0; round < 2000; ++round) {
    AggregateOptions o{.clip = std::uniform_real_distribution<double>(0.01, 6)(rng),
                       .temperature = std::exp2(std::uniform_real_distribution<double>(-4, 3)(rng)),
                       .contexts = static_cast<uint32_t>(1 + rng() % 64)};
    const double size = round % 2 == 0 ? 5 : o.temperature * 0x1p19;
    std::vector<float> base;
    std::vector<int64_t> sums;
    const auto offset = static_cast<float>(std::uniform_real_distribution<double>(-size, size)(rng));
    const int64_t most = 2 * kContextSteps * o.contexts;  // some sums are beyond those of B contexts
    for (int j = 0; j < 8; ++j) {
      base.push_back(offset + static_cast<float>(std::uniform_real_distribution<double>(-8, 8)(rng) * o.temperature));
      sums.push_back(std::uniform_int_distribution<int64_t>(-most, most)(rng));
    }
    const std::vector<double> logs = Logs(sums, base, o);
    const double m = *std::max_element(base.begin(), base.end()) + o.clip;
    for (size_t j = 0; j < base.size(); ++j) {
      const long double d = std::clamp(static_cast<long double>(sums[j]) * o.clip / o.contexts / kContextSteps,
                                       -static_cast<long double>(o.clip), static_cast<long double>(o.clip));
      const long double t = (static_cast<long double>(base[j]) + d - m) / o.temperature;
      const long double psi = std::max<long double>(53 * std::log(2.0L), 95 * std::log(2.0L) + t);
      worst = std::max(worst, static_cast<double>(std::abs(logs[j] - psi)));
    }
  }
  EXPECT_LT(4 * worst, kAggregateRangeSlack);
}

// Neighbours share all contexts but one, which is arbitrary or missing: 5^3 records against nothing.
TEST(ContextSum, OneRecordMovesTheLawByNoMoreThanIsCharged) {
  const float moves[] = {-kInf, -0.3f, 0, kNan, 1e9f};
  for (const uint32_t contexts : {1u, 3u, 16u}) {
    for (const auto& [clip, temperature] : {std::pair{0.5, 1.0}, {4.0, 0.7}, {1e-5, 2.0}}) {
      const AggregateOptions o{.clip = clip, .temperature = temperature, .contexts = contexts};
      const double charged =
          AggregateSampleCost({.clip = clip, .temperature = temperature, .contexts = contexts}).range;
      EXPECT_NEAR(charged, 2 * clip / (contexts * temperature), 2e-8);
      const std::vector<float> base = {0, 1, -2};
      double worst = 0;
      for (int64_t others : {int64_t{0}, kContextSteps / 3, 5 * kContextSteps}) {  // the last is beyond B contexts
        std::vector<int64_t> without = {others, -others, others / 2};
        const std::vector<double> law = Logs(without, base, o);
        for (size_t code = 0; code < 125; ++code) {
          std::vector<int64_t> with = without;
          const std::vector<float> scores = {base[0] + moves[code % 5], base[1] + moves[code / 5 % 5],
                                             base[2] + moves[code / 25]};
          AddClipped(scores, base, clip, with);
          worst = std::max(worst, Range(Logs(with, base, o), law));
        }
      }
      EXPECT_LE(worst, charged + 1e-13) << contexts << " contexts, clip " << clip;
      EXPECT_GE(worst, 0.98 * charged - kAggregateRangeSlack) << "the bound says nothing";
    }
  }
}

// A pair reaches the charged epsilon of a sample: a record pushes one unlikely token up and all others down.
TEST(ContextSum, AnUnlikelyTokenReachesTheEpsilonThatIsCharged) {
  const std::vector<float> base = {0, -20};
  const AggregateOptions o{.clip = 2, .temperature = 1, .contexts = 2};
  std::vector<int64_t> with(2, 0);
  AddClipped(std::vector<float>{-99, 99}, base, o.clip, with);
  const auto of_second = [&](const std::vector<int64_t>& sums) {
    const std::vector<double> logs = Logs(sums, base, o);
    return logs[1] - logs[0] - std::log1p(std::exp(logs[1] - logs[0]));
  };
  const double epsilon = ComputeEpsilon(AggregateSampleCost({.clip = 2, .temperature = 1, .contexts = 2}));
  EXPECT_LE(of_second(with) - of_second({0, 0}), epsilon);
  EXPECT_NEAR(of_second(with) - of_second({0, 0}), epsilon, 1e-5);
}

TEST(ContextSum, ARecordThatIsExchangedCostsTwice) {
  AggregateCostOptions o{.clip = 1.5, .temperature = 0.8, .contexts = 4};
  for (const auto adjacency : {privacy::Adjacency::kAddRemove, privacy::Adjacency::kZeroOut}) {
    o.adjacency = adjacency;
    EXPECT_NEAR(AggregateSampleCost(o).range, 3 / 3.2, 1e-7);
    EXPECT_GE(AggregateSampleCost(o).range, 3 / 3.2 + kAggregateRangeSlack);
  }
  o.adjacency = privacy::Adjacency::kReplaceOne;
  EXPECT_GE(AggregateSampleCost(o).range, 6 / 3.2 + kAggregateRangeSlack);
  std::vector<int64_t> up(2, 0), down(2, 0);
  const std::vector<float> base = {0, 0};
  AddClipped(std::vector<float>{9, -9}, base, o.clip, up);
  AddClipped(std::vector<float>{-9, 9}, base, o.clip, down);
  const AggregateOptions law{.clip = o.clip, .temperature = o.temperature, .contexts = o.contexts};
  const double range = Range(Logs(up, base, law), Logs(down, base, law));
  EXPECT_NEAR(range, AggregateSampleCost(o).range, 1e-7);
  EXPECT_LE(range, AggregateSampleCost(o).range);
}

TEST(ContextSum, AClipForARangeSpendsItAndNoMore) {
  for (double range : {1e-6, 0.1, 3.0, 40.0}) {
    for (uint32_t contexts : {1u, 7u, 500u}) {
      AggregateCostOptions o{.temperature = 0.9, .contexts = contexts};
      const Result<double> clip = AggregateClipForRange(range, o);
      ASSERT_TRUE(clip.ok()) << clip.status().message();
      o.clip = *clip;
      EXPECT_LE(AggregateSampleCost(o).range, range);
      EXPECT_GE(AggregateSampleCost(o).range, range * (1 - 1e-9) - 1e-15);
    }
  }
  EXPECT_FALSE(AggregateClipForRange(kAggregateRangeSlack / 2, {.contexts = 2}).ok());
}

}  // namespace
}  // namespace wisp::context_sum_test
