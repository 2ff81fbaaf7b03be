// Exact audits of enumerated distributions and membership inference: closed forms, brute force, and mechanisms broken
// on purpose. Experiments have fixed seeds; a share of wrong intervals may exceed its promise by 4.9 standard
// deviations.
#include "runtime/privacy/audit/audit_exact.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "runtime/privacy/audit/membership.h"
#include "runtime/privacy/noise/random.h"

namespace wisp::privacy::audit_exact_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
using Distribution = std::vector<double>;

double Allowed(double trials, double rate) { return trials * rate + 4.9 * std::sqrt(trials * rate * (1 - rate)); }

Distribution RandomDistribution(RandomStream& random, size_t n) {
  Distribution p(n);
  double sum = 0;
  for (double& x : p) sum += x = std::exp(2 * random.Normal());
  for (double& x : p) x /= sum;
  return p;
}

// Returns lambda q + (1 - lambda) u, from which DP decoding samples.
Distribution Mixed(const Distribution& q, double lambda) {
  Distribution mixed = q;
  for (double& x : mixed) x = lambda * x + (1 - lambda) / static_cast<double>(q.size());
  return mixed;
}

Distribution OneHot(size_t n, size_t at) {
  Distribution p(n, 0.0);
  p[at] = 1;
  return p;
}

// ---- Exact ----

TEST(Exact, RandomizedResponseHasItsEpsilonAndDelta) {
  for (double epsilon : {0.1, 1.0, 5.0}) {
    const double t = std::exp(epsilon) / (1 + std::exp(epsilon));
    const Distribution p = {t, 1 - t}, q = {1 - t, t};
    EXPECT_NEAR(*MaxLogRatio(p, q), epsilon, 1e-12);
    EXPECT_NEAR(*HockeyStick(p, q, 0), 2 * t - 1, 1e-12);
    EXPECT_NEAR(*HockeyStick(p, q, epsilon / 2), t - std::exp(epsilon / 2) * (1 - t), 1e-12);
    EXPECT_NEAR(*HockeyStick(p, q, epsilon), 0, 1e-12);
    EXPECT_NEAR(*ExactEpsilon(p, q, 0), epsilon, 1e-12);
    EXPECT_NEAR(*ExactEpsilon(p, q, t - std::exp(epsilon / 2) * (1 - t)), epsilon / 2, 1e-12);
    EXPECT_EQ(*ExactEpsilon(p, q, 2 * t - 1 + 1e-9), 0);
  }
}

TEST(Exact, SupportThatDiffersCostsItsMass) {
  const Distribution p = {0.9, 0.1, 0, 0}, q = {1, 0, 0, 0};
  for (bool exchanged : {false, true}) {
    const Distribution &a = exchanged ? q : p, &b = exchanged ? p : q;
    EXPECT_EQ(*MaxLogRatio(a, b), kInfinity);
    EXPECT_EQ(*ExactEpsilon(a, b, 0), kInfinity);
    EXPECT_EQ(*ExactEpsilon(a, b, 0.09), kInfinity);
    EXPECT_NEAR(*HockeyStick(a, b, 800), 0.1, 1e-12);
    EXPECT_EQ(*ExactEpsilon(a, b, 0.1 + 1e-9), 0);
  }
}

// The deciding output may be the likelier one under either distribution.
TEST(Exact, BothDirectionsCount) {
  const Distribution p = {0.01, 0.99}, q = {0.02, 0.98};
  for (const auto& [a, b] : {std::pair(p, q), std::pair(q, p)}) {
    EXPECT_NEAR(*MaxLogRatio(a, b), std::log(2), 1e-12);
    EXPECT_NEAR(*HockeyStick(a, b, 0.5), 0.02 - std::exp(0.5) * 0.01, 1e-12);
    EXPECT_NEAR(*ExactEpsilon(a, b, 0.005), std::log(1.5), 1e-12);
  }
}

TEST(Exact, EpsilonInvertsDelta) {
  RandomStream random = RandomStream::Reproducible(11, StreamPurpose::kNoise);
  for (size_t n : {1, 2, 3, 7, 33, 100}) {
    const Distribution p = RandomDistribution(random, n), q = RandomDistribution(random, n);
    for (double delta : {0.3, 0.1, 1e-3, 1e-6, 1e-10}) {
      const double epsilon = *ExactEpsilon(p, q, delta);
      EXPECT_LE(*HockeyStick(p, q, epsilon), delta + 1e-12) << n;
      if (epsilon > 1e-6) {
        EXPECT_GT(*HockeyStick(p, q, epsilon - 1e-6), delta) << n << " " << delta;
      }
    }
    EXPECT_LE(*ExactEpsilon(p, q, 1e-10), *MaxLogRatio(p, q));
  }
}

