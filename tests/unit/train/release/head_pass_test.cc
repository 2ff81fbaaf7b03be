// The samples of a DP-FP step: each micro-batch and each step takes its own Poisson sample. The charge is that of as
// many independent subsampled Gaussians.
#include "runtime/methods/dp_fp/head_pass.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "tests/unit/layers/classifier_test_util.h"

namespace wisp::head_pass_test {
namespace {

constexpr uint32_t kRecords = 400, kMicroBatches = 4, kBatch = 320;
constexpr double kProbability = 0.2;  // kBatch / kRecords / kMicroBatches

// Pairs of samples of one record: in one step, in consecutive steps, and of all records in one micro-batch's place.
// Counts are sums of independent pairs; false alarms beyond 6 deviations have a chance of 2e-9 each.
TEST(HeadPass, MicroBatchesAndStepsAreDrawnIndependently) {
  const Architecture a = test::kTinyClassifier;
  const std::unique_ptr<Graph> graph = MakeGraph(a, kernels::BestOps(), {});
  const TrainingOptions options{.method = Method::kDpFp,
                                .sampling = Sampling::kPoisson,
                                .num_steps = 1,
                                .expected_batch = kBatch,
                                .num_records_public = kRecords,
                                .num_threads = 1,
                                .dp_fp = {.micro_batches = kMicroBatches, .clipping_norm = 1, .noise_multiplier = 1}};
  HeadPass pass(*graph, options, kRecords);
  auto sampling = *privacy::RandomStream::Secure();
  constexpr int kSteps = 300;
  double within = 0, between = 0, draws = 0;
  std::vector<double> before(kRecords, 0.0);
  for (int step = 0; step < kSteps; ++step) {
    pass.Draw(sampling, kRecords);
    std::vector<double> times(kRecords, 0.0);
    pass.ForEachDrawn([&](uint32_t record) { ++times[record]; });
    for (size_t i = 0; i < kRecords; ++i) {
      draws += times[i];
      within += times[i] * (times[i] - 1) / 2;
      between += times[i] * before[i];
    }
    before = times;
  }
  // Each of n pairs occurs with probability p^2. Pairs that share a sample are correlated, which at most doubles the
  // deviation.
  const auto expect_independent = [](double pairs, double n, const char* what) {
    const double p = kProbability * kProbability;
    EXPECT_NEAR(pairs, n * p, 6 * 2 * std::sqrt(n * p)) << what;
  };
  constexpr double kPairs = kMicroBatches * (kMicroBatches - 1) / 2.0;
  expect_independent(within, kSteps * kRecords * kPairs, "micro-batches of a step");
  expect_independent(between, (kSteps - 1) * kRecords * double{kMicroBatches} * kMicroBatches, "steps");
  const double n = double{kSteps} * kRecords * kMicroBatches;
  EXPECT_NEAR(draws, n * kProbability, 6 * std::sqrt(n * kProbability));
}

}  // namespace
}  // namespace wisp::head_pass_test
