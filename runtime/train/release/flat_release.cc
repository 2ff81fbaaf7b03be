// Built for speed: noise and sums over every weight of a step.

// Ordinary training and DP-SGD by Phantom Clipping: the sum has the layout of the weights.
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
      : graph_(&graph), trained_(&trained), num_workers_(options.num_threads) {
    const size_t size = trained.size();
    PhantomOptions phantom = Phantom(options);
    GradientSum* sum;
    if (!IsPrivate(options)) {
      float_sum_ = std::make_unique<FloatGradientSum>(graph.device(), size, num_workers_);
      sum = float_sum_.get();
    } else {
      grid_.emplace(MakeGrid(options, trained.num_coordinates()));
      grid_sum_ = std::make_unique<GridGradientSum>(graph.device(), size, SumGrid(*grid_));
      sum = grid_sum_.get();
      sigma_ = grid_->sigma_in_steps(options.privacy.noise_multiplier);
      phantom.clip = ClipOnGrid(options.privacy.clipping, *grid_);
    }
    for (size_t w = 0; w < num_workers_ && MultipliesIntegers(graph.architecture(), options); ++w) {
      integers_.push_back(
          std::make_unique<IntegerGradients>(graph.device(), IntegerSetupOf(graph, trained), phantom.clip, *grid_sum_));
    }
    for (size_t w = 0; w < num_workers_ && integers_.empty(); ++w) {
      gradients_.push_back(
          std::make_unique<PhantomGradients>(graph.device(), SetupOf(graph, trained, w), phantom, *sum));
    }
  }

  static PhantomOptions Phantom(const TrainingOptions& options) { return {.form = options.privacy.norm_form}; }
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
  void Begin(uint64_t, std::span<const float>, const StepBatch&, privacy::RandomStream&) override {
    grid_ ? grid_sum_->Clear() : float_sum_->Clear();
  }
  void Reduce() override {
    if (!grid_) float_sum_->Reduce();
  }

  void Update(size_t worker, privacy::RandomStream& noise, double divisor, const Apply& apply) override {
    const float scale = static_cast<float>(grid_ ? grid_->Scale(divisor) : 1.0 / divisor);
    float g[kUpdateChunk];
    const auto take = [&](size_t parameter, size_t first, size_t n) {
      const size_t offset = trained_->offset(parameter) + first;
      if (grid_) {
        NoiseAndScale(grid_sum_->sum().subspan(offset, n), sigma_, scale, noise, g);
      } else {
        graph_->ops().scale(
            {.x = float_sum_->sum().data() + offset, .y = g, .n = n, .a = scale, .store = kernels::Store::kAssign});
      }
      apply({parameter, first, g, n});
    };
    ForEachChunk(graph_->parameters(), trained_->parameters(), worker, num_workers_, take);
  }

  size_t planned_bytes() const override {
    size_t bytes = grid_ ? grid_sum_->size_bytes() : float_sum_->size_bytes();
    for (const auto& gradients : gradients_) bytes += gradients->scratch_bytes();
    for (const auto& gradients : integers_) bytes += gradients->scratch_bytes();
    return bytes;
  }

 private:
  const Graph* graph_;
  const TrainedSet* trained_;
  size_t num_workers_;
  std::optional<privacy::ExactGrid> grid_;  // private
  uint64_t sigma_ = 0;
  std::unique_ptr<FloatGradientSum> float_sum_;
  std::unique_ptr<GridGradientSum> grid_sum_;
  std::vector<std::unique_ptr<PhantomGradients>> gradients_;
  std::vector<std::unique_ptr<IntegerGradients>> integers_;  // in place of those
};

}  // namespace

ReleaseBytes PlanFlatRelease(const Graph& graph, const TrainedSet& trained, const TrainingOptions& options) {
  const size_t size = trained.size(), workers = options.num_threads;
  if (MultipliesIntegers(graph.architecture(), options)) {
    return {.sums = AlignedArray<int64_t>::AllocatedBytes(size),
            .records = workers * IntegerGradients::PlanBytes(FlatRelease::IntegerSetupOf(graph, trained))};
  }
  return {.sums = IsPrivate(options) ? AlignedArray<int64_t>::AllocatedBytes(size)
                                     : workers * AlignedArray<float>::AllocatedBytes(size),
          .records = workers * PhantomGradients::PlanBytes(graph.ops(), FlatRelease::SetupOf(graph, trained, 0),
                                                           FlatRelease::Phantom(options))};
}

std::unique_ptr<StepRelease> MakeFlatRelease(const Graph& graph, const TrainedSet& trained,
                                             const TrainingOptions& options) {
  return std::make_unique<FlatRelease>(graph, trained, options);
}

}  // namespace wisp
