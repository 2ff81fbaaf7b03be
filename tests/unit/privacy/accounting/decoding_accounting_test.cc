// Accounting of samples: randomised response against enumeration and exact figures of small cases, Renyi divergences,
// samples together with Gaussian mechanisms, extremes. bounded_range_test.cc tests bounded-range sampling.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/accounting/kinds/samples.h"
#include "runtime/privacy/accounting/pld.h"
#include "tests/unit/privacy/accounting/sampling_test_util.h"

namespace wisp::privacy::decoding_accounting_test {
namespace {

std::vector<double> Mixed(const std::vector<double>& q, const std::vector<double>& u, double lambda) {
  std::vector<double> out(u.size());
  for (size_t j = 0; j < u.size(); ++j) out[j] = lambda * q[j] + (1 - lambda) * u[j];
  return out;
}

// Returns delta of T samples of randomised response by the trinomial formula, in long double.
double TrinomialDelta(double support, double lambda, int draws, double epsilon) {
  const long double low = (1 - lambda) / support, high = lambda + low, still = 1 - high - low,
                    eps0 = std::log(high / low);
  std::vector<long double> log_factorial(static_cast<size_t>(draws) + 1, 0);
  for (size_t i = 1; i < log_factorial.size(); ++i)
    log_factorial[i] = log_factorial[i - 1] + std::log(static_cast<long double>(i));
  long double delta = 0;
  for (int up = 0; up <= draws; ++up) {
    for (int down = 0; up + down <= draws && down < up; ++down) {
      const int rest = draws - up - down;
      const long double loss = (up - down) * eps0;
      if (loss <= epsilon) break;
      const long double log_p = log_factorial[static_cast<size_t>(draws)] - log_factorial[static_cast<size_t>(up)] -
                                log_factorial[static_cast<size_t>(down)] - log_factorial[static_cast<size_t>(rest)] +
                                up * std::log(high) + down * std::log(low) + rest * std::log(still);
      delta += std::exp(log_p) * -std::expm1(epsilon - loss);
    }
  }
  return static_cast<double>(delta);
}

// Returns a random distribution, sometimes without some of the values.
std::vector<double> RandomDistribution(std::mt19937& random, size_t size, bool sparse) {
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<double> p(size);
  double sum = 0;
  for (double& x : p) sum += x = sparse && uniform(random) < 0.5 ? 0 : -std::log(1 - uniform(random));
  if (sum == 0) sum = p[0] = 1;
  for (double& x : p) x /= sum;
  return p;
}

// Returns the smallest epsilon at which a falling delta(epsilon) is at most `delta`.
template <class F>
double SmallestEpsilon(F&& delta_at, double delta) {
  double low = 0, high = 100;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (delta_at(middle) > delta ? low : high) = middle;
  }
  return high;
}

TEST(Response, GoldenOfDecoding) {
  const std::vector m = {Response(10000, 1e-4, 100)};
  EXPECT_NEAR(*PureEpsilon(m), 69.3, 0.05);
  EXPECT_NEAR(Pld(m, 1e-6), 1.38, 0.01);
  const double exact = SmallestEpsilon([](double epsilon) { return TrinomialDelta(10000, 1e-4, 100, epsilon); }, 1e-6);
  EXPECT_GE(Pld(m, 1e-6), exact - 1e-12);
  EXPECT_LE(Pld(m, 1e-6), exact + 1e-6);
  // On a common grid, as beside other kinds.
  const DiscretePld grid = Regrid(ResponseLattice(m[0]), 1e-4),
                    steps = Compose({{Discretise(*m[0].WithSteps(1), Direction::kAdd, 1e-4), 100}});
  EXPECT_GE(ComputeEpsilon(grid, 1e-6), exact);
  EXPECT_LE(ComputeEpsilon(grid, 1e-6), exact + 1e-3);
  EXPECT_GE(ComputeEpsilon(steps, 1e-6), exact);
  EXPECT_LE(ComputeEpsilon(steps, 1e-6), exact + 1e-3);
}

TEST(Response, DeltaEqualsTrinomialFormula) {
  for (const auto& [support, lambda, draws] :
       {std::tuple{10000, 1e-4, 100}, {10000, 1e-3, 40}, {50, 0.01, 30}, {2, 0.3, 10}, {3, 0.05, 200}}) {
    for (double epsilon : {0.0, 0.1, 0.5, 1.0, 1.38, 2.0, 5.0, 9.0}) {
      const double exact = TrinomialDelta(support, lambda, draws, epsilon);
      const double bound = *PldDelta(
          std::vector{Response(static_cast<uint64_t>(support), lambda, static_cast<uint64_t>(draws))}, epsilon);
      EXPECT_GE(bound, exact * (1 - 1e-12)) << support << " " << lambda << " " << draws << " " << epsilon;
      EXPECT_LE(bound, exact * (1 + 1e-7) + 1e-28) << support << " " << lambda << " " << draws << " " << epsilon;
    }
  }
}

// Both directions are tested, and gamma below 1 too: composition needs these.
TEST(Response, PairDominatesEveryDrawAndSomeDrawReachesIt) {
  std::mt19937 random(20240613);
  for (int trial = 0; trial < 400; ++trial) {
    const size_t size = 2 + static_cast<size_t>(trial) % 5;
    const double lambda = std::uniform_real_distribution<double>(0.001, 0.95)(random);
    std::vector<double> u = RandomDistribution(random, size, false);
    if (trial % 3 == 0) u.assign(size, 1.0 / static_cast<double>(size));
    const size_t least = static_cast<size_t>(std::min_element(u.begin(), u.end()) - u.begin()),
                 other = (least + 1) % size;
    const DiscretePld pair =
        ResponseLattice(*Mechanism::NonUniformResponse({.min_probability = u[least], .lambda = lambda}));
    std::vector<double> single(size, 0.0), another(size, 0.0);
    single[least] = another[other] = 1;
    const auto p = Mixed(RandomDistribution(random, size, true), u, lambda),
               q = Mixed(RandomDistribution(random, size, true), u, lambda);
    const auto worst = Mixed(single, u, lambda), beside = Mixed(another, u, lambda);
    for (double epsilon = -6; epsilon <= 6; epsilon += 0.25) {
      const double bound = ComputeDelta(pair, epsilon);
      EXPECT_LE(HockeyStick(p, q, epsilon), bound + 1e-14) << trial << " " << epsilon;
      EXPECT_LE(HockeyStick(q, p, epsilon), bound + 1e-14) << trial << " " << epsilon;
      const double reached = std::max(HockeyStick(worst, beside, epsilon), HockeyStick(beside, worst, epsilon));
      EXPECT_LE(reached, bound + 1e-14) << trial << " " << epsilon;
      EXPECT_GE(reached, bound - 2e-8) << trial << " " << epsilon;
    }
  }
}

TEST(Response, AdaptiveDrawsAreCovered) {
  std::mt19937 random(7);
  const double lambda = 0.3;
  const std::vector<double> u(4, 0.25);
  const std::vector m = {Response(4, lambda, 2)};
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<double> p, q;
    const auto first_p = Mixed(RandomDistribution(random, 4, true), u, lambda),
               first_q = Mixed(RandomDistribution(random, 4, true), u, lambda);
    for (size_t j = 0; j < 4; ++j) {
      const auto second_p = Mixed(RandomDistribution(random, 4, true), u, lambda),
                 second_q = Mixed(RandomDistribution(random, 4, true), u, lambda);
      for (size_t l = 0; l < 4; ++l) p.push_back(first_p[j] * second_p[l]), q.push_back(first_q[j] * second_q[l]);
    }
    for (double epsilon : {0.0, 0.3, 0.7, 1.2, 2.0})
      EXPECT_LE(HockeyStick(p, q, epsilon), *PldDelta(m, epsilon) + 1e-14);
  }
}

