// Shrinking undoes what noise alone did to rows of items, and keeps what the records did; training resumes from the
// unshrunk weights.
#include "runtime/train/run/shrink_rows.h"

#include <cmath>
#include <random>

#include "runtime/core/arena.h"
#include "runtime/train/run/initialise.h"
#include "tests/unit/train/run/interrupted_run_test_util.h"

namespace wisp::shrink_rows_test {
namespace {

// Adam on noise alone, of any size: the variance predicts how far it moves.
TEST(ShrinkRows, NoiseMovesAsFarAsItsVarianceSays) {
  constexpr size_t kNumbers = 20000;
  std::mt19937 random(3);
  for (const Decay decay : {Decay::kConstant, Decay::kLinear}) {
    for (const float size : {1e-4f, 3.0f}) {
      const OptimizerOptions options{.learning_rate = 0.003f, .decay = decay};
      Optimizer optimizer(kernels::Device(kernels::BestOps()), options, kNumbers);
      std::vector<float> weights(kNumbers, 0), gradient(kNumbers);
      std::normal_distribution<float> noise(0, size);
      constexpr uint64_t kSteps = 120;
      for (uint64_t step = 0; step < kSteps; ++step) {
        for (float& g : gradient) g = noise(random);
        optimizer.Update(ParameterShape::kTable, 0, gradient.data(), kNumbers,
                         LearningRate(options, static_cast<double>(step), kSteps), step, weights.data());
      }
      double moved = 0;
      for (const float w : weights) moved += static_cast<double>(w) * static_cast<double>(w) / kNumbers;
      const double ratio = moved / ComputeNoiseVariance(options, kSteps, kSteps);
      EXPECT_GT(ratio, 0.9) << size;
      EXPECT_LT(ratio, decay == Decay::kConstant ? 1.15 : 1.35) << size;
    }
  }
}

TEST(ShrinkRows, KeepsOfARowWhatIsBeyondNoise) {
  const Architecture a = UniformArchitecture{
      .num_items = 4, .max_length = 3, .width = 4, .num_heads = 1, .num_blocks = 1, .inner_width = 4};
  const auto parameters = ListParameters(a);
  std::vector<float> start(FlatSize(parameters), 1.0f), weights = start;
  for (float& w : weights) w += 0.5f;
  const size_t table = parameters[RequireParameter(parameters, ParameterRole::kItemTable)].offset;
  for (size_t i = 0; i < 4; ++i) {
    weights[table + i] = 1.0f;       // row 0 did not move
    weights[table + 4 + i] = 1.1f;   // row 1: 4 * 0.01 is less than noise makes
    weights[table + 8 + i] = -2.0f;  // row 2: 36, of which 4 * 0.25 is noise
  }
  const std::vector<float> before = weights;
  ShrinkRows(a, start, 0.25, weights);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(weights[table + i], 1.0f);
    EXPECT_EQ(weights[table + 4 + i], 1.0f);
    EXPECT_FLOAT_EQ(weights[table + 8 + i], 1 - 3 * (1 - 1.0f / 36));
    EXPECT_EQ(weights[table + 12 + i], 1.0f) << "row 3: 4 * 0.25 is exactly noise";
  }
  for (size_t i = table + 16; i < weights.size(); ++i) EXPECT_EQ(weights[i], before[i]) << "no row of an item";
}

// A row of an item that nobody chose is reset, and a run that pauses resumes from what was learned.
class ShrunkRun : public InterruptedRun {
 protected:
  ShrunkRun() {
    for (int i = 20; i < 40; ++i) sequences_.item_keys.push_back(std::to_string(i));
    job_ = Job();
    job_.spec.architecture = UniformArchitecture{
        .num_items = 40, .max_length = 8, .width = 8, .num_heads = 1, .num_blocks = 1, .inner_width = 8};
    job_.spec.training.privacy.reproducible_seed = 7;
    start_.resize(FlatSize(ListParameters(job_.spec.architecture)));
    auto random = privacy::RandomStream::Reproducible(5, privacy::StreamPurpose::kInitialisation);
    InitialiseWeights(job_.spec.architecture, {}, random, start_);
    job_.start_weights = start_;
  }
  TrainingJob job_;
  std::vector<float> start_;
};

TEST_F(ShrunkRun, PausesAndResumesFromWhatWasLearned) {
  const auto plain = RunTrainingJob(job_);
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  std::vector<float> expected = plain->weights;
  ShrinkRows(job_.spec.architecture, start_, ComputeNoiseVariance(plain->options.optimizer, 8, 8), expected);
  EXPECT_NE(expected, plain->weights);
  job_.pause_after = 3;
  TrainingJob as_it_is = job_;
  as_it_is.checkpoint_path += ".other";
  std::vector<float> first = RunTrainingJob(as_it_is)->weights;
  ShrinkRows(job_.spec.architecture, start_, ComputeNoiseVariance(plain->options.optimizer, 3, 8), first);
  job_.shrink_rows = true;
  for (int call = 0; call < 2; ++call) {
    const auto paused = RunTrainingJob(job_);
    ASSERT_TRUE(paused.ok() && paused->paused);
    if (call == 0) {
      EXPECT_EQ(paused->weights, first);
    }
  }
  const auto last = RunTrainingJob(job_);
  ASSERT_TRUE(last.ok()) << last.status().message();
  EXPECT_EQ(last->weights, expected);
}

TEST_F(ShrunkRun, NeedsAPrivateRunWithAdamFromAModel) {
  job_.shrink_rows = true;
  TrainingJob without = job_;
  without.start_weights = {};
  EXPECT_EQ(RunTrainingJob(without).status().code(), StatusCode::kInvalidArgument);
  without = job_;
  without.spec.training.optimizer.kind = OptimizerKind::kSgd;
  EXPECT_EQ(RunTrainingJob(without).status().code(), StatusCode::kInvalidArgument);
  without = job_;
  without.spec.training.method = Method::kOrdinary;
  EXPECT_EQ(RunTrainingJob(without).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Charged(), 0u);
}

}  // namespace
}  // namespace wisp::shrink_rows_test
