// Audits: figures computed elsewhere, closed forms, and both promises by experiment. A mechanism that keeps its
// statement is not rejected more often than allowed, and one that breaks it is rejected. Experiments have fixed seeds;
// the number of wrong rejections may exceed its expectation by 4.9 standard deviations (alpha = 1e-6).
#include "runtime/privacy/audit/audit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/noise/random.h"
#include "tests/unit/privacy/audit/audit_golden.h"

namespace wisp::privacy::audit_test {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr AuditLevel kPure{.delta = 0, .confidence = 0.95};

RandomStream Seeded(uint64_t seed) { return RandomStream::Reproducible(seed, StreamPurpose::kNoise); }
double Allowed(double trials, double rate) { return trials * rate + 4.9 * std::sqrt(trials * rate * (1 - rate)); }
double Laplace(RandomStream& random, double scale) {
  const double x = -scale * std::log(1 - random.UniformDouble());
  return random.Bernoulli(0.5) ? x : -x;
}

// ---- Binomial tails and Clopper-Pearson ----

TEST(Binomial, LogMassEqualsHighPrecision) {
  for (const auto& g : kLogMass)
    EXPECT_NEAR(BinomialLogMass(g.k, g.n, Chance::Of(g.chance)), g.value, 1e-12 * std::max(1.0, -g.value)) << g.k;
}

TEST(Binomial, UpperTailEqualsHighPrecision) {
  for (const auto& g : kUpperTail)
    EXPECT_NEAR(BinomialUpperTail(g.k, g.n, Chance::Of(g.chance)) / g.value, 1, 1e-11) << g.k << " of " << g.n;
}

TEST(Binomial, DegenerateChancesAndCounts) {
  EXPECT_EQ(BinomialUpperTail(0, 5, Chance::Of(0.3)), 1);
  EXPECT_EQ(BinomialUpperTail(6, 5, Chance::Of(0.3)), 0);
  EXPECT_EQ(BinomialUpperTail(1, 5, Chance::Of(0)), 0);
  EXPECT_EQ(BinomialUpperTail(5, 5, Chance::Of(1)), 1);
  EXPECT_EQ(BinomialUpperTail(0, 0, Chance::Of(0.3)), 1);
  EXPECT_EQ(BinomialLogMass(0, 5, Chance::Of(0)), 0);
  EXPECT_EQ(std::exp(BinomialLogMass(4, 5, Chance::Of(1))), 0);
}

TEST(ClopperPearson, EqualsClosedForms) {
  for (double error : {0.3, 0.05, 0.025, 1e-6}) {
    for (uint64_t n : {1, 2, 7, 1000, 1000000}) {
      const double root = std::pow(error, 1 / static_cast<double>(n));
      EXPECT_NEAR(ClopperPearsonHigh({0, n}, error) / -std::expm1(std::log(error) / static_cast<double>(n)), 1, 1e-9);
      EXPECT_NEAR(ClopperPearsonLow({n, n}, error), root, 1e-11);
      EXPECT_NEAR(ClopperPearsonLow({1, n}, error) / -std::expm1(std::log1p(-error) / static_cast<double>(n)), 1, 1e-9);
      EXPECT_EQ(ClopperPearsonLow({0, n}, error), 0);
      EXPECT_EQ(ClopperPearsonHigh({n, n}, error), 1);
    }
  }
}

TEST(ClopperPearson, EqualsBetaQuantiles) {
  for (const auto& g : kClopperPearson) {
    EXPECT_NEAR(ClopperPearsonLow({g.hits, g.trials}, g.error) / g.low, 1, 1e-9);
    EXPECT_NEAR(ClopperPearsonHigh({g.hits, g.trials}, g.error) / g.high, 1, 1e-9);
  }
}

// This is not a simulation: all counts are enumerated.
TEST(ClopperPearson, MissesNoMoreOftenThanPromised) {
  for (uint64_t n : {1, 5, 30}) {
    for (double p = 0.005; p < 1; p += 0.005) {
      double low_misses = 0, high_misses = 0;
      for (uint64_t k = 0; k <= n; ++k) {
        const double mass = std::exp(BinomialLogMass(k, n, Chance::Of(p)));
        if (ClopperPearsonLow({k, n}, 0.05) > p) low_misses += mass;
        if (ClopperPearsonHigh({k, n}, 0.05) < p) high_misses += mass;
      }
      EXPECT_LE(low_misses, 0.05 + 1e-9) << n << " " << p;
      EXPECT_LE(high_misses, 0.05 + 1e-9) << n << " " << p;
    }
  }
}

TEST(Proportion, InvalidArguments_AreRefused) {
  EXPECT_FALSE(Proportion::Of({0, 0}, 0.95).ok());
  EXPECT_FALSE(Proportion::Of({3, 2}, 0.95).ok());
  for (double confidence : {0.0, 1.0, -1.0, kNaN}) EXPECT_FALSE(Proportion::Of({1, 2}, confidence).ok());
  EXPECT_NEAR(Proportion::Of({3, 1000}, 0.95)->interval.high, 0.008742023238478303, 1e-12);
}

// ---- One run ----

TEST(OneRun, EpsilonEqualsIndependentComputation) {
  for (const auto& g : kOneRunEpsilon) {
    const auto epsilon = OneRunEpsilon({g.canaries, g.guesses, g.correct}, {.delta = g.delta, .confidence = 0.95});
    EXPECT_NEAR(*epsilon, g.epsilon, 1e-8) << g.correct << " of " << g.guesses << " at " << g.delta;
  }
}

TEST(OneRun, PValueEqualsHighPrecision) {
  for (const auto& g : kOneRunPValue) {
    const auto p = OneRunPValue({g.canaries, g.guesses, g.correct}, {.epsilon = g.epsilon, .delta = g.delta});
    EXPECT_NEAR(*p / g.p_value, 1, 1e-10) << g.correct << " of " << g.guesses;
  }
}

TEST(OneRun, HundredThousandCanariesTakeLessThanASecond) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_GT(*OneRunEpsilon({100000, 100000, 99000}, {.delta = 1e-6, .confidence = 0.95}), 4);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 1);
}

