// Ordinary training and DP-SGD in a device's memory: the sum, the noise and the gradient lie there; the host draws the
// noise, and sees neither of the others.
#include <algorithm>
#include <vector>

#include "runtime/gradients/formed_gradients.h"
#include "runtime/gradients/sum_gradients.h"
#include "runtime/privacy/noise/discrete_gaussian.h"
#include "runtime/train/options.h"
#include "runtime/train/release/step_release_parts.h"

namespace wisp {
namespace {

BatchGradients::Setup SetupOf(const Graph& graph, const TrainedSet& trained) {
  return {.parameters = graph.parameters(),
          .trained = trained,
          .max_records = graph.max_records(),
          .norms_head_rows = graph.architecture().head.temperature > 0};
}

class OrdinaryDeviceRelease final : public StepRelease {
 public:
  OrdinaryDeviceRelease(const Graph& graph, const TrainedSet& trained)
      : graph_(&graph),
        trained_(&trained),
        sum_(graph.device(), trained.size(), 1),
        gradients_(graph.device(), SetupOf(graph, trained), sum_) {}

  Gradients GradientsOf(size_t) override { return gradients_; }
  void Begin(uint64_t, std::span<const float>, const StepBatch&, privacy::RandomStream&) override { sum_.Clear(); }
  void Update(size_t worker, privacy::RandomStream&, double divisor, const Apply& apply) override {
    if (worker > 0) return;
    float* g = sum_.data(0);
    const auto scale = static_cast<float>(1.0 / divisor);
    graph_->ops().scale({.x = g, .y = g, .n = trained_->size(), .a = scale, .store = kernels::Store::kAssign});
    for (uint32_t i : trained_->parameters()) apply(i, 0, g + trained_->offset(i), graph_->parameters()[i].size());
  }
  size_t planned_bytes() const override { return sum_.size_bytes() + gradients_.scratch_bytes(); }

 private:
  const Graph* graph_;
  const TrainedSet* trained_;
  FloatGradientSum sum_;
  SumGradients gradients_;
};

class PrivateDeviceRelease final : public StepRelease {
 public:
  PrivateDeviceRelease(const Graph& graph, const TrainedSet& trained, const TrainingOptions& options)
      : graph_(&graph),
        trained_(&trained),
        num_workers_(options.num_threads),
        grid_(MakeGrid(options, trained.num_coordinates())),
        sigma_(grid_.sigma_in_steps(options.privacy.noise_multiplier)),
        sum_(graph.device(), trained.size(), SumGrid(grid_)),
        gradients_(graph.device(), SetupOf(graph, trained), ClipOnGrid(options.privacy.clipping, grid_), sum_),
        drawn_(trained.size()),
        noise_(trained.size(), graph.device().memory),
        gradient_(trained.size(), graph.device().memory) {}

  Gradients GradientsOf(size_t) override { return gradients_; }
  void Begin(uint64_t, std::span<const float>, const StepBatch&, privacy::RandomStream&) override { sum_.Clear(); }

  // The integers that the host's release would add with as many threads: drawn in the same pieces. Coordinates that
  // belong to no parameter stay 0.
  void DrawNoise(size_t worker, privacy::RandomStream& noise) override {
    const auto draw = [&](size_t parameter, size_t first, size_t n) {
      int64_t* drawn = drawn_.data() + trained_->offset(parameter) + first;
      std::fill_n(drawn, n, 0);
      privacy::AddDiscreteGaussian(noise, sigma_, {drawn, n});
    };
    ForEachChunk(graph_->parameters(), trained_->parameters(), worker, num_workers_, draw);
  }
  void Prepare() override {
    graph_->device().memory.copy_in(noise_.data(), drawn_.data(), drawn_.size() * sizeof(int64_t));
  }

  void Update(size_t worker, privacy::RandomStream&, double divisor, const Apply& apply) override {
    if (worker > 0) return;
    graph_->ops().noised_sum({.sum = sum_.sum().data(),
                              .noise = noise_.data(),
                              .y = gradient_.data(),
                              .n = trained_->size(),
                              .scale = static_cast<float>(grid_.Scale(divisor))});
    for (uint32_t i : trained_->parameters())
      apply(i, 0, gradient_.data() + trained_->offset(i), graph_->parameters()[i].size());
    Forget();
  }

  size_t planned_bytes() const override {
    return sum_.size_bytes() + gradients_.scratch_bytes() + drawn_.allocated_bytes() + noise_.allocated_bytes() +
           gradient_.allocated_bytes();
  }

 private:
  // Whoever read the noise, here or there, would have the exact sum of the step.
  void Forget() {
    std::fill_n(drawn_.data(), drawn_.size(), 0);
    graph_->ops().clear({.y = noise_.data(), .bytes = noise_.size() * sizeof(int64_t)});
    sum_.Clear();
    gradients_.Forget();
  }

  const Graph* graph_;
  const TrainedSet* trained_;
  size_t num_workers_;
  privacy::ExactGrid grid_;
  uint64_t sigma_;
  GridGradientSum sum_;
  FormedGradients gradients_;
  AlignedArray<int64_t> drawn_;  // in the host's memory
  AlignedArray<int64_t> noise_;  // the same in the device's
  AlignedArray<float> gradient_;
};

}  // namespace

ReleaseBytes PlanDeviceRelease(const Graph& graph, const TrainedSet& trained, const TrainingOptions& options) {
  const size_t floats = AlignedArray<float>::AllocatedBytes(trained.size());
  if (!IsPrivate(options)) return {.sums = floats, .records = SumGradients::PlanBytes(SetupOf(graph, trained))};
  return {.sums = floats + 3 * AlignedArray<int64_t>::AllocatedBytes(trained.size()),
          .records = FormedGradients::PlanBytes(SetupOf(graph, trained))};
}

std::unique_ptr<StepRelease> MakeDeviceRelease(const Graph& graph, const TrainedSet& trained,
                                               const TrainingOptions& options) {
  if (!IsPrivate(options)) return std::make_unique<OrdinaryDeviceRelease>(graph, trained);
  return std::make_unique<PrivateDeviceRelease>(graph, trained, options);
}

}  // namespace wisp
