// Built for speed: noise and sums over every carrier of a step.

// RGP releases projections onto carriers, which then become a gradient of the weights.
#include <algorithm>
#include <vector>

#include "runtime/gradients/rgp_gradients.h"
#include "runtime/train/options.h"
#include "runtime/train/release/rgp_randomness.h"
#include "runtime/train/release/step_release_parts.h"

namespace wisp {
namespace {

class RgpRelease final : public StepRelease {
 public:
  RgpRelease(const Graph& graph, const TrainedSet& trained, std::span<const float> start,
             const TrainingOptions& options)
      : graph_(&graph),
        trained_(&trained),
        num_workers_(options.num_threads),
        carriers_(graph.device(), graph.parameters(), trained, options.rgp),
        grid_(MakeGrid(options, carriers_.num_coordinates())),
        sigma_(grid_.sigma_in_steps(options.privacy.noise_multiplier)),
        sum_(graph.device(), carriers_.release_size(), SumGrid(grid_)),
        released_(carriers_.release_size()),
        start_(trained.size()),
        first_held_(FirstHeld(graph.parameters(), options)),
        randomness_(options.seed) {
    trained.Gather(graph.parameters(), start, start_, first_held_);
    planned_bytes_ =
        carriers_.size_bytes() + released_.allocated_bytes() + sum_.size_bytes() + start_.capacity() * sizeof(float);
    const size_t buffer = BufferSize(graph);
    gradients_.reserve(num_workers_);
    buffers_.reserve(num_workers_);
    for (size_t w = 0; w < num_workers_; ++w) {
      gradients_.push_back(std::make_unique<RgpGradients>(
          graph.device(), RgpGradients::Setup{.max_rows = graph.max_record_rows(), .worker = w}, carriers_,
          ClipOnGrid(options.privacy.clipping, grid_), sum_));
      buffers_.emplace_back(buffer);
      planned_bytes_ += gradients_.back()->scratch_bytes() + buffers_.back().allocated_bytes();
    }
  }

  // The number of floats in a worker's piece of a gradient: whole rows, at least one.
  static size_t BufferSize(const Graph& graph) {
    size_t size = kUpdateChunk;
    for (const ParameterSpec& p : graph.parameters()) size = std::max<size_t>(size, p.cols);
    return size;
  }

  Gradients GradientsOf(size_t worker) override { return *gradients_[worker]; }

  // Makes the carriers from released weights and a public stream.
  void Begin(uint64_t step, std::span<const float> weights, const StepBatch&, privacy::RandomStream&) override {
    carriers_.Update(weights, start_, step, randomness_.OfStep(step), first_held_);
    sum_.Clear();
  }

  void AddNoise(size_t worker, privacy::RandomStream& noise) override {
    const size_t size = released_.size();
    for (size_t chunk = worker; chunk * kUpdateChunk < size; chunk += num_workers_) {
      const size_t first = chunk * kUpdateChunk, n = std::min(kUpdateChunk, size - first);
      NoiseAndScale(sum_.sum().subspan(first, n), sigma_, 1.0f, noise, released_.data() + first);
    }
  }
  void Prepare() override { carriers_.Prepare({released_.data(), released_.size()}); }

  void Update(size_t worker, privacy::RandomStream&, double divisor, const Apply& apply) override {
    const float scale = static_cast<float>(grid_.Scale(divisor));
    float* g = buffers_[worker].data();
    size_t turn = 0;
    for (uint32_t i : trained_->parameters()) {
      const ParameterSpec& p = graph_->parameters()[i];
      const RgpCarriers::Entry& entry = carriers_.entry(i);
      const size_t chunk_rows = std::max<size_t>(1, kUpdateChunk / p.cols);
      for (size_t first = 0; first < p.rows; first += chunk_rows) {
        if (turn++ % num_workers_ != worker) continue;
        const size_t rows = std::min<size_t>(chunk_rows, p.rows - first), n = rows * p.cols;
        if (entry.train == RgpTrain::kProjected) {
          carriers_.Gradient({released_.data(), released_.size()}, i, first, rows, g);
        } else {
          std::copy_n(released_.data() + entry.left_offset + first * p.cols, n, g);
        }
        graph_->ops().scale({.x = g, .y = g, .n = n, .a = scale, .store = kernels::Store::kAssign});
        apply({i, first * p.cols, g, n});
      }
    }
  }

  size_t planned_bytes() const override { return planned_bytes_; }

 private:
  const Graph* graph_;
  const TrainedSet* trained_;
  size_t num_workers_, planned_bytes_ = 0;
  RgpCarriers carriers_;
  privacy::ExactGrid grid_;
  uint64_t sigma_;
  GridGradientSum sum_;
  AlignedArray<float> released_;  // in steps of the grid
  std::vector<float> start_;      // W_0 of the trained set
  size_t first_held_;             // FirstHeld
  RgpRandomness randomness_;
  std::vector<std::unique_ptr<RgpGradients>> gradients_;
  std::vector<AlignedArray<float>> buffers_;
};

}  // namespace

ReleaseBytes PlanRgpRelease(const Graph& graph, const TrainedSet& trained, const TrainingOptions& options) {
  const RgpCarriers::Plan carriers =
      RgpCarriers::PlanOf(graph.parameters(), trained, options.rgp, graph.device().memory);
  const size_t workers = options.num_threads;
  return {.sums = carriers.size_bytes + AlignedArray<float>::AllocatedBytes(carriers.release_size) +
                  AlignedArray<int64_t>::AllocatedBytes(carriers.release_size) + trained.size() * sizeof(float) +
                  workers * AlignedArray<float>::AllocatedBytes(RgpRelease::BufferSize(graph)),
          .records =
              workers * RgpGradients::PlanBytes(carriers.release_size, graph.max_record_rows(), options.rgp.rank)};
}

std::unique_ptr<StepRelease> MakeRgpRelease(const Graph& graph, const TrainedSet& trained, std::span<const float> start,
                                            const TrainingOptions& options) {
  return std::make_unique<RgpRelease>(graph, trained, start, options);
}

}  // namespace wisp
