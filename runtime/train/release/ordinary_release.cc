// Built for speed: sums over every weight of a step.

// Ordinary training on the host, and DP-FP as its paper has it, whose noise is in the records' representations. The sum
// has the layout of the weights, and the records of a pass are added with one product for each matrix.
#include <algorithm>
#include <memory>
#include <vector>

#include "runtime/gradients/sum_gradients.h"
#include "runtime/train/options.h"
#include "runtime/train/release/step_release_parts.h"

namespace wisp {
namespace {

// A sampled softmax has a release with sums of its own rows (sparse_release.cc).
constexpr size_t kNoNegatives = 0;

class OrdinaryRelease final : public StepRelease {
 public:
  OrdinaryRelease(const Graph& graph, const TrainedSet& trained, size_t num_workers)
      : graph_(&graph), trained_(&trained), sum_(graph.device(), trained.size(), num_workers) {
    for (size_t w = 0; w < num_workers; ++w) {
      gradients_.push_back(
          std::make_unique<SumGradients>(graph.device(), BatchSetupOf(graph, trained), kNoNegatives, sum_, w));
    }
  }

  Gradients GradientsOf(size_t worker) override { return *gradients_[worker]; }
  void Begin(uint64_t, std::span<const float>, const StepBatch&, privacy::RandomStream&) override { sum_.Clear(); }
  void Reduce() override { sum_.Reduce(); }

  void Update(size_t worker, privacy::RandomStream&, double divisor, const Apply& apply) override {
    const auto scale = static_cast<float>(1.0 / divisor);
    float g[kUpdateChunk];
    const auto take = [&](size_t parameter, size_t first, size_t n) {
      const float* sum = sum_.sum().data() + trained_->offset(parameter) + first;
      graph_->ops().scale({.x = sum, .y = g, .n = n, .a = scale, .store = kernels::Store::kAssign});
      apply({parameter, first, g, n});
    };
    ForEachChunk(graph_->parameters(), trained_->parameters(), worker, gradients_.size(), take);
  }

  size_t planned_bytes() const override {
    size_t bytes = sum_.size_bytes();
    for (const auto& gradients : gradients_) bytes += gradients->scratch_bytes();
    return bytes;
  }

 private:
  const Graph* graph_;
  const TrainedSet* trained_;
  FloatGradientSum sum_;
  std::vector<std::unique_ptr<SumGradients>> gradients_;
};

}  // namespace

ReleaseBytes PlanOrdinaryRelease(const Graph& graph, const TrainedSet& trained, const TrainingOptions& options) {
  const size_t workers = options.num_threads;
  return {.sums = workers * AlignedArray<float>::AllocatedBytes(trained.size()),
          .records = workers * SumGradients::PlanBytes(BatchSetupOf(graph, trained), kNoNegatives)};
}

std::unique_ptr<StepRelease> MakeOrdinaryRelease(const Graph& graph, const TrainedSet& trained,
                                                 const TrainingOptions& options) {
  return std::make_unique<OrdinaryRelease>(graph, trained, options.num_threads);
}

}  // namespace wisp
