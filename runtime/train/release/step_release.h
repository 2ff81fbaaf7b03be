// The sum over records that one training step forms, and how it becomes a gradient of the weights: the part of a step
// that differs between methods. In private training this is the part that is released.
//
//   release->Begin(step, weights, batch);                       // one thread
//   records -> release->GradientsOf(worker) ...                 // all workers
//   release->DrawNoise(worker, noise);                          // all workers, while others are still at their records
//   release->Reduce();                                          // one thread
//   release->AddNoise(worker, noise);                           // all workers
//   release->Prepare();                                         // one thread
//   release->Update(worker, noise, divisor, apply);             // all workers: apply(change)
//
// Sensitivity: gradient methods clip to the grid's reduced norm and check what they added (privacy/exact_sum.h). Noise:
// exact discrete Gaussian, one draw per released coordinate, in DrawNoise, AddNoise or Update. AdaFEST's map of rows
// has its own noise, in Begin (ContributionMap::Select). Noise is drawn nowhere else. Noise multipliers here are those
// of one release; the trainer's plan computes the cost of a step.
#ifndef WISP_RUNTIME_TRAIN_RELEASE_STEP_RELEASE_H_
#define WISP_RUNTIME_TRAIN_RELEASE_STEP_RELEASE_H_

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "runtime/core/trained_set.h"
#include "runtime/gradients/record_gradients.h"
#include "runtime/gradients/row_set.h"
#include "runtime/layers/graph.h"
#include "runtime/privacy/noise/exact_sum.h"
#include "runtime/privacy/noise/random.h"

namespace wisp {

struct TrainingOptions;

// The input of a step.
struct StepBatch {
  std::span<const Record* const> records;
  std::span<const int32_t> negatives;  // sampled softmax: ascending; else empty
};

// A change that a step asks the optimizer for: coordinates [first, first + n) of a parameter, given by its index, or,
// if row_J is given, whole rows of it. `gradient` and row_J lie in the graph's memory.
struct Change {
  size_t parameter, first;
  const float* gradient;
  size_t n;
  const uint32_t* row_J = nullptr;  // [n / cols]; `first` is 0
};

class StepRelease {
 public:
  using Apply = std::function<void(const Change&)>;

  virtual ~StepRelease() = default;
  virtual Gradients GradientsOf(size_t worker) = 0;
  // Called before the records of a step are run. `weights` lie in the graph's memory. `noise` is for releases that a
  // method makes before the sum.
  virtual void Begin(uint64_t step, std::span<const float> weights, const StepBatch& batch,
                     privacy::RandomStream& noise) = 0;
  // Draws noise that need not wait for the sum.
  virtual void DrawNoise(size_t /*worker*/, privacy::RandomStream& /*noise*/) {}
  virtual void Reduce() {}
  virtual void AddNoise(size_t /*worker*/, privacy::RandomStream& /*noise*/) {}
  virtual void Prepare() {}
  // Calls `apply` for every trained coordinate of the step, exactly once over all workers. The sum is divided by
  // `divisor`.
  virtual void Update(size_t worker, privacy::RandomStream& noise, double divisor, const Apply& apply) = 0;
  // The rows of the item table that the step may change, possibly none; nullopt: all.
  virtual std::optional<ItemRows> StepItemRows() const { return std::nullopt; }

  // The rows that any step may change, ascending; empty: all.
  virtual std::span<const int32_t> FixedItemRows() const { return {}; }

  virtual size_t planned_bytes() const = 0;
};

// `options` were checked by Trainer, with num_threads set. `graph` and `trained` must outlive the result.
std::unique_ptr<StepRelease> MakeStepRelease(const Graph& graph, const TrainedSet& trained,
                                             std::span<const float> start, const TrainingOptions& options);

// The clip rule of private training on a grid.
ClipRule ClipOnGrid(ClipKind kind, const privacy::ExactGrid& grid);

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_RELEASE_STEP_RELEASE_H_
