// Shrinking undoes what noise alone did to rows of items, and keeps what the records did; training resumes from the
// unshrunk weights.
#include "runtime/train/run/shrink_changes.h"

#include <cmath>
#include <numeric>
#include <random>

#include "runtime/core/arena.h"
#include "runtime/train/run/initialise.h"
#include "tests/unit/train/run/interrupted_run_test_util.h"

namespace wisp::shrink_changes_test {
namespace {

// Adam on noise alone, of any size: the variance predicts how far it moves.
TEST(Noise, MovesAsFarAsItsVarianceSays) {
  constexpr size_t kNumbers = 20000;
  constexpr uint64_t kPlanned = 120;
  std::mt19937 random(3);
  for (const Decay decay : {Decay::kConstant, Decay::kLinear}) {
    for (const auto& [size, steps] : {std::pair<float, uint64_t>{1e-4f, 120}, {3.0f, 120}, {3.0f, 1}, {3.0f, 10}}) {
      const OptimizerOptions options{.learning_rate = 0.003f, .decay = decay};
      Optimizer optimizer(kernels::Device(kernels::BestOps()), options, kNumbers);
      std::vector<float> weights(kNumbers, 0), gradient(kNumbers);
      std::normal_distribution<float> noise(0, size);
      for (uint64_t step = 0; step < steps; ++step) {
        for (float& g : gradient) g = noise(random);
        optimizer.Update(ParameterShape::kTable, 0, gradient.data(), kNumbers,
                         LearningRate(options, static_cast<double>(step), kPlanned), step, weights.data());
      }
      double moved = 0;
      for (const float w : weights) moved += static_cast<double>(w) * static_cast<double>(w) / kNumbers;
      const double ratio = moved / ComputeNoiseVariance(options, steps, kPlanned);
      EXPECT_NEAR(ratio, 1, 0.06) << size << " after " << steps;
    }
  }
}

class Changes : public ::testing::Test {
 protected:
  static constexpr uint32_t kItems = 50, kWidth = 8;
  Changes() : start_(FlatSize(parameters_), 1.0f), weights_(start_) {}
  std::span<float> Of(ParameterRole role) {
    const ParameterSpec& p = parameters_[RequireParameter(parameters_, role)];
    return std::span(weights_).subspan(p.offset, p.size());
  }
  std::span<float> Row(size_t item) { return Of(ParameterRole::kItemTable).subspan(item * kWidth, kWidth); }
  static void Set(std::span<float> group, float value) { std::fill(group.begin(), group.end(), value); }
  static void ExpectAll(std::span<const float> group, float value) {
    for (const float w : group) EXPECT_FLOAT_EQ(w, value);
  }

  const Architecture a_ = UniformArchitecture{
      .num_items = kItems, .max_length = 3, .width = kWidth, .num_heads = 1, .num_blocks = 1, .inner_width = 4};
  const std::vector<ParameterSpec> parameters_ = ListParameters(a_);
  std::vector<float> start_, weights_;
};

TEST_F(Changes, AreShrunkByWhatNoiseMakesOfThem) {
  Set(Row(1), 1.4f);   // 0.16 a number is less than noise makes
  Set(Row(2), 1.6f);   // 0.36 is more than noise makes in the mean, and not more than of one row in 50
  Set(Row(3), -2.0f);  // 9, of which 0.25 is noise
  Set(Of(ParameterRole::kPositionTable), 1.5f);  // exactly noise
  Set(Of(ParameterRole::kFinalNormGain), 2.0f);  // 1, of which 0.25 is noise
  ShrinkChanges(a_, start_, 0.25, weights_);
  ExpectAll(Row(0), 1.0f);
  ExpectAll(Row(1), 1.0f);
  ExpectAll(Row(2), 1.0f);
  ExpectAll(Row(3), 1 - 3 * (1 - 0.25f / 9));
  ExpectAll(Row(4), 1.0f);
  ExpectAll(Of(ParameterRole::kPositionTable), 1.0f);
  ExpectAll(Of(ParameterRole::kFinalNormGain), 1.75f);
}

// A thousand rows of noise: about one is kept.
TEST_F(Changes, OfRowsOfNoiseAboutOneIsKept) {
  const Architecture a = UniformArchitecture{
      .num_items = 1000, .max_length = 3, .width = kWidth, .num_heads = 1, .num_blocks = 1, .inner_width = 4};
  const auto parameters = ListParameters(a);
  const ParameterSpec& table = parameters[RequireParameter(parameters, ParameterRole::kItemTable)];
  const std::vector<float> start(FlatSize(parameters), 0.0f);
  std::vector<int32_t> items(table.rows);
  std::iota(items.begin(), items.end(), 0);
  std::mt19937 random(2);
  std::normal_distribution<float> noise(0, 0.5f);
  double shrunk = 0, restored = 0;
  constexpr int kRounds = 40;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<float> moved = start;
    for (size_t i = 0; i < table.size(); ++i) moved[table.offset + i] = noise(random);
    std::vector<float> other = moved;
    ShrinkChanges(a, start, 0.25, moved);
    RestoreRows(a, start, items, 0.25, other);
    for (size_t r = 0; r < table.rows; ++r) {
      shrunk += moved[table.offset + r * kWidth] != 0;
      restored += other[table.offset + r * kWidth] != 0;
    }
  }
  EXPECT_NEAR(shrunk / kRounds, 1, 0.8) << "five standard deviations";
  EXPECT_EQ(restored, shrunk);
}

TEST_F(Changes, RowsOfTheseItemsThatNoiseMovedAreRestored) {
  for (size_t item = 0; item < 4; ++item) Set(Row(item), 1.5f);
  Set(Row(1), 3.0f);
  Set(Of(ParameterRole::kPositionTable), 1.5f);
  RestoreRows(a_, start_, std::vector<int32_t>{1, 2}, 0.25, weights_);
  ExpectAll(Row(0), 1.5f);
  ExpectAll(Row(1), 3.0f);
  ExpectAll(Row(2), 1.0f);
  ExpectAll(Row(3), 1.5f);
  ExpectAll(Of(ParameterRole::kPositionTable), 1.5f);
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
  ShrinkChanges(job_.spec.architecture, start_, ComputeNoiseVariance(plain->options.optimizer, 8, 8), expected);
  EXPECT_NE(expected, plain->weights);
  job_.pause_after = 3;
  TrainingJob as_it_is = job_;
  as_it_is.checkpoint_path += ".other";
  std::vector<float> first = RunTrainingJob(as_it_is)->weights;
  ShrinkChanges(job_.spec.architecture, start_, ComputeNoiseVariance(plain->options.optimizer, 3, 8), first);
  job_.shrink_changes = true;
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
  job_.shrink_changes = true;
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
}  // namespace wisp::shrink_changes_test
