// A run chooses the weight of its output bias once, before its first step: paid for, named, saved, and not paid again.
#include <algorithm>

#include "runtime/model/checkpoint.h"
#include "runtime/train/bias_weight.h"
#include "runtime/train/popularity.h"
#include "runtime/train/run/initialise.h"
#include "tests/unit/train/run/interrupted_run_test_util.h"

namespace wisp::bias_weight_release_test {
namespace {

class BiasWeightRelease : public InterruptedRun {
 protected:
  BiasWeightRelease() {
    job_ = Job();
    Architecture& a = job_.spec.architecture;
    a.head.output_bias = OutputBias::kFixed;
    start_.resize(FlatSize(ListParameters(a)));
    auto random = privacy::RandomStream::Reproducible(5, privacy::StreamPurpose::kInitialisation);
    InitialiseWeights(a, {.table_deviation = 0.3f}, random, start_);
    // Everybody chooses items with a high bias only.
    std::vector<float> bias(a.num_items);
    for (size_t i = 0; i < bias.size(); ++i) bias[i] = i < 10 ? 0.2f : -0.2f;
    for (int32_t& item : sequences_.items) item %= 10;
    SetOutputBias(a, bias, start_);
    job_.start_weights = start_;
    job_.bias_weight = {.releases = 1, .noise_multiplier = 0.02};
  }
  std::vector<privacy::LedgerEntry> Releases() {
    std::vector<privacy::LedgerEntry> entries = *ledger_.Entries();
    std::erase_if(entries, [](const auto& e) { return e.purpose != kBiasWeightPurpose; });
    return entries;
  }
  std::vector<float> Bias(std::span<const float> weights) const {
    const auto parameters = ListParameters(job_.spec.architecture);
    const ParameterSpec& p = parameters[RequireParameter(parameters, ParameterRole::kOutputBias)];
    return {weights.begin() + static_cast<std::ptrdiff_t>(p.offset),
            weights.begin() + static_cast<std::ptrdiff_t>(p.offset + p.size())};
  }
  // Expects the bias of the start, times one weight for all items, and returns that.
  float ExpectWeighed(std::span<const float> weights) const {
    const std::vector<float> before = Bias(start_), after = Bias(weights);
    const float weight = after[0] / before[0];
    for (size_t i = 0; i < after.size(); ++i) EXPECT_FLOAT_EQ(after[i], weight * before[i]);
    return weight;
  }

  TrainingJob job_;
  std::vector<float> start_;
};

TEST_F(BiasWeightRelease, ComesOnceBeforeTheFirstStep) {
  const auto run = RunTrainingJob(job_);
  ASSERT_TRUE(run.ok()) << run.status().message();
  ASSERT_EQ(Releases().size(), 1u);
  const privacy::LedgerEntry first = ledger_.Entries()->front();
  EXPECT_EQ(first.purpose, "weight of the output bias");
  EXPECT_EQ(first.run, run->run);
  const privacy::Mechanism planned = *privacy::Mechanism::Gaussian({.noise_multiplier = 0.02, .count = 1});
  EXPECT_EQ(first.mechanism, planned);
  ASSERT_EQ(run->mechanisms.size(), 2u);
  EXPECT_EQ(run->mechanisms.front(), planned) << "in the order of spending";
  const float weight = ExpectWeighed(run->weights);
  EXPECT_NE(weight, 1);
  EXPECT_TRUE(std::ranges::any_of(kBiasWeights, [&](float c) { return std::abs(c - weight) < 1e-5; })) << weight;
}

TEST_F(BiasWeightRelease, MuchNoiseLeavesTheBiasAsItIs) {
  job_.bias_weight.noise_multiplier = 1000;
  job_.spec.training.privacy.reproducible_seed = 4;
  const auto run = RunTrainingJob(job_);
  ASSERT_TRUE(run.ok()) << run.status().message();
  EXPECT_EQ(Releases().size(), 1u);
}

TEST_F(BiasWeightRelease, IsSavedBeforeTheFirstStepAndNotPaidForAgain) {
  ASSERT_EQ(RunUntil(1, job_).code(), StatusCode::kCancelled);
  const auto checkpoint = ReadCheckpoint(checkpoint_);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  const float weight = ExpectWeighed(checkpoint->weights);
  EXPECT_NE(weight, 1);
  job_.pause_after = 3;
  for (int call = 0; call < 3; ++call) {
    const auto next = RunTrainingJob(job_);
    ASSERT_TRUE(next.ok()) << next.status().message();
    EXPECT_FLOAT_EQ(ExpectWeighed(next->weights), weight);
    EXPECT_EQ(Releases().size(), 1u);
  }
}

TEST_F(BiasWeightRelease, AveragedWeightsHaveItToo) {
  job_.spec.training.ema_decay = 0.9f;
  const auto run = RunTrainingJob(job_);
  ASSERT_TRUE(run.ok()) << run.status().message();
  EXPECT_NE(ExpectWeighed(run->weights), 1);
}

TEST_F(BiasWeightRelease, LostWithItsCheckpoint_IsNotPaidForAgain) {
  ASSERT_EQ(RunUntil(2, job_).code(), StatusCode::kCancelled);
  const float weight = ExpectWeighed(ReadCheckpoint(checkpoint_)->weights);
  std::filesystem::remove(checkpoint_);
  job_.spec.training.privacy.run = "again";
  const auto again = RunTrainingJob(job_);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_NE(weight, 1);
  EXPECT_FLOAT_EQ(ExpectWeighed(again->weights), weight) << "the ledger has what was released";
  EXPECT_EQ(Releases().size(), 1u);
}

TEST_F(BiasWeightRelease, NeedsAPrivateRunAndAFixedBias) {
  const auto expect_refused = [&](const TrainingJob& job) {
    const Status refused = RunTrainingJob(job).status();
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(refused.message().find("bias"), std::string::npos) << refused.message();
  };
  TrainingJob job = job_;
  job.start_weights = {};
  expect_refused(job);
  job = job_;
  job.spec.training.method = Method::kOrdinary;
  expect_refused(job);
  for (const OutputBias other : {OutputBias::kNone, OutputBias::kTrained}) {
    job = job_;
    job.spec.architecture.head.output_bias = other;
    job.start_weights = job.start_weights.first(FlatSize(ListParameters(job.spec.architecture)));
    expect_refused(job);
  }
  EXPECT_TRUE(ledger_.Entries()->empty());
}

}  // namespace
}  // namespace wisp::bias_weight_release_test
