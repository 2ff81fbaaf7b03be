// A private search costs no less than its exact law says, and what another program computes.
#include "runtime/privacy/accounting/kinds/private_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <vector>

#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/accounting/mechanism_kind.h"
#include "runtime/privacy/accounting/privacy_filter.h"

namespace wisp::privacy::private_search_test {
namespace {

double Rdp(const Mechanism& m, double order) { return m.kind().rdp(m, order); }

// dp_accounting 0.6.0: RdpAccountant, RepeatAndSelectDpEvent with shape infinity, over kRenyiOrders.
struct Golden {
  double noise, q;
  uint64_t steps;
  double score_noise;
  uint32_t runs;
  double at_2_4_16_64[4];
  double epsilon;  // at delta 1e-6
};
constexpr Golden kGolden[] = {
    {1.1, 0.05, 200, 10, 10, {5.352314761, 5.931713694, 687.97133, 4685.677425}, 9.480928796},
    {2, 0.1, 200, 20, 8, {4.366169052, 4.550529807, 12.53165479, 1135.766849}, 7.510013432},
    {4, 0.2, 100, 30, 20, {4.541689949, 5.178925811, 8.344370677, 52.0738848}, 8.046332331},
    {10, 1, 50, 60, 5, {2.940350018, 3.083140465, 6.04215009, 18.06369913}, 5.577870581},
    {5, 0.01, 1000, 50, 1, {0.004481069092, 0.008969638923, 0.04838503356, 0.179008886}, 0.3165403302},
};

Mechanism Make(const Golden& g, uint64_t searches = 1) {
  return *PrivateSearch({.noise_multiplier = g.noise,
                         .sampling_probability = g.q,
                         .run_steps = g.steps,
                         .score_noise_multiplier = g.score_noise,
                         .expected_runs = g.runs,
                         .searches = searches});
}

TEST(PrivateSearch, CostsWhatAnotherProgramComputes) {
  for (const Golden& g : kGolden) {
    const Mechanism m = Make(g);
    SCOPED_TRACE(m.Describe());
    constexpr uint32_t kOrders[] = {2, 4, 16, 64};
    for (size_t i = 0; i < 4; ++i) {
      // That no run is sampled is another outcome, which the other program leaves out.
      const double a = kOrders[i], without = g.at_2_4_16_64[i];
      const double with = std::log(std::exp(-1.0 * g.runs) + std::exp((a - 1) * without)) / (a - 1);
      const double expected = std::isfinite(with) ? with : without;
      EXPECT_NEAR(StepRdp(m, kOrders[i]), expected, 1e-6 * expected) << a;
      EXPECT_GE(StepRdp(m, kOrders[i]), without * (1 - 1e-9)) << a;
    }
    EXPECT_NEAR(*RdpEpsilonAtOrders(std::vector{m}, *Delta::Create(1e-6),
                                    std::vector<double>(kRenyiOrders.begin(), kRenyiOrders.end())),
                g.epsilon, 0.03 * g.epsilon);
  }
}

// The run releases one number, x from N(0, s^2) or N(1, s^2), which is its own score: the law of the best of a Poisson
// number of runs is known, and its divergences are integrals of one variable.
double ExactRdp(double s, double mu, double a, double of, double against) {
  const auto cdf = [&](double x, double mean) { return 0.5 * std::erfc(-(x - mean) / (s * M_SQRT2)); };
  const auto log_density = [&](double x, double mean) {
    // f'(F(x)) times the density, f(u) = e^(mu (u - 1))
    return std::log(mu) - mu * (1 - cdf(x, mean)) - (x - mean) * (x - mean) / (2 * s * s) -
           std::log(s * std::sqrt(2 * M_PI));
  };
  const double step = s / 200, wide = 14 * s * std::sqrt(a) + a;
  double moment = std::exp(-mu);  // no run
  for (double x = -wide; x < wide; x += step)
    moment += step * std::exp(a * log_density(x, of) + (1 - a) * log_density(x, against));
  return std::log(moment) / (a - 1);
}

TEST(PrivateSearch, CoversTheExactLaw_InBothDirections) {
  for (const double s : {1.0, 3.0, 10.0}) {
    for (const uint32_t mu : {1u, 5u, 20u}) {
      const Mechanism m = *PrivateSearch({.noise_multiplier = 1e9,
                                          .sampling_probability = 1e-6,
                                          .run_steps = 1,
                                          .score_noise_multiplier = s,
                                          .expected_runs = mu});
      for (const double a : {1.5, 2.0, 3.0, 5.0, 9.0, 16.0}) {
        const double up = ExactRdp(s, mu, a, 1, 0), down = ExactRdp(s, mu, a, 0, 1), bound = Rdp(m, a);
        EXPECT_GE(bound, std::max(up, down)) << s << " " << mu << " " << a;
        // Far from the best orders the bound is loose.
        if (a <= 3) {
          EXPECT_LE(bound, std::max(up, down) + 1 + mu) << s << " " << mu << " " << a;
        }
      }
    }
  }
}

// The parts of the formula, in closed form where no step has a say.
TEST(PrivateSearch, FollowsTheTheorem) {
  const double s = 4;
  for (const uint32_t mu : {1u, 8u, 1000u}) {
    const Mechanism m = *PrivateSearch({.noise_multiplier = 1e9,
                                        .sampling_probability = 1e-6,
                                        .run_steps = 1,
                                        .score_noise_multiplier = s,
                                        .expected_runs = mu});
    for (const uint32_t order : {2u, 5u, 64u}) {
      const long double a = order, epsilon = std::log(a / (a - 1));
      long double delta = 1;
      for (const uint32_t other : kRenyiOrders) {
        const long double b = other, r = b / (2 * s * s);
        delta = std::min(delta, std::exp((b - 1) * (r - epsilon)) * std::pow(1 - 1 / b, b - 1) / b);
      }
      const long double moment = std::exp(-1.0L * mu) + mu * std::exp((a - 1) * (a / (2 * s * s) + mu * delta));
      const auto expected = static_cast<double>(std::log(moment) / (a - 1));
      if (std::isfinite(expected)) {
        EXPECT_NEAR(StepRdp(m, order), expected, 1e-8 * expected) << mu << " " << order;
      }
    }
  }
}

TEST(PrivateSearch, MoreRunsCostMore_AndSearchesAddUp) {
  const Delta delta = *Delta::Create(1e-6);
  double before = 0;
  for (const uint32_t runs : {1u, 2u, 4u, 8u, 16u}) {
    Golden g = kGolden[1];
    g.runs = runs;
    const double epsilon = *PldEpsilon(std::vector{Make(g)}, delta);
    EXPECT_GT(epsilon, before);
    before = epsilon;
  }
  const Mechanism run = *Mechanism::PoissonSubsampledGaussian(
      {.noise_multiplier = kGolden[1].noise, .sampling_probability = kGolden[1].q, .steps = kGolden[1].steps});
  const Mechanism once = Make(kGolden[1]), twice = Make(kGolden[1], 2);
  EXPECT_GT(*PldEpsilon(std::vector{once}, delta), *PldEpsilon(std::vector{run}, delta));
  EXPECT_NEAR(StepRdp(once, 8) * 2, Rdp(twice, 8), 1e-6);
  // A search has no losses on a grid: it is composed by RDP, with steps of other kinds too.
  const StatedEpsilon both = *StateEpsilon(std::vector{once, run}, delta);
  EXPECT_EQ(both.accountant, Accountant::kRdp);
  EXPECT_GT(both.epsilon, *PldEpsilon(std::vector{once}, delta));
  EXPECT_LT(*PldDelta(std::vector{once, run}, both.epsilon * 1.001), 1e-6);
  EXPECT_EQ(*PureEpsilon(std::vector{once}), kInfinity);
}

TEST(PrivateSearch, SlackCounts) {
  PrivateSearchOptions o{.noise_multiplier = 2,
                         .sampling_probability = 0.1,
                         .run_steps = 50,
                         .score_noise_multiplier = 9,
                         .expected_runs = 8};
  const double without = StepRdp(*PrivateSearch(o), 4);
  o.loss_slack = 0.01;
  // 0.01 (2 a - 1) / (a - 1) in the run itself, and more through its delta
  EXPECT_GT(StepRdp(*PrivateSearch(o), 4), without + 0.01 * 7 / 3);
}

TEST(PrivateSearch, BetweenOrders_LiesAboveTheConvexMoment) {
  const Mechanism m = Make(kGolden[2]);
  for (double order = 1.1; order < 40; order += 0.37) EXPECT_GT(Rdp(m, order), 0) << order;
  EXPECT_NEAR((9 - 1) * Rdp(m, 9), ((8 - 1) * Rdp(m, 8) + (10 - 1) * Rdp(m, 10)) / 2, 1e-9);
  EXPECT_NEAR(Rdp(m, 1.5), Rdp(m, 2), 1e-12);
  EXPECT_EQ(Rdp(m, 513), kInfinity);
}

// Orders above the largest are not used, neither for the search nor for the delta of a run.
TEST(PrivateSearch, OrdersAboveTheLargest_HaveNoBound) {
  PrivateSearchOptions o{.noise_multiplier = 6,
                         .sampling_probability = 0.1,
                         .run_steps = 50,
                         .score_noise_multiplier = 30,
                         .expected_runs = 6};
  const Mechanism all = *PrivateSearch(o);
  o.largest_order = 8;
  const Mechanism some = *PrivateSearch(o);
  EXPECT_EQ(StepRdp(some, 10), kInfinity);
  EXPECT_EQ(Rdp(some, 8.5), kInfinity);
  EXPECT_EQ(RunRdp(some)[6], RunRdp(all)[6]);
  EXPECT_EQ(RunRdp(some)[7], kInfinity);
  EXPECT_LT(StepRdp(all, 4), StepRdp(some, 4));
  EXPECT_LT(StepRdp(some, 8), kInfinity);
}

TEST(PrivateSearch, ImpossibleParameters_AreRefused) {
  const PrivateSearchOptions good{.noise_multiplier = 1,
                                  .sampling_probability = 0.1,
                                  .run_steps = 10,
                                  .score_noise_multiplier = 5,
                                  .expected_runs = 8};
  EXPECT_TRUE(PrivateSearch(good).ok());
  for (const auto spoil : std::initializer_list<void (*)(PrivateSearchOptions&)>{
           [](auto& o) { o.noise_multiplier = 0; }, [](auto& o) { o.sampling_probability = 0; },
           [](auto& o) { o.sampling_probability = 1.5; }, [](auto& o) { o.run_steps = 0; },
           [](auto& o) { o.score_noise_multiplier = 0; }, [](auto& o) { o.loss_slack = 2; },
           [](auto& o) { o.expected_runs = 0; }, [](auto& o) { o.largest_order = 1; },
           [](auto& o) { o.searches = 0; }}) {
    PrivateSearchOptions bad = good;
    spoil(bad);
    EXPECT_FALSE(PrivateSearch(bad).ok());
  }
  for (const Adjacency adjacency : {Adjacency::kReplaceOne, Adjacency::kZeroOut}) {
    PrivateSearchOptions other = good;
    other.adjacency = adjacency;
    EXPECT_EQ(CheckAccountable(std::vector{*PrivateSearch(other)}).code(), StatusCode::kPrivacyRefused);
  }
}

}  // namespace
}  // namespace wisp::privacy::private_search_test
