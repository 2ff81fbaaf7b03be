// How a method turns the records of a step into a change of the weights: what one record adds, what is released, and
// how the release becomes a gradient. Methods live in runtime/methods (ordinary training: ordinary_method.cc).
//
//   method->Begin(step, weights, batch, noise);                 // one thread
//   records -> method->GetGradients(worker) ...                  // all workers
//   method->DrawNoise(worker, noise, share);                    // all workers, while records pass; at the end share 1
//   method->Reduce();                                           // one thread
//   method->AddNoise(worker, noise);                            // all workers
//   method->Prepare();                                          // one thread
//   method->Update(worker, noise, divisor, apply);              // all workers: apply(change)
//
// Sensitivity: a method's Gradients clip to the grid's reduced norm and check what they added (privacy/exact_sum.h).
// Noise: StepSum adds it to the sum, by a privacy::NoiseProcess. AdaFEST's map of rows has its own noise, in Begin
// (ContributionMap::Select). Noise is drawn nowhere else. The plan (privacy_plan.h) computes the cost of a step.
#ifndef WISP_RUNTIME_TRAIN_GRADIENT_METHOD_H_
#define WISP_RUNTIME_TRAIN_GRADIENT_METHOD_H_

#include <functional>
#include <optional>
#include <span>

#include "runtime/gradients/record_gradients.h"
#include "runtime/gradients/row_set.h"
#include "runtime/layers/record.h"
#include "runtime/privacy/noise/random.h"

namespace wisp {

// The input of a step.
struct StepBatch {
  std::span<const Record* const> records;  // empty unless the method reads them (ReadsBatch)
  std::span<const int32_t> negatives;      // sampled softmax: ascending; else empty
};

// A change that a step asks the optimizer for: coordinates [first, first + n) of a parameter, given by its index, or,
// if row_J is given, whole rows of it. `gradient` and row_J lie in the graph's memory.
struct Change {
  size_t parameter, first;
  const float* gradient;
  size_t n;
  const uint32_t* row_J = nullptr;  // [n / cols]; `first` is 0
};

class GradientMethod {
 public:
  using Apply = std::function<void(const Change&)>;

  virtual ~GradientMethod() = default;
  virtual Gradients GetGradients(size_t worker) = 0;
  // Called before the records of a step are run. `weights` lie in the graph's memory. `noise` is for releases that a
  // method makes before the sum.
  virtual void Begin(uint64_t step, std::span<const float> weights, const StepBatch& batch,
                     privacy::RandomStream& noise) = 0;
  // Draws noise that need not wait for the sum, until this share of the worker's is drawn: 0 to 1, never less than
  // before in the step. The last call of a step has 1.
  virtual void DrawNoise(size_t /*worker*/, privacy::RandomStream& /*noise*/, double /*share*/) {}
  virtual void Reduce() {}
  virtual void AddNoise(size_t /*worker*/, privacy::RandomStream& /*noise*/) {}
  virtual void Prepare() {}
  // Calls `apply` for every trained coordinate of the step, exactly once over all workers. The sum is divided by
  // `divisor`.
  virtual void Update(size_t worker, privacy::RandomStream& noise, double divisor, const Apply& apply) = 0;

  // True if Begin reads the batch's records.
  virtual bool ReadsBatch() const { return false; }
  // The rows of the item table that the step may change, possibly none; nullopt: all.
  virtual std::optional<ItemRows> StepItemRows() const { return std::nullopt; }
  // The rows that any step may change, ascending; empty: all.
  virtual std::span<const int32_t> FixedItemRows() const { return {}; }

  virtual size_t planned_bytes() const = 0;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_GRADIENT_METHOD_H_
