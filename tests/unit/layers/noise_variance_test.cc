// The variance that a private run's noise leaves in the weights, for Re-Attention: against many runs, and as the paper
// prints it.
#include "runtime/methods/re_attention/noise_variance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>

#include "runtime/train/trainer.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/gradients/gradient_test_util.h"
#include "tests/unit/layers/parameter_names.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::noise_variance_test {
namespace {

// If only noise moves the weights, their variance over runs equals the estimate.
TEST(NoiseVariance, EqualsTheVarianceOverSeedsWhereOnlyNoiseMovesTheWeights) {
  const UniformArchitecture a{.num_items = 40,
                              .max_length = 2,
                              .width = 8,
                              .num_blocks = 0,
                              .inner_width = 1,
                              .re_attention = ReAttention::kOn};
  const auto parameters = ListParameters(a);
  const double s = 0.003;
  const uint64_t steps = 150;
  for (OptimizerOptions o : {OptimizerOptions{.learning_rate = 0.02f, .decay = Decay::kLinear},
                             OptimizerOptions{.kind = OptimizerKind::kSgd, .learning_rate = 0.5f, .momentum = 0.8f}}) {
    std::mt19937 random(3);
    std::normal_distribution<float> noise(0, static_cast<float>(s));
    std::vector<float> weights(FlatSize(parameters), 0.0f), g(parameters[0].size());
    const TrainedSet trained = test::AllTrained(parameters);
    Optimizer optimizer(kernels::BestOps(), o, trained.size());
    const NoiseVariance variance(a, trained, {}, s);
    for (uint64_t step = 0; step < steps; ++step) {
      const float rate = LearningRate(o, step, steps);
      for (float& x : g) x = noise(random);
      optimizer.Update(parameters[0].shape, 0, g.data(), g.size(), rate, step, weights.data());
      variance.Add({.optimizer = optimizer, .rate = rate, .step = step}, 0, 1, weights);
    }
    double left = 0, estimated = 0;
    for (size_t i = 0; i < g.size(); ++i) left += std::pow(weights[i], 2) / double(g.size());
    const ParameterSpec& items = parameters[test::FindIndex(parameters, test::kItemVariance)];
    for (size_t i = 0; i < a.num_items; ++i) estimated += weights[items.offset + i] / double(a.num_items);
    std::printf("left %.3g, estimated %.3g\n", left, estimated);
    // 320 coordinates give a deviation of 8 percent; Adam's first steps add some more.
    EXPECT_NEAR(estimated / left, 1, 0.3);
  }
}

// A step of DP-AdaFEST may select no row; then noise reached none of the rows.
TEST(NoiseVariance, RowsThatNoStepChangedHaveNone) {
  const UniformArchitecture a{
      .num_items = 4, .max_length = 2, .width = 2, .num_blocks = 0, .inner_width = 1, .re_attention = ReAttention::kOn};
  const auto parameters = ListParameters(a);
  const TrainedSet trained = test::AllTrained(parameters);
  const Optimizer optimizer(kernels::BestOps(), {.kind = OptimizerKind::kSgd}, trained.size());
  const NoiseVariance variance(a, trained, {}, 0.1);
  const ParameterSpec& items = parameters[test::FindIndex(parameters, test::kItemVariance)];
  const int32_t second[] = {1};
  for (const std::span<const int32_t> rows : {std::span<const int32_t>(), std::span<const int32_t>(second)}) {
    std::vector<float> weights(FlatSize(parameters), 0.0f);
    variance.Add({.optimizer = optimizer, .rate = 0.5f, .step = 0, .item_rows = ItemRows{rows}}, 0, 1, weights);
    for (size_t i = 0; i < a.num_items; ++i)
      EXPECT_EQ(weights[items.offset + i] > 0, i == 1 && !rows.empty()) << i << " of " << rows.size();
  }
}

TEST(NoiseVariance, PrintedDeviationsAreThePapers) {
  const UniformArchitecture a{
      .num_items = 4, .max_length = 2, .width = 2, .num_blocks = 0, .inner_width = 1, .re_attention = ReAttention::kOn};
  const auto parameters = ListParameters(a);
  const std::vector<float> p = {1.0f, 0.5f, 0.25f, 0.125f};
  const ReAttentionOptions options{.source = ReAttentionOptions::Source::kPrinted, .scale = 2, .item_frequencies = p};
  ASSERT_TRUE(Validate(options, a).ok());
  std::vector<float> weights(FlatSize(parameters), 0.0f);
  NoiseVariance(a, test::AllTrained(parameters), options, 0.1).Initialise(weights);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(weights[parameters[test::FindIndex(parameters, test::kItemVariance)].offset + i],
                std::pow(0.2 / p[i], 2), 1e-5);
  EXPECT_NEAR(weights[parameters[test::FindIndex(parameters, test::kParameterVariance)].offset + 1], 0.04, 1e-6);
  EXPECT_FALSE(Validate({.source = ReAttentionOptions::Source::kPrinted}, a).ok());
  const std::vector<float> zero = {1.0f, 0.0f, 1.0f, 1.0f};
  EXPECT_NE(
      Validate({.source = ReAttentionOptions::Source::kPrinted, .item_frequencies = zero}, a).message().find("item 1"),
      std::string::npos);
}

// Whole private runs that differ only in noise and batches: their variance is compared with the estimate that the last
// one stored. Adam, linear decay; matrices, positions, rows of rare and of frequent items.
TEST(NoiseVariance, AgreesWithTheVarianceOverSeedsOfPrivateRuns) {
  const UniformArchitecture a{.num_items = 40,
                              .max_length = 10,
                              .width = 16,
                              .num_heads = 2,
                              .num_blocks = 2,
                              .inner_width = 16,
                              .embedding_scale = 8,
                              .re_attention = ReAttention::kOn};
  const test::Ring ring(30, 400, 10);  // items 30 to 39 never occur
  const auto parameters = ListParameters(a);
  const std::vector<float> start = test::StartWeights(a, {.table_deviation = 0.02f, .matrix_gain = 0.3f});
  const test::TemporaryFolder folder;
  auto ledger = privacy::Ledger::Open(folder / "l", {.dataset = "ring", .record = privacy::RecordSpec::OfEvents({})});
  ASSERT_TRUE(ledger.ok());
  const size_t runs = 12, steps = 60;
  std::vector<double> sum(start.size(), 0.0), squares(start.size(), 0.0);
  std::vector<float> stored;
  for (size_t run = 0; run < runs; ++run) {
    TrainingOptions o{.method = Method::kPhantom,
                      .sampling = Sampling::kPoisson,
                      .num_steps = steps,
                      .expected_batch = 200,
                      .num_records_public = 400,
                      .optimizer = {.learning_rate = 0.02f, .decay = Decay::kLinear},
                      .seed = 5,
                      .num_threads = 2,
                      .privacy = {.noise_multiplier = 4,
                                  .ledger = &*ledger,
                                  .run = "v",
                                  .steps_per_charge = steps,
                                  .reproducible_seed = 100 + run}};
    auto trainer = *Trainer::Create(a, start, ring.records, o);
    for (size_t i = 0; i < steps; ++i) ASSERT_TRUE(trainer->Step().ok());
    stored.assign(trainer->weights().begin(), trainer->weights().end());
    for (size_t i = 0; i < stored.size(); ++i) sum[i] += stored[i], squares[i] += double(stored[i]) * stored[i];
  }
  const auto measured = [&](size_t offset, size_t n) {
    double variance = 0;
    for (size_t i = offset; i < offset + n; ++i)
      variance += (squares[i] - sum[i] * sum[i] / runs) / (runs - 1) / double(n);
    return variance;
  };
  const float* of_parameter = stored.data() + parameters[test::FindIndex(parameters, test::kParameterVariance)].offset;
  const float* of_item = stored.data() + parameters[test::FindIndex(parameters, test::kItemVariance)].offset;
  const auto compare = [&](const std::string& what, double estimate, double variance, double least = 0.6) {
    std::printf("%-34s estimated %.3g, over seeds %.3g, ratio %.2f\n", what.c_str(), estimate, variance,
                estimate / variance);
    EXPECT_GT(estimate, least * variance) << what;
    EXPECT_LT(estimate, 2.0 * variance) << what;  // the loss pulls some of it back, which the estimate does not count
  };
  for (const auto& [what, first, last] :
       {std::tuple{"items that occur", size_t{0}, size_t{30}}, {"items that never occur", size_t{30}, size_t{40}}}) {
    double estimate = 0;
    for (size_t i = first; i < last; ++i) estimate += of_item[i] / double(last - first);
    // Learned rows differ between runs by more than their noise: early noise decides which of many solutions is
    // learned.
    compare(what, estimate, measured(first * a.width, (last - first) * a.width), first == 0 ? 0.3 : 0.6);
  }
  for (size_t i = 1; i < parameters.size(); ++i) {
    if (parameters[i].shape != ParameterShape::kMatrix) continue;
    compare(parameters[i].name, of_parameter[i], measured(parameters[i].offset, parameters[i].size()));
  }
}

}  // namespace
}  // namespace wisp::noise_variance_test
