// The rule that decides from noisy sums: how often it is wrong if nothing is better, and how often it finds what is.
#include "runtime/personalise/evaluation_rule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

namespace wisp::evaluation_rule_test {
namespace {

using Kind = Verdict::Kind;

// Evaluations of `records` people, each with a lasting gain of its own (`lasting`) and one of the day.
class Population {
 public:
  Population(uint64_t seed, uint32_t records, double mean, double lasting, double daily)
      : random_(seed), mean_(mean), daily_(daily), own_(records) {
    for (double& g : own_) g = lasting * normal_(random_);
  }

  Evaluation EvaluateCandidate(double noise_multiplier) {
    Evaluation j{.noise_multiplier = noise_multiplier};
    for (const double own : own_) {
      const double g = std::clamp(mean_ + own + daily_ * normal_(random_), -1.0, 1.0);
      j.gains += g;
      j.squares += g * g;
    }
    j.gains += j.gain_noise() * normal_(random_);
    j.squares += j.square_noise() * normal_(random_);
    return j;
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  double mean_, daily_;
  std::vector<double> own_;
};

struct Rates {
  double better = 0, worse = 0;
};

// Returns how often the rule ever says so in a deployment, over 1,000 deployments.
Rates Ever(const EvaluationRule& rule, uint32_t records, double mean, double lasting, double daily, double noise) {
  constexpr int kLives = 1000;
  Rates rates;
  for (int deployment = 0; deployment < kLives; ++deployment) {
    Population people(static_cast<uint64_t>(deployment) + 1, records, mean, lasting, daily);
    std::vector<Evaluation> all;
    bool better = false, worse = false;
    for (uint32_t t = 0; t < rule.num_evaluations; ++t) {
      all.push_back(people.EvaluateCandidate(noise));
      const Verdict verdict = Decide(rule, all);
      better = better || verdict.kind == Kind::kBetter;
      worse = worse || verdict.kind == Kind::kWorse;
    }
    rates.better += better / double{kLives};
    rates.worse += worse / double{kLives};
  }
  return rates;
}

// The worst cases for a rule that assumes independent sessions: lasting gains, and hardly any noise.
TEST(EvaluationRule, IsWrongNoMoreOftenThanStated) {
  struct Case {
    uint32_t records;
    double lasting, daily, noise;
  };
  for (const double decay : {1.0, 0.8}) {
    const EvaluationRule rule{.error = 0.1, .num_evaluations = 12, .decay = decay};
    for (const Case& c : {Case{400, 0.3, 0.0, 0.1}, Case{400, 0.3, 0.1, 4.0}, Case{100, 0.0, 0.3, 4.0},
                          Case{2000, 0.5, 0.0, 4.0}, Case{0, 0, 0, 4.0}, Case{40, 0.05, 0.0, 4.0}}) {
      const Rates rates = Ever(rule, c.records, 0, c.lasting, c.daily, c.noise);
      std::printf("decay %g, %u records, lasting %g, daily %g, noise %g: better %.3f, worse %.3f (stated %g)\n", decay,
                  c.records, c.lasting, c.daily, c.noise, rates.better, rates.worse, rule.error);
      EXPECT_LE(rates.better, rule.error);
      EXPECT_LE(rates.worse, rule.error);
    }
  }
}

TEST(EvaluationRule, FindsWhatIsThereAsOftenAsItsPowerSays) {
  const EvaluationRule rule{.error = 0.05, .num_evaluations = 12};
  struct Case {
    uint32_t records;
    double mean, noise;
  };
  for (const Case& c : {Case{400, 0.08, 4}, Case{400, 0.15, 4}, Case{4000, 0.03, 4}, Case{400, 0.02, 4}}) {
    constexpr int kLives = 1000;
    for (const uint32_t evaluations : {1u, 4u, 12u}) {
      int better = 0;
      for (int deployment = 0; deployment < kLives; ++deployment) {
        Population people(static_cast<uint64_t>(deployment) + 1, c.records, c.mean, 0.3, 0);
        std::vector<Evaluation> all;
        for (uint32_t t = 0; t < evaluations; ++t) all.push_back(people.EvaluateCandidate(c.noise));
        better += Decide(rule, all).kind == Kind::kBetter;
      }
      const double power =
          Power(rule, {.num_records = c.records, .mean = c.mean, .deviation = 0.3}, c.noise, evaluations);
      const double found = better / double{kLives};
      std::printf("%u records, gain %g: found by %u evaluations in %.3f, power %.3f\n", c.records, c.mean, evaluations,
                  found, power);
      EXPECT_NEAR(found, power, 0.06);
    }
  }
}

TEST(EvaluationRule, MoreEvaluationsAndMoreRecordsFindMore) {
  const EvaluationRule rule{.error = 0.05, .num_evaluations = 12};
  const ExpectedGain gain{.num_records = 400, .mean = 0.08, .deviation = 0.3};
  EXPECT_LT(Power(rule, gain, 4, 1), Power(rule, gain, 4, 12));
  EXPECT_LT(Power(rule, gain, 8, 4), Power(rule, gain, 4, 4));
  EXPECT_LT(Power(rule, {.num_records = 100, .mean = 0.08, .deviation = 0.3}, 4, 12), Power(rule, gain, 4, 12));
  EXPECT_LT(Power(rule, {.num_records = 10, .mean = 1, .deviation = 0}, 4, 1), 0.5)
      << "10 records never exceed the noise";
}

TEST(EvaluationRule, NothingIsDecidedWithoutEvaluations) {
  EXPECT_EQ(Decide({}, {}).kind, Kind::kUndecided);
  const Evaluation good{.gains = 100, .squares = 20, .noise_multiplier = 4};
  Evaluation bad = good;
  bad.gains = -100;
  EXPECT_EQ(Decide({}, {{good}}).kind, Kind::kBetter);
  EXPECT_EQ(Decide({}, {{bad}}).kind, Kind::kWorse);
  // Old evidence fades.
  const std::vector<Evaluation> both = {good, good, bad, bad};
  EXPECT_EQ(Decide({.num_evaluations = 4}, both).kind, Kind::kUndecided);
  EXPECT_EQ(Decide({.num_evaluations = 4, .decay = 0.2}, both).kind, Kind::kWorse);
  // If noise makes a sum of squares negative, it counts as 0.
  EXPECT_TRUE(std::isfinite(Decide({}, {{{.gains = 1, .squares = -500, .noise_multiplier = 4}}}).threshold));
}

// Quantiles of a normal distribution, from tables: each of the planned looks has its share of the error.
TEST(EvaluationRule, EveryLookHasItsShareOfTheError) {
  const Evaluation noise_alone{.gains = 0, .squares = -1e6, .noise_multiplier = 4};
  const auto threshold = [&](const EvaluationRule& rule) {
    return Decide(rule, {{noise_alone}}).threshold / noise_alone.gain_noise();
  };
  EXPECT_NEAR(threshold({.error = 0.05, .num_evaluations = 1}), 1.959964, 1e-6);
  EXPECT_NEAR(threshold({.error = 0.05, .num_evaluations = 12}), 2.865260, 1e-6);
  EXPECT_NEAR(threshold({.error = 0.02, .num_evaluations = 1}), 2.326348, 1e-6);
}

TEST(EvaluationRule, InvalidArguments_AreRefused) {
  EXPECT_TRUE(Validate(EvaluationRule{}).ok());
  for (const EvaluationRule& bad :
       {EvaluationRule{.error = 0}, EvaluationRule{.error = 1}, EvaluationRule{.error = std::nan("")},
        EvaluationRule{.num_evaluations = 0}, EvaluationRule{.decay = 0}, EvaluationRule{.decay = 1.1}})
    EXPECT_EQ(Validate(bad).code(), StatusCode::kInvalidArgument);
}

TEST(EvaluationRule, EvaluationsAreReadBack) {
  for (const Evaluation& j : {Evaluation{-1.25, 3e-9, 4}, Evaluation{1e6, -7, 0.1}, Evaluation{1, 2, 3, 4, 5, 6}}) {
    const auto read = ParseEvaluation(ToText(j));
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(*read, j);
  }
  for (const char* bad :
       {"", "gains=1", "gains=1 squares=2 noise_multiplier=0", "gains=nan squares=2 noise_multiplier=1",
        "gains=1 squares=2 noise_multiplier=1 x", "gains=1 squares=2 noise_multiplier=1 base=2 candidate=3",
        "gains=1 squares=2 noise_multiplier=1 base=2 candidate=3 line=4 ", "squares=2 gains=1 noise_multiplier=1"})
    EXPECT_EQ(ParseEvaluation(bad).status().code(), StatusCode::kInvalidData) << bad;
}

TEST(EvaluationRule, ServesTheNewestThatWasFoundBetter) {
  const EvaluationRule rule{.error = 0.05, .num_evaluations = 10};
  const auto evaluated = [](double gains) { return Evaluation{.gains = gains, .squares = 60, .noise_multiplier = 4}; };
  std::vector<Evaluation> evaluations;
  const auto serve = [&](double gains) {
    evaluations.push_back(evaluated(gains));
    return Serve(rule, evaluations);
  };
  EXPECT_FALSE(Serve(rule, evaluations).evaluation);
  EXPECT_FALSE(serve(5).evaluation) << "undecided";
  EXPECT_EQ(serve(80).evaluation, 1u);
  EXPECT_EQ(serve(90).evaluation, 2u);
  EXPECT_EQ(serve(85).evaluation, 3u) << "hardly less good: the newest";
  EXPECT_EQ(serve(40).evaluation, 3u) << "clearly less good than what is served";
  EXPECT_EQ(serve(-1).evaluation, 3u) << "runs before it were better, itself it is not";
  EXPECT_EQ(serve(88).evaluation, 6u);
  const Served worse = serve(-1000);
  EXPECT_TRUE(worse.newest_is_worse);
  EXPECT_FALSE(worse.evaluation);
  // The next lineage is evaluated by itself.
  EXPECT_EQ(serve(80).evaluation, 8u);
  EXPECT_FALSE(Serve(rule, evaluations).newest_is_worse);
}

}  // namespace
}  // namespace wisp::evaluation_rule_test