// Samples without replacement: supports 5, 4, 3, compared with the product of their pairs, value by value.
TEST(Response, DifferentSupportsComposeAsTheirProduct) {
  std::vector<double> p = {1}, q = {1};
  std::vector<Mechanism> m;
  for (int support : {5, 4, 3}) {
    m.push_back(Response(static_cast<uint64_t>(support), 0.1, 2));
    const double low = 0.9 / support;
    for (int i = 0; i < 2; ++i) {
      std::vector<double> next_p, next_q;
      for (size_t j = 0; j < p.size(); ++j) {
        for (const auto& [a, b] : {std::pair{0.1 + low, low}, {low, 0.1 + low}, {0.9 - 2 * low, 0.9 - 2 * low}}) {
          next_p.push_back(p[j] * a), next_q.push_back(q[j] * b);
        }
      }
      p = next_p, q = next_q;
    }
  }
  for (double epsilon : {0.0, 0.2, 0.5, 0.9, 1.3, 1.7, 2.0}) {
    const double exact = HockeyStick(p, q, epsilon), bound = *PldDelta(m, epsilon);
    EXPECT_GE(bound, exact - 1e-14) << epsilon;
    EXPECT_LE(bound, exact + 1e-5) << epsilon;
  }
  EXPECT_EQ(*PldDelta(m, *PureEpsilon(m)), 0);
}

