// Coarser grids are bounds too, near the full one, and a figure depends on what was charged alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <thread>
#include <vector>

#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/accounting/kinds/random_allocation.h"

namespace wisp::privacy::fineness_test {
namespace {

double Cdf(double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); }

// Asks on a thread of its own, which knows no figure yet.
double Ask(const std::vector<Mechanism>& mechanisms, double delta, Fineness fineness = Fineness::kFull) {
  double epsilon = 0;
  std::thread([&] { epsilon = StateEpsilon(mechanisms, *Delta::Create(delta), fineness)->epsilon; }).join();
  return epsilon;
}

// The largest epsilon at which the definition gives a Gaussian more delta: Balle and Wang 2018, theorem 8.
double ExactGaussian(double noise, double delta) {
  double low = 0, high = 1000;
  for (int i = 0; i < 200; ++i) {
    const double epsilon = (low + high) / 2, a = 0.5 / noise, b = epsilon * noise;
    (Cdf(a - b) - std::exp(epsilon) * Cdf(-a - b) > delta ? low : high) = epsilon;
  }
  return low;
}

class Family {
 public:
  explicit Family(uint32_t seed) : random_(seed) { std::printf("seed %u\n", seed); }
  double LogUniform(double low, double high) {
    return low * std::pow(high / low, std::uniform_real_distribution<double>(0, 1)(random_));
  }
  Mechanism Next() {
    const auto steps = static_cast<uint64_t>(LogUniform(1, 3000));
    const double noise = LogUniform(0.6, 20), root = std::sqrt(static_cast<double>(steps));
    switch (random_() % 4) {
      case 0:
        return *Mechanism::Gaussian({.noise_multiplier = LogUniform(0.4, 20) * root, .count = steps});
      case 1:
        return *Mechanism::RandomisedResponse({.support = 1000, .lambda = LogUniform(1e-4, 1e-2), .count = steps});
      default:
        return *Mechanism::PoissonSubsampledGaussian({.noise_multiplier = std::max(0.5, noise),
                                                      .sampling_probability = std::min(1.0, LogUniform(0.05, 3) / root),
                                                      .steps = steps});
    }
  }

 private:
  std::mt19937 random_;
};

TEST(Fineness, CoarserFigures_AreBoundsCloseAboveTheFullOne) {
  Family family(20261129);
  double quick_most = 0, glance_most = 0;
  for (int trial = 0; trial < 25; ++trial) {
    const double delta = family.LogUniform(1e-9, 1e-3);
    std::vector<Mechanism> m = {family.Next()};
    if (trial % 3 == 0) m.push_back(family.Next());
    const double full = Ask(m, delta), quick = Ask(m, delta, Fineness::kQuick),
                 glance = Ask(m, delta, Fineness::kGlance);
    EXPECT_GE(quick, full * (1 - 1e-6)) << m.front().Describe() << " at " << delta;
    EXPECT_GE(glance, full * (1 - 1e-6)) << m.front().Describe() << " at " << delta;
    quick_most = std::max(quick_most, (quick - full) / (full + 0.1));
    glance_most = std::max(glance_most, (glance - full) / (full + 0.1));
  }
  std::printf("at most %.2g above by a quick figure, %.2g by a glance\n", quick_most, glance_most);
  EXPECT_LE(quick_most, 1e-3);
  EXPECT_LE(glance_most, 1e-2);
}

TEST(Fineness, NoFigureIsBelowTheExactOne) {
  for (const double noise : {0.5, 1.0, 3.0, 20.0}) {
    for (const double delta : {1e-3, 1e-6, 1e-9}) {
      const std::vector m = {*Mechanism::Gaussian({.noise_multiplier = 5 * noise, .count = 25})};
      for (const Fineness fineness : {Fineness::kFull, Fineness::kQuick, Fineness::kGlance})
        EXPECT_GE(Ask(m, delta, fineness), ExactGaussian(noise, delta)) << noise << " " << delta;
    }
  }
}

// Another process may have charged them in another order, and a statement of one ledger is compared to the last bit.
TEST(Fineness, OrderOfMechanisms_ChangesNoBit) {
  std::vector<Mechanism> m = {
      *Mechanism::Gaussian({.noise_multiplier = 7}),
      *Mechanism::PoissonSubsampledGaussian({.noise_multiplier = 1.3, .sampling_probability = 0.05, .steps = 170}),
      *Mechanism::PoissonSubsampledGaussian({.noise_multiplier = 1.1, .sampling_probability = 0.03, .steps = 170}),
      *RandomAllocation({.noise_multiplier = 1.7, .epoch_steps = 3, .epochs = 5})};
  const double epsilon = Ask(m, 1e-5), at_one = *PldDelta(m, 1);
  for (int turns = 0; turns < 3; ++turns) {
    std::rotate(m.begin(), m.begin() + 1, m.end());
    EXPECT_EQ(Ask(m, 1e-5), epsilon) << turns;
    EXPECT_EQ(*PldDelta(m, 1), at_one) << turns;
  }
}

}  // namespace
}  // namespace wisp::privacy::fineness_test