TEST(Exact, MixedDecodingReachesItsBoundAndUnmixedPassesIt) {
  constexpr size_t kItems = 20;
  constexpr double kLambda = 0.3;
  const double bound = std::log((1 + (kItems - 1) * kLambda) / (1 - kLambda));
  EXPECT_NEAR(*MaxLogRatio(Mixed(OneHot(kItems, 3), kLambda), Mixed(OneHot(kItems, 4), kLambda)), bound, 1e-12);
  RandomStream random = RandomStream::Reproducible(12, StreamPurpose::kNoise);
  for (int t = 0; t < 50; ++t) {
    const Distribution a = RandomDistribution(random, kItems), b = RandomDistribution(random, kItems);
    EXPECT_LT(*MaxLogRatio(Mixed(a, kLambda), Mixed(b, kLambda)), bound);
    // Broken: truncated to the likelier half after mixing, so that the support reveals it.
    Distribution cut = Mixed(a, kLambda);
    const double floor = kLambda * 0.05 + (1 - kLambda) / kItems;
    double sum = 0;
    for (double& x : cut) sum += x = x < floor ? 0 : x;
    for (double& x : cut) x /= sum;
    EXPECT_EQ(*MaxLogRatio(cut, Mixed(b, kLambda)), kInfinity);
  }
}

TEST(Exact, InvalidDistributions_AreRefused) {
  const Distribution good = {0.5, 0.5};
  for (const Distribution& bad :
       {Distribution{}, {1}, {0.5, 0.6}, {1.5, -0.5}, {kNaN, 1}, {0.5, kInfinity}, {0.3, 0.3, 0.4}}) {
    EXPECT_FALSE(MaxLogRatio(good, bad).ok());
    EXPECT_FALSE(HockeyStick(bad, good, 1).ok());
    EXPECT_FALSE(ExactEpsilon(good, bad, 0.1).ok());
  }
  EXPECT_FALSE(MaxLogRatio({}, {}).ok());
  for (double bad : {-1.0, kNaN}) EXPECT_FALSE(HockeyStick(good, good, bad).ok());
  for (double bad : {-1.0, 1.0, kNaN}) EXPECT_FALSE(ExactEpsilon(good, good, bad).ok());
}

// ---- Ordered tuples ----

TEST(OrderedSamples, IndependentSamplesAddTheirEpsilons) {
  const Distribution p = {0.5, 0.3, 0.2}, q = {0.2, 0.3, 0.5};
  const auto always = [](Distribution d) {
    return [d](std::span<const uint32_t>) -> Result<Distribution> { return d; };
  };
  for (uint32_t samples : {1u, 2u, 5u}) {
    const auto pair = OrderedSamples(samples, always(p), always(q));
    EXPECT_EQ(pair->p.size(), static_cast<size_t>(std::pow(3, samples)));
    EXPECT_NEAR(*MaxLogRatio(pair->p, pair->q), samples * std::log(2.5), 1e-12);
  }
}

TEST(OrderedSamples, WithoutReplacementEqualsProductsByHand) {
  const Distribution p = {0.5, 0.3, 0.2}, q = {0.2, 0.3, 0.5};
  const auto pair = OrderedSamples(2, WithoutReplacement(p), WithoutReplacement(q));
  const Distribution expected = {0.5 * 0.6, 0.5 * 0.4, 0.3 * 5 / 7, 0.3 * 2 / 7, 0.2 * 0.625, 0.2 * 0.375};
  ASSERT_EQ(pair->p.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(pair->p[i], expected[i], 1e-12);
    EXPECT_NEAR(pair->q[i], expected[5 - i], 1e-12);  // q is p mirrored
  }
  // Order is part of the output: the set {0, 1} has probabilities 0.514 and 0.161, (0, 1) has 0.3 and 0.075.
  EXPECT_NEAR(*MaxLogRatio(pair->p, pair->q), std::log(4), 1e-12);
}