TEST(Response, TransformsAgreeWithTheLattice) {
  const Mechanism many = Response(2, 0.01, 40000), few = *many.WithSteps(20000);
  ASSERT_FALSE(WorthALattice(many));
  ASSERT_TRUE(WorthALattice(few));
  const double exact = ComputeEpsilon(ResponseLattice(many), 1e-6);
  EXPECT_GE(Pld({many}, 1e-6), exact - 1e-6);
  EXPECT_LE(Pld({many}, 1e-6), exact * (1 + 1e-4));
}

TEST(Response, SmallDeltasAreNotDrownedByRounding) {
  const std::vector m = {Response(20000, 1e-5, 5000), Response(19999, 1e-5, 5000), Response(19998, 1e-5, 5000)};
  const double together = Pld(m, 1e-15), whole = Pld({Response(20000, 1e-5, 15000)}, 1e-15);
  EXPECT_LT(together, 0.1 * *PureEpsilon(m));
  EXPECT_NEAR(together, whole, 1e-2);
}

// Candidate lists of many lengths and lambdas are rounded up to a few kinds, and compared with all of them, one by one.
TEST(Response, ManyKindsAreRoundedUp) {
  std::vector<Mechanism> lengths, lambdas;
  std::vector<PldPower> each_length, each_lambda;
  for (uint64_t i = 0; i < 40; ++i) {
    lengths.push_back(Response(1000 + 60 * i, 0x1p-10, 5));  // a power of 2: only the lengths are rounded
    lambdas.push_back(Response(1024, 1e-4 * (1 + static_cast<double>(i) / 15), 5));
    each_length.push_back({Regrid(ResponseLattice(lengths.back()), 1e-4), 1});
    each_lambda.push_back({Regrid(ResponseLattice(lambdas.back()), 1e-4), 1});
  }
  for (const auto& [kinds, each] : {std::pair{&lengths, &each_length}, {&lambdas, &each_lambda}}) {
    const double exact = ComputeEpsilon(Compose(*each), 1e-6), figure = Pld(*kinds, 1e-6);
    EXPECT_GT(figure, exact * 1.0001);
    EXPECT_LT(figure, exact * 1.2);
  }
}

// Returns RDP of one mechanism at one order, read from epsilon at a delta.
double RdpAt(const Mechanism& m, double order) {
  const double delta = 1e-5, orders[] = {order};
  const double many = 1000;  // samples, so that no figure is cut off at 0
  return (*RdpEpsilonAtOrders(std::vector{*m.WithSteps(1000)}, DeltaAt(delta), orders) - std::log1p(-1 / order) +
          (std::log(delta) + std::log(order)) / (order - 1)) /
         many;
}