TEST(OneRun, NothingSeenProvesNothing) {
  EXPECT_EQ(*OneRunEpsilon({100, 0, 0}, kPure), 0);
  EXPECT_EQ(*OneRunEpsilon({100, 100, 50}, kPure), 0);
  EXPECT_EQ(*OneRunEpsilon({100, 100, 3}, {.delta = 1e-5, .confidence = 0.95}), 0);
  EXPECT_EQ(*OneRunPValue({100, 100, 100}, {.epsilon = 0, .delta = 1}), 1);
}

// Randomised response on every canary is the worst epsilon-DP mechanism, and its counts can be enumerated: the bound
// exceeds the truth with probability at most 0.05, and nearly that (it is not vacuous).
TEST(OneRun, PureBoundIsTightForRandomizedResponse) {
  for (double epsilon : {0.1, 1.0, 3.0}) {
    double wrong = 0;
    for (uint64_t v = 0; v <= 300; ++v) {
      const double mass = std::exp(BinomialLogMass(v, 300, Chance::OfRandomizedResponse(epsilon)));
      if (*OneRunEpsilon({300, 300, v}, kPure) > epsilon) wrong += mass;
    }
    EXPECT_LE(wrong, 0.05) << epsilon;
    EXPECT_GE(wrong, 0.02) << epsilon;
  }
}

// Randomised response that reveals everything with probability delta is (epsilon, delta)-DP. Without the term for delta
// it would be rejected in 0.04 + 0.04 of all runs.
TEST(OneRun, RareDisclosureWithinDeltaIsNotRejected) {
  constexpr double kEpsilon = 1, kDisclosure = 0.04;
  const auto wrong_at = [&](double delta) {
    double wrong = 0;
    for (uint64_t v = 0; v <= 300; ++v) {
      const double usual = std::exp(BinomialLogMass(v, 300, Chance::OfRandomizedResponse(kEpsilon)));
      const double mass = (1 - kDisclosure) * usual + (v == 300 ? kDisclosure : 0);
      if (*OneRunEpsilon({300, 300, v}, {.delta = delta, .confidence = 0.95}) > kEpsilon) wrong += mass;
    }
    return wrong;
  };
  EXPECT_LE(wrong_at(kDisclosure), 0.05);
  EXPECT_GE(wrong_at(0), 0.06);
}

// Canaries in orthogonal directions of one Gaussian release: score 1 or 0 plus noise.
OneRunOutcome GaussianRun(RandomStream& random, double noise, uint64_t canaries, const GuessCounts& guesses) {
  std::vector<double> scores(canaries);
  std::vector<uint8_t> included(canaries);
  for (uint64_t i = 0; i < canaries; ++i) {
    included[i] = random.Bernoulli(0.5);
    scores[i] = included[i] + noise * random.Normal();
  }
  return *CountGuesses(scores, included, guesses);
}

