// Records that are allocated to the steps of an epoch, noise that follows a schedule, and noise that the next step
// takes back: their distribution, and the charges for them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "runtime/privacy/accounting/accountant.h"
#include "runtime/train/privacy_plan.h"
#include "runtime/train/budget.h"
#include "runtime/train/sampler.h"
#include "runtime/train/trainer.h"
#include "tests/unit/needs.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::sampling_and_noise_test {
namespace {

class SamplingAndNoise : public test::RingTraining {
 protected:
  SamplingAndNoise() : RingTraining(60) {}

  // 60 records, 15 in a step: an epoch has 4 steps.
  TrainingOptions Options(Sampling sampling) {
    return {.method = Method::kPhantom,
            .sampling = sampling,
            .num_steps = 8,
            .expected_batch = 15,
            .num_records_public = 60,
            .optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 15.0f},
            .num_threads = 2,
            .privacy = {.noise_multiplier = 2, .clipping_norm = 1, .ledger = &ledger_, .run = "run"}};
  }
  TrainingOptions Correlated(double lambda) {
    TrainingOptions o = Options(Sampling::kCyclic);
    o.privacy.noise_lambda = lambda;
    return o;
  }
  // A step without records moves weights that are 0 by the noise alone, in clipping norms.
  static std::vector<double> Noise(Trainer& trainer) {
    const std::vector<float> before(trainer.weights().begin(), trainer.weights().end());
    EXPECT_TRUE(trainer.Step().ok());
    std::vector<double> noise;
    for (size_t i = 0; i < before.size(); ++i) {
      if (trainer.weights()[i] != before[i])
        noise.push_back(static_cast<double>(before[i]) - static_cast<double>(trainer.weights()[i]));
    }
    return noise;
  }
  std::unique_ptr<Trainer> WithoutRecords(const TrainingOptions& o) {
    auto trainer = Trainer::Create(kSmall, std::vector<float>(start_.size(), 0.0f), {}, o);
    EXPECT_TRUE(trainer.ok()) << trainer.status().message();
    return std::move(*trainer);
  }
  static double Deviation(const std::vector<double>& x) {
    return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0) / static_cast<double>(x.size()));
  }
  static double Correlation(const std::vector<double>& x, const std::vector<double>& y) {
    return std::inner_product(x.begin(), x.end(), y.begin(), 0.0) / static_cast<double>(x.size()) /
           (Deviation(x) * Deviation(y));
  }

  privacy::Ledger ledger_ = OpenLedger("l");
};

std::vector<std::vector<uint32_t>> Epoch(Sampler& sampler, privacy::RandomStream& stream, uint64_t first) {
  std::vector<std::vector<uint32_t>> steps(4);
  for (uint64_t s = 0; s < 4; ++s) sampler.Draw(first + s, stream, steps[s]);
  return steps;
}

std::multiset<uint32_t> All(const std::vector<std::vector<uint32_t>>& steps) {
  std::multiset<uint32_t> all;
  for (const auto& step : steps) all.insert(step.begin(), step.end());
  return all;
}

TEST_F(SamplingAndNoise, Allocation_TakesEachRecordOnceInEachEpoch) {
  auto stream = privacy::RandomStream::Reproducible(4, privacy::StreamPurpose::kSampling);
  std::multiset<uint32_t> once;
  for (uint32_t i = 0; i < 60; ++i) once.insert(i);
  for (const Sampling sampling : {Sampling::kAllocation, Sampling::kCyclic}) {
    const auto sampler = MakeSampler(Options(sampling), 60);
    const auto first = Epoch(*sampler, stream, 0), second = Epoch(*sampler, stream, 4);
    EXPECT_EQ(All(first), once);
    EXPECT_EQ(All(second), once);
    // 60 records with 4 places each: both epochs are alike by chance with 4^-60.
    EXPECT_EQ(first == second, sampling == Sampling::kCyclic);
    // A process that resumes in the middle of an epoch begins a new one.
    sampler->Restore({});
    const auto resumed = Epoch(*sampler, stream, 6);
    EXPECT_EQ(All(resumed), once);
    EXPECT_NE(resumed, first);
  }
}

// Each place has a quarter of 60,000 records: 15,000, with a deviation of 106. Six of them: alpha 2e-9.
TEST_F(SamplingAndNoise, Allocation_GivesEachStepTheSameShare) {
  TrainingOptions o = Options(Sampling::kAllocation);
  o.num_records_public = 60000;
  o.expected_batch = 15000;
  auto stream = privacy::RandomStream::Reproducible(5, privacy::StreamPurpose::kSampling);
  const auto sampler = MakeSampler(o, 60000);
  for (const auto& step : Epoch(*sampler, stream, 0)) EXPECT_NEAR(static_cast<double>(step.size()), 15000, 640);
}