double Renyi(const std::vector<double>& p, const std::vector<double>& q, double order) {
  double sum = 0;
  for (size_t j = 0; j < p.size(); ++j) sum += p[j] > 0 ? std::pow(p[j], order) * std::pow(q[j], 1 - order) : 0;
  return std::log(sum) / (order - 1);
}

TEST(Rdp, ResponseEqualsTheDefinition) {
  for (const auto& [support, lambda] : {std::pair{5.0, 0.1}, {2.0, 0.5}, {100.0, 0.3}}) {
    const double low = (1 - lambda) / support;
    std::vector<double> p = {lambda + low, low, std::max(0.0, 1 - lambda - 2 * low)}, q = {low, lambda + low, p[2]};
    for (double order : {1.5, 2.0, 7.0, 40.0}) {
      EXPECT_NEAR(RdpAt(Response(static_cast<uint64_t>(support), lambda), order), Renyi(p, q, order), 1e-11)
          << support << " " << order;
    }
  }
}

TEST(Rdp, BoundedRangeIsTheSupremumOfTheFamily) {
  for (double eta : {0.3, 1.0, 4.0}) {
    for (double order : {1.25, 2.0, 8.0, 30.0}) {
      double worst = 0;
      for (int i = 1; i < 20000; ++i) {
        const auto [p, q] = Binary(eta, eta * i / 20000);
        worst = std::max(worst, Renyi(p, q, order));
      }
      const double figure = RdpAt(Range(eta), order);
      EXPECT_GE(figure, worst - 1e-12) << eta << " " << order;
      EXPECT_LE(figure, worst + 1e-6) << eta << " " << order;
      EXPECT_LE(figure, order * eta * eta / 8 + 1e-12) << eta << " " << order;
    }
  }
  EXPECT_NEAR(RdpAt(Range(1e-3), 2), 1e-6 / 4, 1e-12);
  // chi-squared of the pair at order 2: E e^L - 1 = lambda (e^eps0 - 1) + low (e^eps0 + e^-eps0 - 2), about 2 eps0^2
  // low.
  const Mechanism tiny = *Mechanism::NonUniformResponse({.min_probability = 0.1, .lambda = 1e-9});
  const double orders[] = {2};
  const double rdp = *RdpEpsilonAtOrders(std::vector{*tiny.WithSteps(uint64_t{1} << 50)}, DeltaAt(0.25), orders) -
                     std::log(0.5) + std::log(0.25 * 2);
  EXPECT_NEAR(rdp, 0x1p50 * 2 * 0.1 * 1e-16, 1e-6);
}

double Cdf(double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); }

// delta(epsilon) of a Gaussian beside samples is the mean over the samples' losses of the Gaussian's delta at epsilon
// less the loss.
TEST(Mixed, ResponseBesideGaussianEqualsTheMeanOverItsLosses) {
  const double sigma = 2, lambda = 0.2, support = 6, low = (1 - lambda) / support, eps0 = std::log1p(lambda / low);
  const std::vector m = {*Mechanism::Gaussian({.noise_multiplier = sigma}), Response(6, lambda)};
  const auto gaussian = [&](double epsilon) {
    return Cdf(1 / (2 * sigma) - epsilon * sigma) - std::exp(epsilon) * Cdf(-1 / (2 * sigma) - epsilon * sigma);
  };
  for (double epsilon : {0.0, 0.5, 1.0, 2.0, 3.0}) {
    const double exact = (lambda + low) * gaussian(epsilon - eps0) + low * gaussian(epsilon + eps0) +
                         (1 - lambda - 2 * low) * gaussian(epsilon);
    const double bound = *PldDelta(m, epsilon);
    EXPECT_GE(bound, exact) << epsilon;
    EXPECT_LE(bound, exact + 1e-7) << epsilon;
  }
}

