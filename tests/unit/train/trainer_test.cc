// The trainer: it learns, repeats itself, resumes, charges before it samples, and refuses what has no guarantee.
#include "runtime/train/trainer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/privacy/accounting/accountant.h"
#include "runtime/train/run/evaluate.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::trainer_test {
namespace {

using privacy::Ledger;

TrainingOptions Ordinary(uint64_t steps) {
  return {.num_steps = steps, .expected_batch = 16, .optimizer = {.learning_rate = 0.01f}, .seed = 5, .num_threads = 2};
}

TrainingOptions Private(uint64_t steps, Ledger* ledger) {
  TrainingOptions o = Ordinary(steps);
  o.method = Method::kPhantom;
  o.sampling = Sampling::kPoisson;
  o.num_records_public = 60;
  o.privacy = {.noise_multiplier = 1.0, .clipping_norm = 1.0, .ledger = ledger, .run = "test"};
  return o;
}

class TrainerTest : public test::RingTraining {
 protected:
  TrainerTest() : RingTraining(60) {}

  std::unique_ptr<Trainer> Make(const TrainingOptions& options) {
    auto trainer = Trainer::Create(kSmall, start_, ring_.records, options);
    EXPECT_TRUE(trainer.ok()) << trainer.status().message();
    return *std::move(trainer);
  }
  std::vector<float> Run(const TrainingOptions& options, uint64_t steps) {
    auto trainer = Make(options);
    for (uint64_t i = 0; i < steps; ++i) EXPECT_TRUE(trainer->Step().ok());
    return {trainer->weights().begin(), trainer->weights().end()};
  }
  Status Refusal(const TrainingOptions& options) {
    return Trainer::Create(kSmall, start_, ring_.records, options).status();
  }
};

TEST_F(TrainerTest, RefusesMoreThreadsThanAllowed) {
  for (const size_t threads : {kMaxThreads + 1, SIZE_MAX}) {
    TrainingOptions o = Ordinary(1);
    o.num_threads = threads;
    const Status status = Trainer::Check(kSmall, start_, ring_.records, o);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("num_threads is " + std::to_string(threads)), std::string::npos)
        << status.message();
  }
}

// Batch sizes vary like binomials, and none follows from the one before. 6 standard deviations.
TEST_F(TrainerTest, EveryStepDrawsABatchOfItsOwn) {
  constexpr int kSteps = 200;
  Ledger ledger = OpenLedger("l");
  TrainingOptions o = Private(kSteps, &ledger);
  o.privacy.steps_per_charge = kSteps;
  auto trainer = Make(o);
  std::vector<double> sizes;
  for (int i = 0; i < kSteps; ++i) sizes.push_back(static_cast<double>(trainer->Step()->num_records) - 16);
  const double variance = 16 * (1 - 16.0 / 60);
  double squares = 0, products = 0;
  for (int i = 0; i < kSteps; ++i) squares += sizes[i] * sizes[i] / kSteps;
  for (int i = 1; i < kSteps; ++i) products += sizes[i] * sizes[i - 1] / (kSteps - 1);
  EXPECT_NEAR(squares, variance, 6 * variance * std::sqrt(2.0 / kSteps));
  EXPECT_NEAR(products, 0, 6 * variance / std::sqrt(1.0 * kSteps));
}

TEST_F(TrainerTest, OrdinaryTrainingLearnsTheRing) {
  auto trainer = Make(Ordinary(150));
  double first = 0, last = 0;
  for (int i = 0; i < 150; ++i) {
    const auto report = trainer->Step();
    ASSERT_TRUE(report.ok());
    if (i == 0) first = report->mean_loss;
    last = report->mean_loss;
  }
  EXPECT_NEAR(first, std::log(30.0), 0.8);
  EXPECT_LT(last, 0.3);
  std::vector<RankingCase> cases;
  for (const Record& r : ring_.records) cases.push_back({r.inputs, r.targets.back()});
  const Recommender graph(kSmall, kernels::BestOps());
  EXPECT_GT(EvaluateRanking(graph, trainer->weights().data(), cases, trainer->workers()).ndcg_at_10, 0.95);
}

TEST_F(TrainerTest, SameSeedAndThreadsRepeatBitForBit) {
  TrainingOptions o = Ordinary(20);
  o.dropout = {.embedding = 0.1f, .attention = 0.1f, .residual = 0.1f};
  EXPECT_EQ(Run(o, 20), Run(o, 20));
  TrainingOptions other = o;
  other.seed = 6;
  EXPECT_NE(Run(o, 20), Run(other, 20));
}

// Integer sums do not depend on who adds: the noise-free part of a private step is the same for any number of threads.
TEST_F(TrainerTest, PrivateRunWithReproducibleNoiseRepeats) {
  Ledger a = OpenLedger("a"), b = OpenLedger("b");
  TrainingOptions o = Private(5, &a);
  o.privacy.reproducible_seed = 9;
  const std::vector<float> first = Run(o, 5);
  o.privacy.ledger = &b;
  EXPECT_EQ(first, Run(o, 5));
}