TEST(OneRun, GaussianKeepsItsEpsilonAndAnEighthOfTheNoiseDoesNot) {
  constexpr int kTrials = 400;
  constexpr double kNoise = 2;
  const AuditLevel level{.delta = 1e-5, .confidence = 0.95};
  const double stated =
      *PldEpsilon(std::vector{*Mechanism::Gaussian({.noise_multiplier = kNoise})}, *Delta::Create(level.delta));
  RandomStream random = Seeded(1);
  std::map<uint64_t, double> bounds;
  const auto rejections = [&](double noise) {
    int rejected = 0;
    for (int t = 0; t < kTrials; ++t) {
      const OneRunOutcome outcome = GaussianRun(random, noise, 2000, {.positive = 100, .negative = 100});
      auto [bound, is_new] = bounds.try_emplace(outcome.correct);
      if (is_new) bound->second = *OneRunEpsilon(outcome, level);
      rejected += bound->second > stated;
    }
    return rejected;
  };
  EXPECT_LE(rejections(kNoise), Allowed(kTrials, 0.05));
  EXPECT_GE(rejections(kNoise / 8), kTrials * 0.95) << stated;
  EXPECT_EQ(rejections(0), kTrials);
}

TEST(OneRun, CountGuessesTakesBothEndsAndBreaksTiesByIndex) {
  const std::vector<double> scores = {5, 1, 3, 3, 2};
  const std::vector<uint8_t> included = {1, 1, 0, 1, 0};
  const auto seen = CountGuesses(scores, included, {.positive = 2, .negative = 2});
  EXPECT_EQ(seen->canaries, 5u);
  EXPECT_EQ(seen->guesses, 4u);
  EXPECT_EQ(seen->correct, 2u);  // 5 is right, the first 3 is wrong; 1 is wrong, 2 is right
  const std::vector<uint8_t> swapped = {1, 1, 1, 0, 0};
  EXPECT_EQ(CountGuesses(scores, swapped, {.positive = 2, .negative = 2})->correct, 3u);
  EXPECT_EQ(CountGuesses(scores, included, {.positive = 5})->correct, 3u);
  EXPECT_EQ(CountGuesses(scores, included, {.negative = 5})->correct, 2u);
  std::vector<uint8_t> first_ten(100, 0);
  std::fill_n(first_ten.begin(), 10, 1);
  EXPECT_EQ(CountGuesses(std::vector<double>(100, 3), first_ten, {.positive = 10, .negative = 10})->correct, 20u);
}

// The best of many numbers of guesses stays within the confidence: randomised response with confident-looking scores.
TEST(OneRun, BestOfManyPaysForTheChoice) {
  constexpr int kTrials = 2000;
  constexpr double kEpsilon = 0.5;
  const std::vector<uint64_t> counts = {5, 9, 20, 45, 100, 200, 400};
  const Chance chance = Chance::OfRandomizedResponse(kEpsilon);
  RandomStream random = Seeded(2);
  int best_wrong = 0, picked_wrong = 0;
  for (int t = 0; t < kTrials; ++t) {
    std::vector<double> scores(400);
    std::vector<uint8_t> included(400);
    for (size_t i = 0; i < scores.size(); ++i) {
      included[i] = random.Bernoulli(0.5);
      scores[i] = (included[i] == random.Bernoulli(chance.success) ? 1 : -1) * (1 + random.UniformDouble());
    }
    best_wrong += OneRunBestEpsilon(scores, included, counts, kPure)->epsilon > kEpsilon;
    bool any = false;
    for (uint64_t r : counts) any |= OneRunBestEpsilon(scores, included, std::vector{r}, kPure)->epsilon > kEpsilon;
    picked_wrong += any;
  }
  EXPECT_LE(best_wrong, Allowed(kTrials, 0.05));
  EXPECT_GT(picked_wrong, Allowed(kTrials, 0.05));
}