TEST(Mixed, KindsCostMoreThanEachAndLessThanTheSum) {
  const Mechanism steps =
      *Mechanism::PoissonSubsampledGaussian({.noise_multiplier = 1.2, .sampling_probability = 0.1, .steps = 100});
  const std::vector draws = {Range(0.02, 1000), Response(1000, 1e-3, 200)};
  const std::vector all = {draws[0], steps, draws[1]};
  const double together = Pld(all, 1e-5);
  EXPECT_GT(together, Pld({steps}, 1e-5));
  EXPECT_GT(together, Pld(draws, 1e-5));
  EXPECT_LT(together, Pld({steps}, 1e-5) + Pld(draws, 1e-5));
  EXPECT_LE(together, *RdpEpsilon(all, DeltaAt(1e-5)));
  EXPECT_TRUE(std::isinf(*PureEpsilon(all)));
}

// Losses of a millionth beside a Gaussian of ordinary noise: the samples' own grid must decide, not the Gaussian's.
TEST(Mixed, TinyDrawsStayTinyBesideAGaussian) {
  const Mechanism gaussian = *Mechanism::Gaussian({.noise_multiplier = 1});
  const double alone = Pld({gaussian}, 1e-5);
  EXPECT_LE(Pld({gaussian, Range(1e-6, 1000000)}, 1e-5), alone + 5e-3);
}

TEST(Accountants, RefuseAndAcceptWhatTheyShould) {
  const std::vector draw = {Response(10, 0.1)};
  const auto clt = GdpCltEpsilon(draw, DeltaAt(1e-5));
  ASSERT_FALSE(clt.ok());
  EXPECT_EQ(clt.status().code(), StatusCode::kPrivacyRefused);
  for (Adjacency adjacency : {Adjacency::kAddRemove, Adjacency::kReplaceOne, Adjacency::kZeroOut}) {
    const std::vector same = {
        *Mechanism::RandomisedResponse({.support = 10, .lambda = 0.1, .count = 5, .adjacency = adjacency}),
        *Mechanism::BoundedRange({.range = 0.1, .count = 5, .adjacency = adjacency})};
    EXPECT_DOUBLE_EQ(Pld(same, 1e-5), Pld({Response(10, 0.1, 5), Range(0.1, 5)}, 1e-5));
  }
  const std::vector mixed = {Response(10, 0.1),
                             *Mechanism::BoundedRange({.range = 0.1, .adjacency = Adjacency::kReplaceOne})};
  for (const auto& refused : {PldEpsilon(mixed, DeltaAt(1e-5)), PureEpsilon(mixed), RdpEpsilon(mixed, DeltaAt(1e-5))}) {
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.status().code(), StatusCode::kPrivacyRefused);
  }
}

TEST(Accountants, ExtremeDrawsHaveTheirPureFigureAtMost) {
  EXPECT_EQ(Pld({Response(10, 0, 1000)}, 1e-9), 0);
  EXPECT_EQ(*PureEpsilon(std::vector{Response(10, 0, 1000)}), 0);
  EXPECT_NEAR(Pld({Range(1e6)}, 1e-6), 1e6, 1);
  for (const Mechanism& m :
       {Range(1e-9, 7), Range(300), Response(uint64_t{1} << 53, 1 - 0x1p-53), Response(2, 1e-300, 3),
        *Mechanism::NonUniformResponse({.min_probability = 1e-200, .lambda = 0.5})}) {
    const double epsilon = Pld({m}, 1e-9);
    EXPECT_GE(epsilon, 0) << m.ToText();
    EXPECT_LE(epsilon, *PureEpsilon(std::vector{m})) << m.ToText();
  }
}

// With a trillion samples the figure is near the Gaussian limit's, and never below it because of an overflow.
TEST(Accountants, TrillionsOfDrawsAreNotFree) {
  const Mechanism m = Response(100, 1e-7, uint64_t{1} << 40);
  const double eps0 = m.PureEpsilonPerStep(), mu = std::sqrt(0.02 * 0x1p40) * eps0;
  const double limit = Pld({*Mechanism::Gaussian({.noise_multiplier = 1 / mu})}, 1e-9);
  EXPECT_GE(Pld({m}, 1e-9), 0.99 * limit);
  EXPECT_LE(Pld({m}, 1e-9), 1.2 * limit);
  EXPECT_GE(*PldDelta(std::vector{m}, 0.9 * limit), 1e-9);
}