TEST_F(TrainerTest, SecureRunsDiffer) {
  Ledger ledger = OpenLedger("l");
  EXPECT_NE(Run(Private(2, &ledger), 2), Run(Private(2, &ledger), 2));
}

TEST_F(TrainerTest, ResumedRunEqualsUninterruptedRunBitForBit) {
  for (Sampling sampling : {Sampling::kShuffled, Sampling::kPoisson}) {
    TrainingOptions o = Ordinary(24);
    o.sampling = sampling;
    o.ema_decay = 0.9f;
    const std::vector<float> whole = Run(o, 24);
    auto first = Make(o);
    for (int i = 0; i < 11; ++i) ASSERT_TRUE(first->Step().ok());
    const std::string path = folder_ / "run.ckpt";
    ASSERT_TRUE(WriteCheckpoint(path, *first->Save()).ok());
    auto second = Make(o);
    const auto saved = ReadCheckpoint(path);
    ASSERT_TRUE(saved.ok()) << saved.status().message();
    const Status restored = second->Restore(*saved);
    ASSERT_TRUE(restored.ok()) << restored.message();
    while (second->step() < 24) ASSERT_TRUE(second->Step().ok());
    EXPECT_EQ(whole, std::vector<float>(second->weights().begin(), second->weights().end()));
  }
}

TEST_F(TrainerTest, CheckpointOfAnotherRunIsRefused) {
  auto first = Make(Ordinary(10));
  TrainingOptions other = Ordinary(10);
  other.optimizer.learning_rate = 0.02f;
  auto second = Make(other);
  EXPECT_EQ(second->Restore(*first->Save()).code(), StatusCode::kInvalidData);
}

TEST_F(TrainerTest, EveryStepIsChargedBeforeItIsTaken) {
  Ledger ledger = OpenLedger("l");
  TrainingOptions o = Private(7, &ledger);
  o.privacy.steps_per_charge = 3;
  auto trainer = Make(o);
  const uint64_t expected[] = {3, 3, 3, 6, 6, 6, 7};
  for (uint64_t charged : expected) {
    ASSERT_TRUE(trainer->Step().ok());
    uint64_t total = 0;
    for (const auto& entry : *ledger.Entries()) total += entry.mechanism.steps();
    EXPECT_EQ(total, charged);
  }
  const auto entries = *ledger.Entries();
  EXPECT_DOUBLE_EQ(entries[0].mechanism.sampling_probability(), 16.0 / 60);
  EXPECT_DOUBLE_EQ(entries[0].mechanism.noise_multiplier(), 1.0);
  EXPECT_EQ(entries[0].noise, privacy::NoiseKind::kSecure);
}

// Restoring an old checkpoint does not restore budget: repeated steps are charged again.
TEST_F(TrainerTest, RestoredPrivateRunPaysAgain) {
  Ledger ledger = OpenLedger("l");
  auto first = Make(Private(6, &ledger));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(first->Step().ok());
  const Checkpoint old = *first->Save();
  EXPECT_TRUE(old.streams.empty()) << "nothing of a secure stream may be saved";
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(first->Step().ok());
  auto second = Make(Private(6, &ledger));
  ASSERT_TRUE(second->Restore(old).ok());
  ASSERT_TRUE(second->Step().ok());
  EXPECT_EQ(ledger.Entries()->size(), 5u);
}

TEST_F(TrainerTest, SpentBudgetStopsTheRunAndChangesNothing) {
  Ledger ledger = OpenLedger("l");
  const auto three = *privacy::Mechanism::PoissonSubsampledGaussian(
      {.noise_multiplier = 1.0, .sampling_probability = 16.0 / 60, .steps = 3});
  const double epsilon = *privacy::PldEpsilon(std::vector{three}, *privacy::Delta::Create(1e-3));
  ASSERT_TRUE(ledger.SetLimit(*privacy::EpsilonDelta::Create(epsilon * 1.01, 1e-3)).ok());
  // Three steps are planned, and ten are to be taken: the fourth is outside of the plan, and the filter does not allow
  // it.
  ASSERT_TRUE(
      ledger.WritePlan("three", "a test", std::vector<privacy::ChargeRequest>{{.mechanism = three, .loss_slack = 1e-4}})
          .ok());
  auto trainer = Make(Private(10, &ledger));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(trainer->Step().ok());
  const std::vector<float> before(trainer->weights().begin(), trainer->weights().end());
  const auto refused = trainer->Step();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kPrivacyRefused);
  EXPECT_EQ(before, std::vector<float>(trainer->weights().begin(), trainer->weights().end()));
  EXPECT_EQ(ledger.Entries()->size(), 3u);
}