// Samples k distinct items, each mixed over the remaining ones: the charges add up to a bound. Mixing once over all
// items and renormalising the weights, at k times the charge of the first sample, exceeds its charge.
TEST(OrderedSamples, DistinctItemsStayWithinTheSumOfTheirCharges) {
  constexpr uint32_t kItems = 5, kSamples = 3;
  constexpr double kLambda = 0.4;
  const auto mixed_each_time = [](Distribution weights) -> NextSample {
    return [weights](std::span<const uint32_t> sampled) -> Result<Distribution> {
      Distribution next = weights;
      double sum = 0;
      for (uint32_t item : sampled) next[item] = 0;
      for (double x : next) sum += x;
      for (double& x : next) x = kLambda * x / sum + (1 - kLambda) / static_cast<double>(kItems - sampled.size());
      for (uint32_t item : sampled) next[item] = 0;
      return next;
    };
  };
  double charged = 0;
  for (uint32_t t = 0; t < kSamples; ++t) charged += std::log((1 + (kItems - t - 1) * kLambda) / (1 - kLambda));
  const Distribution up = {0.9999, 0.99e-4, 0.98e-6, 1e-8, 1e-8}, down = {1e-8, 1e-8, 0.98e-6, 0.99e-4, 0.9999};
  const auto pair = OrderedSamples(kSamples, mixed_each_time(up), mixed_each_time(down));
  EXPECT_EQ(pair->p.size(), 60u);
  const double found = *MaxLogRatio(pair->p, pair->q);
  EXPECT_LE(found, charged);
  EXPECT_GE(found, 0.5 * charged);
  EXPECT_LT(*ExactEpsilon(pair->p, pair->q, 0.05), found);
}

TEST(OrderedSamples, ImpossiblePrefixesAreNotAsked) {
  const Distribution p = {1, 0, 0}, q = {0.5, 0.5, 0};
  const auto asked = [](Distribution d) -> NextSample {
    return [d](std::span<const uint32_t> sampled) -> Result<Distribution> {
      for (uint32_t item : sampled) {
        if (d[item] == 0) return InvalidArgument("asked after what cannot be sampled");
      }
      return d;
    };
  };
  const auto pair = OrderedSamples(2, asked(p), asked(q));
  ASSERT_TRUE(pair.ok()) << pair.status().message();
  EXPECT_EQ(pair->p, (Distribution{1, 0, 0, 0}));
  EXPECT_EQ(pair->q, (Distribution{0.25, 0.25, 0.25, 0.25}));
}

TEST(OrderedSamples, RefusesTooManyAndTooStrange) {
  const Distribution many(300, 1.0 / 300), few = {0.5, 0.5};
  EXPECT_FALSE(OrderedSamples(0, WithoutReplacement(few), WithoutReplacement(few)).ok());
  EXPECT_FALSE(OrderedSamples(3, WithoutReplacement(few), WithoutReplacement(few)).ok());
  EXPECT_FALSE(OrderedSamples(1, WithoutReplacement(few), WithoutReplacement(many)).ok());
  EXPECT_FALSE(OrderedSamples(5, WithoutReplacement(many), WithoutReplacement(many)).ok());
  const NextSample broken = [](std::span<const uint32_t>) -> Result<Distribution> { return Distribution{0.5, kNaN}; };
  EXPECT_FALSE(OrderedSamples(1, broken, WithoutReplacement(few)).ok());
}

// ---- Membership inference ----

struct Losses {
  std::vector<double> members, non_members;
  operator MembershipLosses() const { return {members, non_members}; }  // NOLINT: implicit on purpose
};

Losses Draw(RandomStream& random, size_t n, double shift) {
  Losses losses;
  for (size_t i = 0; i < n; ++i) {
    losses.members.push_back(3 - shift + random.Normal());
    losses.non_members.push_back(3 + random.Normal());
  }
  return losses;
}

TEST(Membership, NoSignalIsGuessing) {
  constexpr int kTrials = 400;
  RandomStream random = RandomStream::Reproducible(21, StreamPurpose::kNoise);
  int wrong_accuracy = 0, wrong_auc = 0, wrong_rate = 0;
  double sum = 0;
  for (int t = 0; t < kTrials; ++t) {
    const auto report = InferMembership(Draw(random, 200, 0), 0.9);
    sum += report->accuracy;
    wrong_accuracy += report->accuracy_interval.low > 0.5 || report->accuracy_interval.high < 0.5;
    wrong_auc += report->auc_interval.low > 0.5 || report->auc_interval.high < 0.5;
    const double truth = 0.5 * std::erfc((3 - report->at_fpr_1_percent.threshold) * M_SQRT1_2);
    const Interval& interval = report->at_fpr_1_percent.false_positives.interval;
    wrong_rate += truth < interval.low || truth > interval.high;
  }
  // If accuracy were chosen and measured on the same records, it would be 0.54 here.
  EXPECT_NEAR(sum / kTrials, 0.5, 4.9 * 0.5 / std::sqrt(200.0 * kTrials));
  EXPECT_LE(wrong_accuracy, Allowed(kTrials, 0.1));
  EXPECT_LE(wrong_auc, Allowed(kTrials, 0.1));
  EXPECT_LE(wrong_rate, Allowed(kTrials, 0.1));
}