TEST_F(SamplingAndNoise, Allocation_PaysForWholeEpochsBeforeTheirFirstStep) {
  auto trainer = *Trainer::Create(kSmall, start_, ring_.records, Options(Sampling::kAllocation));
  for (uint64_t step = 0; step < 6; ++step) {
    ASSERT_TRUE(trainer->Step().ok());
    uint64_t steps = 0;
    const auto entries = *ledger_.Entries();
    for (const auto& entry : entries) {
      EXPECT_EQ(entry.mechanism.word(), "random_allocation");
      EXPECT_EQ(entry.mechanism.Parameter("epoch_steps"), 4);
      steps += entry.mechanism.training_steps();
    }
    EXPECT_EQ(steps, step < 4 ? 4u : 8u) << step;
  }
  // A later process begins an epoch of its own.
  const Checkpoint checkpoint = *trainer->Save();
  auto later = *Trainer::Create(kSmall, start_, ring_.records, Options(Sampling::kAllocation));
  ASSERT_TRUE(later->Restore(checkpoint).ok());
  ASSERT_TRUE(later->Step().ok());
  uint64_t steps = 0;
  const auto entries = *ledger_.Entries();
  for (const auto& entry : entries) steps += entry.mechanism.training_steps();
  EXPECT_EQ(steps, 12u);
}

TEST_F(SamplingAndNoise, Allocation_CostsLessThanPoissonSampling) {
  const privacy::Delta delta = *privacy::Delta::Create(1e-5);
  double epsilon[2];
  for (const Sampling sampling : {Sampling::kPoisson, Sampling::kAllocation}) {
    const PrivacyPlan plan = *PrivacyPlan::Create(kSmall, Options(sampling));
    epsilon[sampling == Sampling::kAllocation] = *privacy::PldEpsilon(*plan.Mechanisms(8), delta);
  }
  EXPECT_LT(epsilon[1], epsilon[0]);
  EXPECT_GT(epsilon[1], 0.3 * epsilon[0]);
}

// About 2,000 numbers: the correlation of independent ones has a deviation of 0.022; six are 0.14.
TEST_F(SamplingAndNoise, CorrelatedNoise_IsTakenBackInTheNextStep) {
  const double lambda = 0.75;
  auto trainer = WithoutRecords(Correlated(lambda));
  const std::vector<double> first = Noise(*trainer), second = Noise(*trainer), third = Noise(*trainer);
  ASSERT_GT(first.size(), 1900u);
  ASSERT_EQ(first.size(), second.size());
  EXPECT_NEAR(Deviation(first), 2, 0.2);
  EXPECT_NEAR(Deviation(second), 2 * std::sqrt(1 + lambda * lambda), 0.25);
  // With the first noise given back, new noise of the same size is left, and independent.
  std::vector<double> fresh, newest;
  for (size_t i = 0; i < first.size(); ++i) fresh.push_back(second[i] + lambda * first[i]);
  for (size_t i = 0; i < first.size(); ++i) newest.push_back(third[i] + lambda * fresh[i]);
  EXPECT_NEAR(Deviation(fresh), 2, 0.2);
  EXPECT_NEAR(Deviation(newest), 2, 0.2);
  EXPECT_NEAR(Correlation(fresh, first), 0, 0.14);
  EXPECT_NEAR(Correlation(newest, fresh), 0, 0.14);
  EXPECT_NEAR(Correlation(newest, first), 0, 0.14);
}

// The key of a step is in no checkpoint, so another process takes nothing back.
TEST_F(SamplingAndNoise, CorrelatedNoise_BeginsAnewInAnotherProcess) {
  auto trainer = WithoutRecords(Correlated(0.75));
  const std::vector<double> first = Noise(*trainer);
  const Checkpoint checkpoint = *trainer->Save();
  auto later = WithoutRecords(Correlated(0.75));
  ASSERT_TRUE(later->Restore(checkpoint).ok());
  const std::vector<double> second = Noise(*later);
  EXPECT_NEAR(Deviation(second), 2, 0.2);
  EXPECT_NEAR(Correlation(second, first), 0, 0.14);
}

TEST_F(SamplingAndNoise, CorrelatedNoise_PaysForTheWholeRunAtOnce) {
  auto trainer = *Trainer::Create(kSmall, start_, ring_.records, Correlated(0.5));
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(trainer->Step().ok());
  const auto entries = *ledger_.Entries();
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].mechanism.word(), "correlated_gaussian");
  EXPECT_EQ(entries[0].mechanism.Parameter("participations"), 2);
  EXPECT_EQ(entries[0].mechanism.Parameter("separation"), 4);
  EXPECT_EQ(entries[0].mechanism.training_steps(), 8u);
  EXPECT_TRUE(trainer->at_end_of_charge());
}

