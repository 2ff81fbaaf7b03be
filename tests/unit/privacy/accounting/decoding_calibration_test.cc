// The mechanisms of a decoder as data, in the ledger, and their calibration: closed forms, and the promise at the end
// of the bisection.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>
#include <vector>

#include "runtime/privacy/accounting/accountant.h"
#include "runtime/privacy/accounting/decoding_calibration.h"
#include "runtime/privacy/ledger/ledger_composition.h"
#include "tests/unit/privacy/accounting/sampling_test_util.h"

namespace wisp::privacy::decoding_calibration_test {
namespace {

TEST(Mechanism, SamplesReadBackBitForBitAndOldTextsStand) {
  const Mechanism non_uniform = *Mechanism::NonUniformResponse(
      {.min_probability = 1e-5 / 3, .lambda = 1e-4 / 3, .count = 9, .adjacency = Adjacency::kZeroOut});
  for (const Mechanism& m : {Response(10000, 1.0 / 3, 12345678901), Range(M_PI, 3), non_uniform}) {
    const auto back = Mechanism::FromText(m.ToText());
    ASSERT_TRUE(back.ok()) << m.ToText();
    EXPECT_EQ(*back, m);
  }
  EXPECT_EQ(Response(10000, 1e-4, 100).ToText(),
            "randomised_response support=10000 lambda=1e-04 steps=100 adjacency=add_remove");
  EXPECT_EQ(Range(0.25).ToText(), "bounded_range range=0.25 steps=1 adjacency=add_remove");
  EXPECT_EQ(Range(0.25).Describe(), "bounded-range sample, range 0.25, 1 sample, adjacency add_remove");
  EXPECT_EQ(Response(10, 0.5, 2).Describe(),
            "randomised response, support 10, lambda 0.5, 2 samples, adjacency add_remove");
  for (const char* old :
       {"gaussian noise_multiplier=1.5 steps=3 adjacency=zero_out",
        "poisson_subsampled_gaussian noise_multiplier=1.1 sampling_probability=0.01 steps=1000 adjacency=add_remove"}) {
    const auto m = Mechanism::FromText(old);
    ASSERT_TRUE(m.ok()) << old;
    EXPECT_EQ(m->ToText(), old);
  }
  for (const char* bad :
       {"randomised_response", "randomised_response support=1 lambda=0.1 steps=1 adjacency=add_remove",
        "randomised_response support=10 lambda=1 steps=1 adjacency=add_remove",
        "randomised_response support=10 min_probability=0.1 lambda=0.1 steps=1 adjacency=add_remove",
        "randomised_response min_probability=0 lambda=0.1 steps=1 adjacency=add_remove",
        "randomised_response support=min_probability=0.1 lambda=0.1 steps=1 adjacency=add_remove",
        "bounded_range range=0 steps=1 adjacency=add_remove", "bounded_range lambda=1 steps=1 adjacency=add_remove"}) {
    EXPECT_FALSE(Mechanism::FromText(bad).ok()) << bad;
  }
}

TEST(Mechanism, ImpossibleSamplesAreRefused) {
  for (double bad : {-0.1, 1.0, 2.0, std::nan("")})
    EXPECT_FALSE(Mechanism::RandomisedResponse({.support = 10, .lambda = bad}).ok());
  for (uint64_t bad : {uint64_t{0}, uint64_t{1}, (uint64_t{1} << 53) + 1}) {
    EXPECT_FALSE(Mechanism::RandomisedResponse({.support = bad, .lambda = 0.1}).ok());
  }
  for (double bad : {0.0, 0.6, -1.0, 1e-300, std::nan("")}) {
    EXPECT_FALSE(Mechanism::NonUniformResponse({.min_probability = bad, .lambda = 0.1}).ok());
  }
  for (double bad : {0.0, -1.0, HUGE_VAL, std::nan("")}) EXPECT_FALSE(Mechanism::BoundedRange({.range = bad}).ok());
  EXPECT_FALSE(Mechanism::BoundedRange({.range = 1, .count = 0}).ok());
  EXPECT_FALSE(Mechanism::RandomisedResponse({.support = 10, .lambda = 0.1, .count = 0}).ok());
}

TEST(Calibration, PureLambdaIsTheClosedFormOnTheSafeSide) {
  for (const auto& [epsilon, samples, support] :
       {std::tuple{1.0, 100, 10000}, {8.0, 1, 2}, {0.1, 1000000, 50}, {60.0, 1, 10}}) {
    const auto m = PureResponse({.epsilon = epsilon, .samples = static_cast<uint64_t>(samples)},
                                {.support = static_cast<uint64_t>(support)});
    ASSERT_TRUE(m.ok()) << m.status().message();
    const double a = std::exp(epsilon / samples);
    EXPECT_NEAR(m->lambda(), (a - 1) / (a - 1 + support), 1e-9 * m->lambda());
    EXPECT_LE(*PureEpsilon(std::vector{*m}), epsilon);
    EXPECT_GE(*PureEpsilon(std::vector{*m}), epsilon * (samples == 1 && epsilon > 20 ? 0.5 : 1 - 1e-12))
        << "lambda near 1 has few digits";
    const auto same = PureResponse({.epsilon = epsilon, .samples = static_cast<uint64_t>(samples)},
                                   {.min_probability = 1.0 / support});
    EXPECT_NEAR(same->lambda(), m->lambda(), 1e-12);
    const auto range = PureBoundedRange({.epsilon = epsilon, .samples = static_cast<uint64_t>(samples)});
    EXPECT_LE(*PureEpsilon(std::vector{*range}), epsilon);
    EXPECT_NEAR(range->range(), epsilon / samples, 1e-12);
  }
  EXPECT_FALSE(PureResponse({.epsilon = 1, .samples = 0}, {.support = 10}).ok());
  EXPECT_FALSE(PureResponse({.epsilon = -1, .samples = 1}, {.support = 10}).ok());
  EXPECT_FALSE(PureResponse({.epsilon = 1, .samples = 1}, {.support = 10, .min_probability = 0.1}).ok());
  EXPECT_NEAR(LargestClipForRange(2, 0.5), 0.25, 1e-15);
  EXPECT_LE(4 * LargestClipForRange(0.3, 0.7) / 0.7, 0.3);
}

TEST(Calibration, LambdaIsTheLargestThatKeepsThePromise) {
  const EpsilonDelta target = *EpsilonDelta::Create(1, 1e-6);
  for (const PublicMixture& mixture : {PublicMixture{.support = 10000}, PublicMixture{.min_probability = 1e-6}}) {
    const auto c = CalibrateResponse({.target = target, .samples = 100}, mixture);
    ASSERT_TRUE(c.ok()) << c.status().message();
    EXPECT_LE(Pld({c->mechanism}, 1e-6), 1);
    EXPECT_EQ(c->mechanism.steps(), 100);
    const double u = c->mechanism.min_probability();
    EXPECT_GT(Pld({*Mechanism::NonUniformResponse(
                      {.min_probability = u, .lambda = c->mechanism.lambda() * 1.001, .count = 100})},
                  1e-6),
              1);
    EXPECT_GT(c->mechanism.lambda(), 5 * PureResponse({.epsilon = 1, .samples = 100}, mixture)->lambda());
  }
}

TEST(Calibration, RangeIsTheLargestThatKeepsThePromise) {
  const EpsilonDelta target = *EpsilonDelta::Create(1, 1e-6);
  const auto c = CalibrateBoundedRange({.target = target, .samples = 50});
  ASSERT_TRUE(c.ok()) << c.status().message();
  EXPECT_LE(Pld({c->mechanism}, 1e-6), 1);
  EXPECT_GT(Pld({Range(c->mechanism.range() * 1.001, 50)}, 1e-6), 1);
  EXPECT_GT(c->mechanism.range(), 1.5 * PureBoundedRange({.epsilon = 1, .samples = 50})->range());
}

TEST(Calibration, SamplesPayForWhatIsSpentBeside) {
  const std::vector beside = {Response(10000, 1e-4, 100)};
  const EpsilonDelta target = *EpsilonDelta::Create(2, 1e-6);
  const auto alone = CalibrateResponse({.target = target, .samples = 100}, {.support = 10000});
  const auto with = CalibrateResponse({.target = target, .samples = 100, .composed_with = beside}, {.support = 10000});
  ASSERT_TRUE(with.ok()) << with.status().message();
  EXPECT_LT(with->mechanism.lambda(), alone->mechanism.lambda());
  EXPECT_LE(Pld({beside[0], with->mechanism}, 1e-6), 2);
  const auto refused = CalibrateResponse(
      {.target = *EpsilonDelta::Create(0.5, 1e-6), .samples = 100, .composed_with = beside}, {.support = 10000});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kPrivacyRefused);
}

TEST(Ledger, SamplesChargedOneByOneAreOneMechanism) {
  Composition spent;
  for (int i = 0; i < 50; ++i) {
    spent.Add(Response(10000, 1e-4, 2), NoiseKind::kSecure, 0);
    spent.Add(Range(0.01), NoiseKind::kSecure, 0);
  }
  ASSERT_EQ(spent.mechanisms().size(), 2);
  EXPECT_DOUBLE_EQ(*spent.Epsilon(DeltaAt(1e-6)), Pld({Response(10000, 1e-4, 100), Range(0.01, 50)}, 1e-6));
}

}  // namespace
}  // namespace wisp::privacy::decoding_calibration_test
