// Code that the kinds of StepRelease share. Internal to runtime/train.
#ifndef WISP_RUNTIME_TRAIN_RELEASE_STEP_RELEASE_PARTS_H_
#define WISP_RUNTIME_TRAIN_RELEASE_STEP_RELEASE_PARTS_H_

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "runtime/gradients/gradient_sum.h"
#include "runtime/train/options.h"
#include "runtime/train/privacy_plan.h"
#include "runtime/train/release/step_release.h"

namespace wisp {

// Coordinates noised and stepped at a time: 16 KB of gradient on the stack.
inline constexpr size_t kUpdateChunk = 4096;

// f(parameter, first, n) for the worker's share of the coordinates of `which`, in chunks.
template <class F>
void ForEachChunk(const std::vector<ParameterSpec>& parameters, std::span<const uint32_t> which, size_t worker,
                  size_t num_workers, F&& f) {
  size_t turn = 0;
  for (uint32_t i : which) {
    const size_t size = parameters[i].size();
    for (size_t first = 0; first < size; first += kUpdateChunk) {
      if (turn++ % num_workers == worker) f(i, first, std::min(kUpdateChunk, size - first));
    }
  }
}

// Noises one range of a sum, then sets g to scale * sum.
void NoiseAndScale(std::span<int64_t> sum, uint64_t sigma, float scale, privacy::RandomStream& noise, float* g);

// The setup of gradient methods that take all records of a pass at once.
inline BatchGradients::Setup BatchSetupOf(const Graph& graph, const TrainedSet& trained) {
  return {.parameters = graph.parameters(),
          .trained = trained,
          .max_records = graph.max_records(),
          .norms_head_rows = graph.architecture().head.temperature > 0};
}

privacy::ExactGrid MakeGrid(const TrainingOptions& options, uint64_t num_coordinates);
GridGradientSum::Grid SumGrid(const privacy::ExactGrid& grid);

// The planned bytes of a release, without making it: its sums, and its gradient methods' state of the records in hand.
struct ReleaseBytes {
  size_t sums = 0, records = 0;
  size_t growth_at_most = 0, rows_at_most = 0, records_at_most = 0;  // as TrainingMemory's
};
ReleaseBytes PlanOrdinaryRelease(const Graph& graph, const TrainedSet& trained, const TrainingOptions& options);
ReleaseBytes PlanFlatRelease(const Graph& graph, const TrainedSet& trained, const TrainingOptions& options);
ReleaseBytes PlanRgpRelease(const Graph& graph, const TrainedSet& trained, const TrainingOptions& options);
ReleaseBytes PlanDeviceRelease(const Graph& graph, const TrainedSet& trained, const TrainingOptions& options);
ReleaseBytes PlanDeviceRgpRelease(const Graph& graph, const TrainedSet& trained, const TrainingOptions& options);
ReleaseBytes PlanDeviceSparseRelease(const Graph& graph, const TrainedSet& trained, const TrainingOptions& options);
ReleaseBytes PlanSparseRelease(const Graph& graph, const TrainedSet& trained, size_t num_records,
                               const TrainingOptions& options);

// The checks of Trainer::Check for one group of options each: the batch, the averaged weights, the sampled softmax, and
// the methods that release rows, among others.
Status ValidateBatch(const TrainingOptions& options, uint64_t num_records);
Status ValidateTrains(const Architecture& architecture, const TrainingOptions& options);
Status ValidateRecompute(const Architecture& architecture, const TrainingOptions& options);
Status ValidateBase(const Architecture& architecture, const TrainingOptions& options);
Status ValidateAverage(const TrainingOptions& options);
Status ValidateDevice(const TrainingOptions& options);
Status ValidateNegatives(const Architecture& architecture, const TrainingOptions& options);
Status ValidateSparse(const Architecture& architecture, const TrainingOptions& options);
Status ValidateRgp(const Architecture& architecture, const TrainingOptions& options);

// For methods without a guarantee: ordinary training, and DP-FP as its paper has it, whose noise is not the release's.
std::unique_ptr<StepRelease> MakeOrdinaryRelease(const Graph& graph, const TrainedSet& trained,
                                                 const TrainingOptions& options);
std::unique_ptr<StepRelease> MakeFlatRelease(const Graph& graph, const TrainedSet& trained,
                                             const TrainingOptions& options);
// Runs on a device, with options that ValidateDevice accepts. Worker 0 does all device work, the others draw noise.
std::unique_ptr<StepRelease> MakeDeviceRelease(const Graph& graph, const TrainedSet& trained,
                                               std::span<const float> start, const TrainingOptions& options);
std::unique_ptr<StepRelease> MakeDeviceRgpRelease(const Graph& graph, const TrainedSet& trained,
                                                  std::span<const float> start, const TrainingOptions& options);
std::unique_ptr<StepRelease> MakeDeviceSparseRelease(const Graph& graph, const TrainedSet& trained,
                                                     const TrainingOptions& options);
// The number of floats of a record's gradient row on a device.
size_t RowFloatsOnDevice(const Architecture& architecture, const TrainingOptions& options);
std::unique_ptr<StepRelease> MakeRgpRelease(const Graph& graph, const TrainedSet& trained, std::span<const float> start,
                                            const TrainingOptions& options);
std::unique_ptr<StepRelease> MakeSparseRelease(const Graph& graph, const TrainedSet& trained,
                                               const TrainingOptions& options);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RELEASE_STEP_RELEASE_PARTS_H_