// With SGD, rate 1 and an empty batch, only noise moves the weights: its standard deviation is noise multiplier * C /
// B. An empty step must still be noised.
TEST_F(TrainerTest, EmptyBatchesAreNoisedAndNoiseHasItsDeviation) {
  Ledger ledger = OpenLedger("l");
  TrainingOptions o = Private(4, &ledger);
  o.expected_batch = 1;
  o.num_records_public = 4000000;  // q so small that the batch is empty
  o.optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 1.0f};
  o.privacy.noise_multiplier = 2.0;
  o.privacy.clipping_norm = 0.5;
  auto trainer = Make(o);
  const std::vector<float> before(trainer->weights().begin(), trainer->weights().end());
  ASSERT_TRUE(trainer->Step().ok());
  double sum = 0, squares = 0, n = 0;
  for (const ParameterSpec& p : trainer->graph().parameters()) {
    for (size_t i = p.offset; i < p.offset + p.size(); ++i) {
      const double moved = static_cast<double>(trainer->weights()[i]) - before[i];
      EXPECT_NE(moved, 0);
      sum += moved, squares += moved * moved, n += 1;
    }
  }
  EXPECT_NEAR(std::sqrt(squares / n), 1.0, 5 / std::sqrt(2 * n)) << "five standard errors: alpha 6e-7";
  EXPECT_NEAR(sum / n, 0, 5 / std::sqrt(n));
}

// One more record moves the released sum, before noise, by at most C: seen through SGD with the same reproducible
// noise.
TEST_F(TrainerTest, OneRecordMoreMovesTheStepByAtMostTheClippingNorm) {
  for (ClipKind kind : {ClipKind::kFlat, ClipKind::kAutomatic}) {
    std::vector<float> moved[2];
    for (int with = 0; with < 2; ++with) {
      Ledger ledger = OpenLedger(with ? (kind == ClipKind::kFlat ? "a" : "b") : (kind == ClipKind::kFlat ? "c" : "d"));
      TrainingOptions o = Private(1, &ledger);
      o.expected_batch = 60;  // q = 1: everybody takes part
      o.optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 60.0f};
      o.privacy.clipping = kind;
      o.privacy.clipping_norm = 0.25;
      o.privacy.reproducible_seed = 4;
      const std::span<const Record> records(ring_.records.data(), 59 + static_cast<size_t>(with));
      auto trainer = *Trainer::Create(kSmall, start_, records, o);
      ASSERT_TRUE(trainer->Step().ok());
      moved[with].assign(trainer->weights().begin(), trainer->weights().end());
    }
    double squares = 0;
    for (size_t i = 0; i < moved[0].size(); ++i) squares += std::pow(static_cast<double>(moved[1][i]) - moved[0][i], 2);
    EXPECT_LE(std::sqrt(squares), 0.25 * (1 + 1e-4)) << "float weights round";
    EXPECT_GT(std::sqrt(squares), 0.2);
  }
}

TEST_F(TrainerTest, NoGuarantee_IsRefusedWithItsReason) {
  Ledger ledger = OpenLedger("l");
  const auto expect = [&](auto&& change, const char* word) {
    TrainingOptions o = Private(1, &ledger);
    change(o);
    const Status status = Refusal(o);
    EXPECT_EQ(status.code(), StatusCode::kPrivacyRefused) << word;
    EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
  };
  expect([](TrainingOptions& o) { o.privacy.ledger = nullptr; }, "ledger");
  expect([](TrainingOptions& o) { o.sampling = Sampling::kShuffled; }, "shuffled");
  expect([](TrainingOptions& o) { o.privacy.noise_multiplier = 0; }, "noise multiplier");
  expect([](TrainingOptions& o) { o.privacy.clipping = ClipKind::kNone; }, "clipping");
  expect([](TrainingOptions& o) { o.num_records_public = 0; }, "public");
  expect([](TrainingOptions& o) { o.loss = LossWeighting::kPositionMean; }, "record");
  EXPECT_TRUE(ledger.Entries()->empty());
}

TEST_F(TrainerTest, BadRecordsAndOptionsAreNamed) {
  std::vector<int32_t> items = {1, 99};
  const Record bad[] = {{std::span<const int32_t>(items).first(1), std::span<const int32_t>(items).last(1)}};
  TrainingOptions o = Ordinary(1);
  o.expected_batch = 1;
  EXPECT_NE(Trainer::Create(kSmall, start_, bad, o).status().message().find("99"), std::string::npos);
  o = Ordinary(1);
  o.expected_batch = 61;
  EXPECT_NE(Refusal(o).message().find("61"), std::string::npos);
  o = Ordinary(1);
  o.optimizer.learning_rate = -1;
  EXPECT_NE(Refusal(o).message().find("learning_rate"), std::string::npos);
}

}  // namespace
}  // namespace wisp::trainer_test
