// The noise of a step on a device is drawn while the device computes, not after it.
#include <gtest/gtest.h>

#include "runtime/train/gradient_step.h"
#include "tests/unit/train/cuda/cuda_train_test_util.h"

namespace wisp::noise_order_test {
namespace {

// The stream of the only worker, and its position each time that the host is about to wait for the norms of a pass.
const privacy::RandomStream* g_noise = nullptr;
std::vector<uint64_t> g_at_waits;

// The device's ops, which note these positions.
const kernels::OpTable& WatchedOps() {
  static const kernels::OpTable kOps = [] {
    kernels::OpTable ops = kernels::cuda::Ops();
    ops.squares_of_rows = [](const kernels::SquaresOfRowsArgs<>& a) {
      if (g_noise != nullptr) g_at_waits.push_back(g_noise->position());
      kernels::cuda::Ops().squares_of_rows(a);
    };
    return ops;
  }();
  return kOps;
}

class CudaNoiseOrder : public test::CudaTraining {
 protected:
  // Takes a step with one thread. Returns the noise's positions at the waits, and last the one after the step.
  std::vector<uint64_t> StepPositions(uint32_t rows_at_once) {
    TrainingOptions o = OnDevice(Private(), {WatchedOps(), kernels::Memory(kernels::cuda::DeviceMemory(), nullptr)});
    o.num_threads = 1;
    o.rows_at_once = rows_at_once;
    const std::unique_ptr<Graph> graph = MakeGraph(kSmall, o.device, GraphFor(kSmall, o));
    const TrainedSet trained = TrainedBy(graph->parameters(), o);
    Workers workers(1);
    HeldWeights weights(*graph, trained, start_, std::vector<uint8_t>(graph->parameters().size(), 1), o);
    StepContext context{.graph = *graph,
                        .trained = trained,
                        .options = o,
                        .records = ring_.records,
                        .workers = workers,
                        .weights = weights,
                        .num_callers = 1};
    context.of_workers.push_back(
        {graph->AllocateForTraining(), privacy::RandomStream::Reproducible(9, privacy::StreamPurpose::kNoise)});
    GradientStep step(context, start_);
    auto sampling = privacy::RandomStream::Reproducible(9, privacy::StreamPurpose::kSampling);
    step.Draw(sampling);
    context.Pack();
    g_at_waits.clear();
    g_noise = &context.GetNoise(0);
    StepReport report;
    const Status status = step.Run(report);
    g_noise = nullptr;
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_GT(report.num_records, 6u);
    std::vector<uint64_t> positions = g_at_waits;
    positions.push_back(context.GetNoise(0).position());
    return positions;
  }
};

TEST_F(CudaNoiseOrder, OnePass_allIsDrawnBeforeTheWait) {
  const std::vector<uint64_t> at = StepPositions(0);
  ASSERT_EQ(at.size(), 2u) << "all records pass at once";
  EXPECT_GT(at[0], 0u);
  EXPECT_EQ(at[0], at[1]);
}

TEST_F(CudaNoiseOrder, SeveralPasses_eachHidesItsShare) {
  const std::vector<uint64_t> at = StepPositions(kSmall.max_length);
  ASSERT_GT(at.size(), 7u);
  const size_t passes = at.size() - 1;
  EXPECT_EQ(at[passes - 1], at.back()) << "nothing is left after the last pass";
  EXPECT_LT(at[0], at.back() / 2) << "one pass does not wait for all noise";
  EXPECT_GT(at[passes / 2], at.back() / 4);
}

}  // namespace
}  // namespace wisp::noise_order_test
