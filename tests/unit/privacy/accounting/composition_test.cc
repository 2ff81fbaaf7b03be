// The statement of a composition for noise on a grid: (epsilon, delta) of the continuous mechanisms becomes (epsilon +
// 2 eta, e^eta delta).
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/ledger/ledger_composition.h"

namespace wisp::privacy::composition_test {
namespace {

// Whoever knows the seed knows the noise.
TEST(Composition, RepeatableNoiseHasNoEpsilon) {
  Composition composition;
  composition.Add(*Mechanism::Gaussian({.noise_multiplier = 2}), NoiseKind::kSecure, 0);
  EXPECT_FALSE(std::isinf(*composition.Epsilon(*Delta::Create(1e-6))));
  composition.Add(*Mechanism::Gaussian({.noise_multiplier = 2}), NoiseKind::kReproducible, 0);
  EXPECT_TRUE(std::isinf(*composition.Epsilon(*Delta::Create(1e-6))));
}

TEST(Composition, SlackCostsEpsilonAndDelta) {
  const Mechanism gaussian = *Mechanism::Gaussian({.noise_multiplier = 2});
  const std::vector<Mechanism> alone = {gaussian};
  const double delta = 1e-6;
  for (double eta : {0.01, 0.5}) {
    Composition composition;
    composition.Add(gaussian, NoiseKind::kSecure, eta / 2);
    Composition twice = composition;
    // This mechanism costs almost nothing.
    composition.Add(*Mechanism::Gaussian({.noise_multiplier = 1e9}), NoiseKind::kSecure, eta / 2);
    const double stated = *composition.Epsilon(*Delta::Create(delta));
    const double continuous = *PldEpsilon(alone, *Delta::Create(delta * std::exp(-eta)));
    EXPECT_NEAR(stated, continuous + 2 * eta, 1e-3) << eta;
    EXPECT_GT(continuous - *PldEpsilon(alone, *Delta::Create(delta)), eta * 5e-2) << "the smaller delta shows";
    EXPECT_LT(*twice.Epsilon(*Delta::Create(delta)), stated);
  }
}

// The cost of slack is proved up to an epsilon of 200. Delta falls with epsilon, so above 200 the delta at 200 holds:
// little for a cheap mechanism, but more than that of the mechanism alone.
TEST(Composition, DeltaAboveTheProvedEpsilonIsWhatItIsThere) {
  Composition little, much;
  little.Add(*Mechanism::Gaussian({.noise_multiplier = 1}), NoiseKind::kSecure, 1e-9);
  much.Add(*Mechanism::Gaussian({.noise_multiplier = 0.05}), NoiseKind::kSecure, 1e-9);
  EXPECT_LT(*little.DeltaAt(1000), 1e-12);
  EXPECT_NEAR(*much.DeltaAt(200), 0.5, 0.1);
  EXPECT_EQ(*much.DeltaAt(1000), *much.DeltaAt(200));
  Composition slack;
  for (int i = 0; i < 150; ++i) slack.Add(*Mechanism::Gaussian({.noise_multiplier = 1e9}), NoiseKind::kSecure, 1);
  EXPECT_EQ(*slack.DeltaAt(1000), 1.0) << "twice the slack is above what is proved";
}

}  // namespace
}  // namespace wisp::privacy::composition_test