TEST_F(SamplingAndNoise, Schedule_FollowsTheLearningRate) {
  TrainingOptions o = Options(Sampling::kPoisson);
  o.num_steps = 100;
  o.optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 15.0f, .decay = Decay::kLinear};
  o.privacy.noise_schedule = NoiseSchedule::kLearningRate;
  const privacy::NoiseOptions noise = GetNoise(o, 2);
  EXPECT_EQ(noise.GetMultiplier(0), 2);
  for (uint64_t step = 0; step < 100; ++step) {
    const double rate = static_cast<double>(LearningRate(o.optimizer, static_cast<double>(step), 100)) / 15;
    const double wanted = 2 * std::min(4.0, 1 / std::sqrt(rate));
    EXPECT_NEAR(noise.GetMultiplier(step) / wanted, 1, 0.05) << step;
  }
  EXPECT_LT(noise.levels.size(), 20u);
  // Each step is charged with the noise that it gets: the first and the last of the run.
  const PrivacyPlan plan = *PrivacyPlan::Create(kSmall, o);
  EXPECT_EQ((*plan.Mechanisms({0, 1}))[0].noise_multiplier(), noise.GetMultiplier(0));
  EXPECT_EQ((*plan.Mechanisms({99, 1}))[0].noise_multiplier(), noise.GetMultiplier(99));
  uint64_t steps = 0;
  const auto mechanisms = *plan.Mechanisms(100);
  for (const auto& mechanism : mechanisms) steps += mechanism.steps();
  EXPECT_EQ(steps, 100u);
}

TEST_F(SamplingAndNoise, Schedule_StepsHaveTheNoiseThatIsCharged) {
  TrainingOptions o = Options(Sampling::kPoisson);
  o.num_steps = 4;
  o.optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 15.0f, .decay = Decay::kLinear};
  o.privacy.noise_schedule = NoiseSchedule::kLearningRate;
  auto trainer = WithoutRecords(o);
  for (uint64_t step = 0; step < 4; ++step) {
    const double rate = static_cast<double>(LearningRate(o.optimizer, static_cast<double>(step), 4)) / 15;
    const std::vector<double> noise = Noise(*trainer);
    const auto entries = *ledger_.Entries();
    EXPECT_NEAR(Deviation(noise) / rate / entries.back().mechanism.noise_multiplier(), 1, 0.1) << step;
  }
}

// At equal cost, the noise that it leaves in the weights of a decaying rate is smaller.
TEST_F(SamplingAndNoise, Schedule_LeavesLessNoiseAtEqualCost) {
  const PrivacyGoal goal{.epsilon = 2.0, .noise_multiplier = {}, .delta = 1e-5};
  double left[2];
  for (const NoiseSchedule schedule : {NoiseSchedule::kConstant, NoiseSchedule::kLearningRate}) {
    TrainingOptions o = Options(Sampling::kPoisson);
    o.num_steps = 60;
    o.optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 1.0f, .decay = Decay::kLinear};
    o.privacy.noise_schedule = schedule;
    ASSERT_TRUE(Budget::Calibrate(kSmall, goal, o).ok());
    const PrivacyPlan plan = *PrivacyPlan::Create(kSmall, o);
    const double epsilon = *privacy::PldEpsilon(*plan.Mechanisms(60), *privacy::Delta::Create(1e-5));
    EXPECT_LE(epsilon, 2.0);
    EXPECT_GE(epsilon, 1.99);
    double& variance = left[schedule == NoiseSchedule::kLearningRate] = 0;
    const privacy::NoiseOptions noise = GetNoise(o, o.privacy.noise_multiplier);
    for (uint64_t step = 0; step < 60; ++step) {
      const double moved =
          static_cast<double>(LearningRate(o.optimizer, static_cast<double>(step), 60)) * noise.GetMultiplier(step);
      variance += moved * moved;
    }
  }
  EXPECT_LT(left[1], 0.95 * left[0]);
}

TEST_F(SamplingAndNoise, GoalsAreMetWithEverySampling) {
  const PrivacyGoal goal{.epsilon = 3.0, .noise_multiplier = {}, .delta = 1e-5};
  for (TrainingOptions o : {Options(Sampling::kAllocation), Correlated(0.5)}) {
    ASSERT_TRUE(Budget::Calibrate(kSmall, goal, o).ok());
    const PrivacyPlan plan = *PrivacyPlan::Create(kSmall, o);
    const double epsilon = *privacy::PldEpsilon(*plan.Mechanisms(8), *privacy::Delta::Create(1e-5));
    EXPECT_LE(epsilon, 3.0) << GetName(o.sampling);
    EXPECT_GE(epsilon, 2.98) << GetName(o.sampling);
  }
}

TEST_F(SamplingAndNoise, CombinationsWithoutAProvedCost_AreRefused) {
  const auto refused = [&](const TrainingOptions& o) {
    const Status status = Trainer::Check(kSmall, start_, ring_.records, o);
    EXPECT_FALSE(status.ok());
    return std::string(status.message());
  };
  TrainingOptions o = Options(Sampling::kPoisson);
  o.privacy.noise_lambda = 0.5;
  EXPECT_NE(refused(o).find("cyclic"), std::string::npos);
  o.privacy.noise_lambda = 1;
  EXPECT_NE(refused(o).find("noise_lambda is 1"), std::string::npos);
  if (kHasSparse) {
    o = Options(Sampling::kAllocation);
    o.method = Method::kAdaFest;
    EXPECT_NE(refused(o).find("allocation"), std::string::npos);
  }
  o = Correlated(0.5);
  o.privacy.noise_schedule = NoiseSchedule::kLearningRate;
  EXPECT_NE(refused(o).find("noise_schedule"), std::string::npos);
}

}  // namespace
}  // namespace wisp::sampling_and_noise_test