TEST(OneRun, RefusesWhatMakesNoSense) {
  const std::vector<double> scores = {1, 2};
  const std::vector<uint8_t> included = {0, 1};
  EXPECT_FALSE(OneRunEpsilon({10, 11, 5}, kPure).ok());
  EXPECT_FALSE(OneRunEpsilon({10, 5, 6}, kPure).ok());
  EXPECT_FALSE(OneRunEpsilon({0, 0, 0}, kPure).ok());
  EXPECT_FALSE(OneRunEpsilon({kMostCanaries + 1, 5, 5}, kPure).ok());
  for (double bad : {-0.1, 1.0, kNaN}) EXPECT_FALSE(OneRunEpsilon({10, 5, 5}, {.delta = bad}).ok());
  for (double bad : {0.0, 1.0, kNaN}) EXPECT_FALSE(OneRunEpsilon({10, 5, 5}, {.confidence = bad}).ok());
  for (double bad : {-1.0, kNaN, std::numeric_limits<double>::infinity()})
    EXPECT_FALSE(OneRunPValue({10, 5, 5}, {.epsilon = bad}).ok());
  EXPECT_FALSE(OneRunPValue({10, 5, 5}, {.delta = 1.5}).ok());
  EXPECT_FALSE(CountGuesses(scores, std::vector<uint8_t>{1}, {}).ok());
  EXPECT_FALSE(CountGuesses(scores, std::vector<uint8_t>{1, 2}, {}).ok());
  EXPECT_FALSE(CountGuesses(std::vector{1.0, kNaN}, included, {}).ok());
  EXPECT_FALSE(CountGuesses(scores, included, {.positive = 2, .negative = 1}).ok());
  EXPECT_FALSE(CountGuesses(scores, included, {.positive = 1, .negative = ~uint64_t{0}}).ok());
  EXPECT_FALSE(CountGuesses({}, {}, {}).ok());
  EXPECT_FALSE(OneRunBestEpsilon(scores, included, {}, kPure).ok());
  EXPECT_FALSE(OneRunBestEpsilon(scores, included, std::vector<uint64_t>{3}, kPure).ok());
}

// ---- One step ----

struct Observed {
  std::vector<double> with, without;
  operator CanaryObservations() const { return {with, without}; }  // NOLINT: implicit on purpose
};

template <class Draw>
Observed Observe(size_t n, double shift, Draw&& draw) {
  Observed o;
  for (size_t i = 0; i < n; ++i) {
    o.with.push_back(shift + draw());
    o.without.push_back(draw());
  }
  return o;
}

// The Laplace mechanism's ratio is e^epsilon for every threshold beyond the shift: the hardest case for a choice among
// them.
TEST(OneStep, LaplaceKeepsItsEpsilon) {
  constexpr int kTrials = 300;
  RandomStream random = Seeded(3);
  int wrong = 0, wrong_uniform = 0, proved = 0;
  for (int t = 0; t < kTrials; ++t) {
    const Observed o = Observe(1000, 1, [&] { return Laplace(random, 1); });
    const double epsilon = CanaryEpsilon(o, kPure)->epsilon;
    wrong += epsilon > 1;
    proved += epsilon > 0.3;
    wrong_uniform += CanaryEpsilonUniform(o, kPure)->epsilon > 1;
  }
  EXPECT_LE(wrong, kTrials * 0.05);
  EXPECT_LE(wrong_uniform, kTrials * 0.05);
  EXPECT_GE(proved, kTrials * 0.9);
}

// The distributions with and without the canary are equal, so any bound above 0 is wrong. There are few observations,
// so that a choice by chance shows.
TEST(OneStep, SameDistributionsProveNothing) {
  constexpr int kTrials = 1000;
  RandomStream random = Seeded(4);
  int wrong = 0, wrong_uniform = 0, wrong_gdp = 0;
  for (int t = 0; t < kTrials; ++t) {
    const Observed o = Observe(100, 0, [&] { return random.Normal(); });
    wrong += CanaryEpsilon(o, kPure)->epsilon > 0;
    wrong_uniform += CanaryEpsilonUniform(o, kPure)->epsilon > 0;
    wrong_gdp += CanaryGdp(o, 0.95)->mu > 0;
  }
  EXPECT_LE(wrong, kTrials * 0.05);
  EXPECT_LE(wrong_uniform, kTrials * 0.05);
  EXPECT_LE(wrong_gdp, kTrials * 0.05);
}

TEST(OneStep, GaussianKeepsItsStatementAndTooLittleNoiseDoesNot) {
  constexpr int kTrials = 100;
  const AuditLevel level{.delta = 1e-5, .confidence = 0.95};
  const double stated =
      *PldEpsilon(std::vector{*Mechanism::Gaussian({.noise_multiplier = 1})}, *Delta::Create(level.delta));
  RandomStream random = Seeded(5);
  const auto rejections = [&](double noise) {
    std::pair<int, int> rejected;
    for (int t = 0; t < kTrials; ++t) {
      const Observed o = Observe(4000, 1, [&] { return noise * random.Normal(); });
      rejected.first += CanaryEpsilon(o, level)->epsilon > stated;
      rejected.second += CanaryGdp(o, 0.95)->mu > 1;
    }
    return rejected;
  };
  const auto kept = rejections(1);
  EXPECT_LE(kept.first, kTrials * 0.05);
  EXPECT_LE(kept.second, kTrials * 0.05);
  const auto half = rejections(0.5);
  EXPECT_EQ(half.second, kTrials);
  EXPECT_EQ(rejections(0.25).first, kTrials);
  EXPECT_GE(rejections(0.8).second, kTrials * 0.8);  // 1 / 0.8 against 1: a wrong sensitivity
}

