// Ordinary training and DP-SGD in a device's memory: sum, noise and gradient lie there. The host draws the noise, and
// sees neither the sum nor the gradient.
#include <algorithm>
#include <vector>

#include "runtime/gradients/formed_gradients.h"
#include "runtime/gradients/sum_gradients.h"
#include "runtime/train/options.h"
#include "runtime/train/release/device_noise.h"
#include "runtime/train/release/step_release_parts.h"

namespace wisp {
namespace {

class OrdinaryDeviceRelease final : public StepRelease {
 public:
  OrdinaryDeviceRelease(const Graph& graph, const TrainedSet& trained, size_t num_negatives)
      : graph_(&graph),
        trained_(&trained),
        sum_(graph.device(), trained.size(), 1),
        gradients_(graph.device(), BatchSetupOf(graph, trained), num_negatives, sum_, 0) {}

  Gradients GradientsOf(size_t) override { return gradients_; }
  void Begin(uint64_t, std::span<const float>, const StepBatch&, privacy::RandomStream&) override { sum_.Clear(); }
  void Update(size_t worker, privacy::RandomStream&, double divisor, const Apply& apply) override {
    if (worker > 0) return;
    float* g = sum_.data(0);
    const auto scale = static_cast<float>(1.0 / divisor);
    graph_->ops().scale({.x = g, .y = g, .n = trained_->size(), .a = scale, .store = kernels::Store::kAssign});
    for (uint32_t i : trained_->parameters()) apply({i, 0, g + trained_->offset(i), graph_->parameters()[i].size()});
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
        sum_(graph.device(), trained.size(), SumGrid(grid_)),
        gradients_(graph.device(), BatchSetupOf(graph, trained), ClipOnGrid(options.privacy.clipping, grid_), sum_),
        noise_(graph.device(), trained.size(), grid_.sigma_in_steps(options.privacy.noise_multiplier)) {}

  Gradients GradientsOf(size_t) override { return gradients_; }
  void Begin(uint64_t, std::span<const float>, const StepBatch&, privacy::RandomStream&) override { sum_.Clear(); }

  // Draws the same integers as the host's release would with as many threads.
  void DrawNoise(size_t worker, privacy::RandomStream& noise) override {
    const auto draw = [&](size_t parameter, size_t first, size_t n) {
      noise_.Draw(trained_->offset(parameter) + first, n, noise);
    };
    ForEachChunk(graph_->parameters(), trained_->parameters(), worker, num_workers_, draw);
  }
  void Prepare() override { noise_.Send(trained_->size()); }

  void Update(size_t worker, privacy::RandomStream&, double divisor, const Apply& apply) override {
    if (worker > 0) return;
    const float* gradient = noise_.AddTo(sum_, static_cast<float>(grid_.Scale(divisor)));
    for (uint32_t i : trained_->parameters())
      apply({i, 0, gradient + trained_->offset(i), graph_->parameters()[i].size()});
    noise_.Forget();
    sum_.Clear();
    gradients_.Forget();
  }

  size_t planned_bytes() const override { return sum_.size_bytes() + gradients_.scratch_bytes() + noise_.size_bytes(); }

 private:
  const Graph* graph_;
  const TrainedSet* trained_;
  size_t num_workers_;
  privacy::ExactGrid grid_;
  GridGradientSum sum_;
  FormedGradients gradients_;
  DeviceNoise noise_;
};

}  // namespace

ReleaseBytes PlanDeviceRelease(const Graph& graph, const TrainedSet& trained, const TrainingOptions& o) {
  if (o.method == Method::kRgp) return PlanDeviceRgpRelease(graph, trained, o);
  if (!IsPrivate(o)) {
    return {.sums = AlignedArray<float>::AllocatedBytes(trained.size()),
            .records = SumGradients::PlanBytes(BatchSetupOf(graph, trained), o.num_negatives)};
  }
  if (IsSparse(o.method) || o.num_negatives > 0) return PlanDeviceSparseRelease(graph, trained, o);
  return {.sums = AlignedArray<int64_t>::AllocatedBytes(trained.size()) + DeviceNoise::PlanBytes(trained.size()),
          .records = FormedGradients::PlanBytes(BatchSetupOf(graph, trained))};
}

std::unique_ptr<StepRelease> MakeDeviceRelease(const Graph& graph, const TrainedSet& trained,
                                               std::span<const float> start, const TrainingOptions& o) {
  if (o.method == Method::kRgp) return MakeDeviceRgpRelease(graph, trained, start, o);
  if (!IsPrivate(o)) return std::make_unique<OrdinaryDeviceRelease>(graph, trained, o.num_negatives);
  if (IsSparse(o.method) || o.num_negatives > 0) return MakeDeviceSparseRelease(graph, trained, o);
  return std::make_unique<PrivateDeviceRelease>(graph, trained, o);
}

}  // namespace wisp