TEST(Accountants, FiguresThatAreNotNumbersProveNothing) {
  const DiscretePld broken{.step = 1, .first = -1, .mass = {0.5, 0, 0.5}, .infinity = std::nan("")};
  EXPECT_TRUE(std::isinf(ComputeEpsilon(broken, 0.5)));
  EXPECT_EQ(ComputeDelta(broken, 0.5), 1);
  // All losses are above 0.
  const DiscretePld high{.step = 1, .first = 5, .mass = {0.5, 0.5}};
  for (double delta : {0.1, 0.4, 0.9, 0.99}) {
    EXPECT_NEAR(ComputeEpsilon(high, delta),
                SmallestEpsilon([&](double epsilon) { return ComputeDelta(high, epsilon); }, delta), 1e-9);
  }
}

TEST(Pld, NothingIsLostInTrimmingConvolvingAndRegridding) {
  const auto total = [](const DiscretePld& pld) {
    double sum = pld.infinity;
    for (double m : pld.mass) sum += m;
    return sum;
  };
  DiscretePld a{.step = 0.3, .first = -2, .mass = {0.01, 0.2, 0, 0.5, 0.03}, .infinity = 0.26};
  DiscretePld trimmed = a;
  TrimTails(trimmed, 0.05);
  EXPECT_EQ(trimmed.first, -1);
  EXPECT_DOUBLE_EQ(trimmed.mass.front(), 0.21);
  EXPECT_DOUBLE_EQ(trimmed.infinity, 0.29);
  EXPECT_DOUBLE_EQ(total(trimmed), 1);
  const DiscretePld regridded = Regrid(a, 0.07);
  EXPECT_NEAR(total(regridded), 1, 1e-12);
  const DiscretePld b{.step = 0.3, .first = 1, .mass = {0.6, 0.3}, .infinity = 0.1};
  const DiscretePld both = ConvolveDirectly(a, b);
  EXPECT_DOUBLE_EQ(both.infinity, 0.36);  // a union bound
  for (double epsilon : {-0.5, 0.0, 0.2, 0.55, 0.9}) {
    EXPECT_GE(ComputeDelta(trimmed, epsilon), ComputeDelta(a, epsilon) - 1e-15) << epsilon;
    EXPECT_GE(ComputeDelta(regridded, epsilon), ComputeDelta(a, epsilon) - 1e-15) << epsilon;
    EXPECT_LE(ComputeDelta(regridded, epsilon), ComputeDelta(a, epsilon) + 1e-3) << epsilon;
    double exact = 0.36;
    for (size_t i = 0; i < a.mass.size(); ++i) {
      for (size_t j = 0; j < b.mass.size(); ++j) {
        exact += a.mass[i] * b.mass[j] * std::max(0.0, -std::expm1(epsilon - 0.3 * (static_cast<double>(i + j) - 1)));
      }
    }
    EXPECT_NEAR(ComputeDelta(both, epsilon), std::min(1.0, exact), 1e-14) << epsilon;
  }
}

TEST(Accountants, EqualDrawsAreOneMechanism) {
  std::vector<Mechanism> singly(100, Response(10000, 1e-4));
  EXPECT_DOUBLE_EQ(Pld(singly, 1e-6), Pld({Response(10000, 1e-4, 100)}, 1e-6));
  EXPECT_TRUE(Response(10, 0.1, 2).DiffersInStepsOnly(Response(10, 0.1, 7)));
  EXPECT_FALSE(Response(10, 0.1).DiffersInStepsOnly(Response(11, 0.1)));
  EXPECT_FALSE(Response(10, 0.1).DiffersInStepsOnly(Response(10, 0.2)));
  EXPECT_FALSE(Range(0.1).DiffersInStepsOnly(Range(0.2)));
  EXPECT_FALSE(
      Range(0.1).DiffersInStepsOnly(*Mechanism::BoundedRange({.range = 0.1, .adjacency = Adjacency::kZeroOut})));
}

}  // namespace
}  // namespace wisp::privacy::decoding_accounting_test
