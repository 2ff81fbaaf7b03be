// Built for speed: noise and sums over every weight of a step.

// DP-SGD by Phantom Clipping: the sum has the layout of the weights.
#include <algorithm>
#include <vector>

#include "runtime/gradients/integer_gradients.h"
#include "runtime/gradients/phantom_gradients.h"
#include "runtime/privacy/noise/discrete_gaussian.h"
#include "runtime/train/options.h"
#include "runtime/train/release/step_release_parts.h"

namespace wisp {
namespace {

class FlatRelease final : public StepRelease {
 public:
  FlatRelease(const Graph& graph, const TrainedSet& trained, const TrainingOptions& options)
      : graph_(&graph),
        trained_(&trained),
        num_workers_(options.num_threads),
        grid_(MakeGrid(options, trained.num_coordinates())),
        sigma_(grid_.sigma_in_steps(options.privacy.noise_multiplier)),
        sum_(graph.device(), trained.size(), SumGrid(grid_)) {
    PhantomOptions phantom = Phantom(options);
    phantom.clip = ClipOnGrid(options.privacy.clipping, grid_);
    for (size_t w = 0; w < num_workers_ && MultipliesIntegers(graph.architecture(), options); ++w) {
      integers_.push_back(
          std::make_unique<IntegerGradients>(graph.device(), IntegerSetupOf(graph, trained), phantom.clip, sum_));
    }
    for (size_t w = 0; w < num_workers_ && integers_.empty(); ++w) {
      gradients_.push_back(
          std::make_unique<PhantomGradients>(graph.device(), SetupOf(graph, trained, w), phantom, sum_));
    }
  }

  // The Gram form keeps factors of all blocks.
  static PhantomOptions Phantom(const TrainingOptions& options) {
    return {.form = options.recompute_blocks ? NormForm::kFormed : options.privacy.norm_form};
  }
  static PhantomGradients::Setup SetupOf(const Graph& graph, const TrainedSet& trained, size_t worker) {
    return {.parameters = graph.parameters(),
            .trained = trained,
            .head_parameter = graph.head_parameter(),
            .max_rows = graph.max_record_rows(),
            .worker = worker,
            .norms_head_rows = graph.architecture().head.temperature > 0};
  }

  static IntegerGradients::Setup IntegerSetupOf(const Graph& graph, const TrainedSet& trained) {
    return {.parameters = graph.parameters(),
            .trained = trained,
            .max_records = graph.max_records(),
            .max_rows = graph.max_rows()};
  }

  Gradients GradientsOf(size_t worker) override {
    if (!integers_.empty()) return *integers_[worker];
    return *gradients_[worker];
  }
  void Begin(uint64_t, std::span<const float>, const StepBatch&, privacy::RandomStream&) override { sum_.Clear(); }

  void Update(size_t worker, privacy::RandomStream& noise, double divisor, const Apply& apply) override {
    const auto scale = static_cast<float>(grid_.Scale(divisor));
    float g[kUpdateChunk];
    const auto take = [&](size_t parameter, size_t first, size_t n) {
      NoiseAndScale(sum_.sum().subspan(trained_->offset(parameter) + first, n), sigma_, scale, noise, g);
      apply({parameter, first, g, n});
    };
    ForEachChunk(graph_->parameters(), trained_->parameters(), worker, num_workers_, take);
  }

  size_t planned_bytes() const override {
    size_t bytes = sum_.size_bytes();
    for (const auto& gradients : gradients_) bytes += gradients->scratch_bytes();
    for (const auto& gradients : integers_) bytes += gradients->scratch_bytes();
    return bytes;
  }

 private:
  const Graph* graph_;
  const TrainedSet* trained_;
  size_t num_workers_;
  privacy::ExactGrid grid_;
  uint64_t sigma_;
  GridGradientSum sum_;
  std::vector<std::unique_ptr<PhantomGradients>> gradients_;
  std::vector<std::unique_ptr<IntegerGradients>> integers_;  // used in place of the formed gradients
};

}  // namespace

ReleaseBytes PlanFlatRelease(const Graph& graph, const TrainedSet& trained, const TrainingOptions& options) {
  const size_t workers = options.num_threads;
  const bool integers = MultipliesIntegers(graph.architecture(), options);
  const size_t each = integers ? IntegerGradients::PlanBytes(FlatRelease::IntegerSetupOf(graph, trained))
                               : PhantomGradients::PlanBytes(graph.ops(), FlatRelease::SetupOf(graph, trained, 0),
                                                             FlatRelease::Phantom(options));
  return {.sums = AlignedArray<int64_t>::AllocatedBytes(trained.size()), .records = workers * each};
}

std::unique_ptr<StepRelease> MakeFlatRelease(const Graph& graph, const TrainedSet& trained,
                                             const TrainingOptions& options) {
  return std::make_unique<FlatRelease>(graph, trained, options);
}

}  // namespace wisp