// 100 observations of each kind are measured; all with the canary lie in the event, and none without.
TEST(OneStep, SeparatedSamplesGiveClosedForms) {
  const double error = 0.05 / 2, low = std::pow(error, 1 / 100.0), high = 1 - low;
  for (double delta : {0.0, 1e-3}) {
    for (double sign : {1.0, -1.0}) {
      Observed o{std::vector<double>(200, sign), std::vector<double>(200, 0)};
      const auto bound = CanaryEpsilon(o, {.delta = delta, .confidence = 0.95});
      EXPECT_NEAR(bound->epsilon, std::log((low - delta) / high), 1e-9);
      EXPECT_EQ(bound->likelier.hits, 100u);
      EXPECT_EQ(bound->rarer.hits, 0u);
      EXPECT_EQ(bound->rarer.trials, 100u);
      const double width = std::sqrt(std::log(4 / 0.05) / 400);
      EXPECT_NEAR(CanaryEpsilonUniform(o, {.delta = delta, .confidence = 0.95})->epsilon,
                  std::log((1 - width - delta) / width), 1e-9);
      // -2 Phi^-1(high), by the tail function itself.
      EXPECT_NEAR(0.5 * std::erfc(CanaryGdp(o, 0.95)->mu / 2 * M_SQRT1_2), high, 1e-9);
    }
  }
}

// One kind of data gives this value in a third of the releases, and the other kind never does: it must be found at each
// of four places.
TEST(OneStep, FindsTheEventOnEitherSideInEitherDirection) {
  for (double odd : {-1.0, 1.0}) {
    for (bool in_with : {false, true}) {
      Observed o{std::vector<double>(3000, 0), std::vector<double>(3000, 0)};
      for (size_t i = 0; i < 3000; i += 3) (in_with ? o.with : o.without)[i] = odd;
      for (const auto& bound : {*CanaryEpsilon(o, kPure), *CanaryEpsilonUniform(o, kPure)}) {
        EXPECT_GT(bound.epsilon, bound.rarer.trials == 1500 ? 4.5 : 2) << odd << in_with;
        EXPECT_EQ(bound.event.likelier == CanaryEvent::Likelier::kWith, in_with);
        EXPECT_EQ(bound.event.side == CanaryEvent::Side::kAbove, odd > 0);
        EXPECT_EQ(bound.rarer.hits, 0u);
      }
    }
  }
}

TEST(OneStep, MeasuresOnObservationsThatDidNotChoose) {
  // Only the observations of even index differ: they choose an event that the others do not show.
  Observed o{std::vector<double>(400, 0), std::vector<double>(400, 0)};
  for (size_t i = 0; i < 400; i += 2) o.with[i] = 1;
  EXPECT_EQ(CanaryEpsilon(o, kPure)->epsilon, 0);
  EXPECT_EQ(CanaryGdp(o, 0.95)->mu, 0);
}

TEST(OneStep, RefusesBadSamples) {
  const std::vector<double> good = {0, 1}, one = {0}, nan = {0, kNaN};
  EXPECT_TRUE(CanaryEpsilon({good, good}, kPure).ok());
  for (const CanaryObservations& bad : {CanaryObservations{one, good}, {good, one}, {nan, good}, {good, nan}}) {
    EXPECT_FALSE(CanaryEpsilon(bad, kPure).ok());
    EXPECT_FALSE(CanaryEpsilonUniform(bad, kPure).ok());
    EXPECT_FALSE(CanaryGdp(bad, 0.95).ok());
  }
  EXPECT_FALSE(CanaryEpsilon({good, good}, {.delta = 1}).ok());
  EXPECT_FALSE(CanaryEpsilonUniform({good, good}, {.confidence = 1}).ok());
  EXPECT_FALSE(CanaryGdp({good, good}, 0).ok());
}

}  // namespace
}  // namespace wisp::privacy::audit_test