// Losses N(2, 1) and N(3, 1): accuracy Phi(1/2), AUC Phi(1 / sqrt 2), TPR Phi(1 + Phi^-1(FPR)).
TEST(Membership, GaussianLossesGiveTheFiguresOfTheirCurve) {
  RandomStream random = RandomStream::Reproducible(22, StreamPurpose::kNoise);
  const auto report = InferMembership(Draw(random, 40000, 1), 0.999);
  EXPECT_NEAR(report->best.threshold, 2.5, 0.15);
  EXPECT_NEAR(report->accuracy, 0.69146, 0.01);
  EXPECT_LT(report->accuracy_interval.low, 0.69146);
  EXPECT_GT(report->accuracy_interval.high, 0.69146);
  EXPECT_LT(report->accuracy_interval.high - report->accuracy_interval.low, 0.03);
  EXPECT_NEAR(report->auc, 0.76025, 0.01);
  EXPECT_LT(report->auc_interval.high - report->auc_interval.low, 0.03);
  const auto check = [](const ThresholdAttack& attack, double fpr, double tpr) {
    EXPECT_LT(attack.false_positives.interval.low, fpr);
    EXPECT_GT(attack.false_positives.interval.high, fpr);
    EXPECT_NEAR(attack.true_positives.rate(), tpr, 0.3 * tpr);
    EXPECT_EQ(attack.true_positives.count.trials, 20000u);
  };
  check(report->at_fpr_1_percent, 0.01, 0.09236);
  check(report->at_fpr_01_percent, 0.001, 0.01832);
}

TEST(Membership, SmallSetsByHand) {
  // Even indices choose: members 1, 2, non-members 5, 6. Odd ones measure: members 1, 9, non-members 0, 7.
  const Losses losses{{1, 1, 2, 9}, {5, 0, 6, 7}};
  const auto report = InferMembership(losses, 0.95);
  EXPECT_EQ(report->best.threshold, 2);
  EXPECT_EQ(report->best.true_positives.count.hits, 1u);
  EXPECT_EQ(report->best.false_positives.count.hits, 1u);
  EXPECT_EQ(report->accuracy, 0.5);
  EXPECT_EQ(report->auc, (3 + 3 + 3 + 0) / 16.0);
  // Among two, no false positive is allowed: the threshold is just below 5.
  EXPECT_LT(report->at_fpr_1_percent.threshold, 5);
  EXPECT_GT(report->at_fpr_1_percent.threshold, 4.999);
}

TEST(Membership, TiesCountHalfAndAreNeverMembersByLuck) {
  const Losses losses{std::vector<double>(100, 1.0), std::vector<double>(60, 1.0)};
  const auto report = InferMembership(losses, 0.95);
  EXPECT_EQ(report->auc, 0.5);
  EXPECT_EQ(report->accuracy, 0.5);
  EXPECT_EQ(report->best.threshold, -kInfinity);
  EXPECT_EQ(report->at_fpr_1_percent.true_positives.count.hits, 0u);
  EXPECT_EQ(report->at_fpr_1_percent.false_positives.count.trials, 30u);
}

TEST(Membership, MemorisedRecordsAreAllFound) {
  const Losses losses{std::vector<double>(4000, 0.01), std::vector<double>(4000, kInfinity)};
  const auto report = InferMembership(losses, 0.95);
  EXPECT_EQ(report->accuracy, 1);
  // 2000 of 2000 are right for either kind. The two rates share 0.05, and the ends of each interval share its part.
  EXPECT_NEAR(report->accuracy_interval.low, std::pow(0.05 / 4, 1 / 2000.0), 1e-12);
  EXPECT_EQ(report->accuracy_interval.high, 1);
  EXPECT_EQ(report->auc, 1);
  EXPECT_NEAR(report->auc_interval.low, 1 - std::sqrt(std::log(2 / 0.05) / 8000), 1e-12);
  EXPECT_EQ(report->at_fpr_01_percent.true_positives.rate(), 1);
  EXPECT_EQ(report->at_fpr_01_percent.false_positives.rate(), 0);
}

TEST(Membership, RefusesBadLosses) {
  const std::vector<double> good = {1, 2}, one = {1}, nan = {1, kNaN}, minus = {1, -kInfinity};
  for (const auto& bad : {one, nan, minus}) {
    EXPECT_FALSE(InferMembership({.members = bad, .non_members = good}, 0.95).ok());
    EXPECT_FALSE(InferMembership({.members = good, .non_members = bad}, 0.95).ok());
  }
  for (double bad : {0.0, 1.0, kNaN}) EXPECT_FALSE(InferMembership({.members = good, .non_members = good}, bad).ok());
  EXPECT_TRUE(InferMembership({.members = good, .non_members = good}, 0.95).ok());
}

}  // namespace
}  // namespace wisp::privacy::audit_exact_test
