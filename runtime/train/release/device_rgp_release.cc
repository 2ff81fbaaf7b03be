// RGP in a device's memory. The host makes a step's carriers, from weights that were already released.
#include <algorithm>
#include <vector>

#include "runtime/gradients/rgp_batch_gradients.h"
#include "runtime/train/options.h"
#include "runtime/train/release/device_noise.h"
#include "runtime/train/release/rgp_randomness.h"
#include "runtime/train/release/step_release_parts.h"

namespace wisp {
namespace {

class DeviceRgpRelease final : public StepRelease {
 public:
  DeviceRgpRelease(const Graph& graph, const TrainedSet& trained, std::span<const float> start,
                   const TrainingOptions& o)
      : graph_(&graph),
        trained_(&trained),
        num_workers_(o.num_threads),
        carriers_(graph.device(), graph.parameters(), trained, o.rgp),
        grid_(MakeGrid(o, carriers_.num_coordinates())),
        sum_(graph.device(), carriers_.release_size(), SumGrid(grid_)),
        gradients_(graph.device(), graph.max_records(), graph.max_rows(), carriers_,
                   ClipOnGrid(o.privacy.clipping, grid_), sum_),
        noise_(graph.device(), carriers_.release_size(), grid_.sigma_in_steps(o.privacy.noise_multiplier)),
        gradient_(LargestParameter(graph), graph.device().memory),
        weights_(FlatSize(graph.parameters())),
        start_(trained.size()),
        randomness_(o.seed) {
    trained.Gather(graph.parameters(), start, start_);
  }

  // The number of floats in the largest gradient.
  static size_t LargestParameter(const Graph& graph) {
    size_t size = 0;
    for (const ParameterSpec& p : graph.parameters()) size = std::max(size, p.size());
    return size;
  }

  Gradients GradientsOf(size_t) override { return gradients_; }

  void Begin(uint64_t step, std::span<const float> weights, const StepBatch&, privacy::RandomStream&) override {
    graph_->device().memory.copy_out(weights_.data(), weights.data(), weights.size_bytes());
    carriers_.Update({weights_.data(), weights_.size()}, start_, step, randomness_.OfStep(step));
    sum_.Clear();
  }

  void DrawNoise(size_t worker, privacy::RandomStream& noise) override {
    const size_t size = carriers_.release_size();
    for (size_t chunk = worker; chunk * kUpdateChunk < size; chunk += num_workers_)
      noise_.Draw(chunk * kUpdateChunk, std::min(kUpdateChunk, size - chunk * kUpdateChunk), noise);
  }
  void Prepare() override { noise_.Send(carriers_.release_size()); }

  void Update(size_t worker, privacy::RandomStream&, double divisor, const Apply& apply) override {
    if (worker > 0) return;
    const std::span<const float> released{noise_.AddTo(sum_, static_cast<float>(grid_.Scale(divisor))),
                                          carriers_.release_size()};
    carriers_.Prepare(released);
    for (uint32_t i : trained_->parameters()) {
      const ParameterSpec& p = graph_->parameters()[i];
      const float* gradient = released.data() + carriers_.entry(i).left_offset;
      if (carriers_.entry(i).train == RgpTrain::kProjected) {
        carriers_.Gradient(released, i, 0, p.rows, gradient_.data());
        gradient = gradient_.data();
      }
      apply({i, 0, gradient, p.size()});
    }
    noise_.Forget();
    sum_.Clear();
    gradients_.Forget();
  }

  size_t planned_bytes() const override {
    return carriers_.size_bytes() + sum_.size_bytes() + gradients_.scratch_bytes() + noise_.size_bytes() +
           gradient_.allocated_bytes() + (weights_.capacity() + start_.capacity()) * sizeof(float);
  }

 private:
  const Graph* graph_;
  const TrainedSet* trained_;
  size_t num_workers_;
  RgpCarriers carriers_;
  privacy::ExactGrid grid_;
  GridGradientSum sum_;
  RgpBatchGradients gradients_;
  DeviceNoise noise_;
  AlignedArray<float> gradient_;        // one projected parameter's
  std::vector<float> weights_, start_;  // on the host: all weights of the step; W_0 of the trained set
  RgpRandomness randomness_;
};

}  // namespace

ReleaseBytes PlanDeviceRgpRelease(const Graph& graph, const TrainedSet& trained, const TrainingOptions& o) {
  const RgpCarriers::Plan carriers = RgpCarriers::PlanOf(graph.parameters(), trained, o.rgp, graph.device().memory);
  const size_t size = carriers.release_size;
  return {.sums = carriers.size_bytes + AlignedArray<int64_t>::AllocatedBytes(size) + DeviceNoise::PlanBytes(size) +
                  AlignedArray<float>::AllocatedBytes(DeviceRgpRelease::LargestParameter(graph)) +
                  (FlatSize(graph.parameters()) + trained.size()) * sizeof(float),
          .records = RgpBatchGradients::PlanBytes(graph.max_records(), graph.max_rows(), size, o.rgp.rank)};
}

std::unique_ptr<StepRelease> MakeDeviceRgpRelease(const Graph& graph, const TrainedSet& trained,
                                                  std::span<const float> start, const TrainingOptions& options) {
  return std::make_unique<DeviceRgpRelease>(graph, trained, start, options);
}

}  // namespace wisp
