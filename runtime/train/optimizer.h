// Optimizers and learning-rate schedules as data, and the optimizers' state. They see only the released gradient.
#ifndef WISP_RUNTIME_TRAIN_OPTIMIZER_H_
#define WISP_RUNTIME_TRAIN_OPTIMIZER_H_

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"
#include "runtime/core/architecture.h"
#include "runtime/core/arena.h"
#include "runtime/core/status.h"

namespace wisp {

enum class OptimizerKind { kAdam, kAdamW, kSgd };
enum class Decay { kConstant, kLinear };

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kAdam;
  float learning_rate = 1e-3f;
  float beta1 = 0.9f, beta2 = 0.999f;  // Adam
  float epsilon = 1e-8f;
  float momentum = 0.0f;      // SGD
  float weight_decay = 0.0f;  // tables and matrices only; AdamW and SGD
  uint32_t warmup_steps = 0;
  Decay decay = Decay::kConstant;
  float final_fraction = 0.0f;  // fraction of the learning rate that a linear decay reaches at the last step
};

Status Validate(const OptimizerOptions& options);

// The learning rate of step `step` (from 0) of `num_steps`: a linear warm-up, then constant or linear decay.
float LearningRate(const OptimizerOptions& options, double step, uint64_t num_steps);

// The position of a step in a schedule of `planned` steps. A run that must end early continues from step `from` through
// the rest of its schedule in fewer, longer strides. So its rate does not jump there, and still reaches its planned
// final value.
struct Schedule {
  uint64_t planned = 0, from = 0, end = 0;
  double Position(uint64_t step) const {
    if (end == planned || step < from) return static_cast<double>(step);
    return static_cast<double>(from) +
           static_cast<double>(step - from) * static_cast<double>(planned - from) / static_cast<double>(end - from);
  }
};

class Optimizer {
 public:
  // `size` is the number of trained weights.
  Optimizer(const kernels::Device& device, const OptimizerOptions& options, size_t size);

  // Updates weights[0, n) of a parameter of this shape from its gradient g[0, n). `offset` is their place in the
  // trained set. Call for every range once a step, in any order and from any thread. `rate` comes from LearningRate;
  // `step` counts from 0.
  void Update(ParameterShape shape, size_t offset, const float* g, size_t n, float rate, uint64_t step,
              float* weights) const;
  // Updates whole rows of a table. g is [n / cols, cols]; its row j belongs to the table's row row_J[j], and no row is
  // named twice. `weights` and `offset` are those of the whole table.
  void UpdateRows(const ParameterSpec& table, size_t offset, const float* g, size_t n, const uint32_t* row_J,
                  float rate, uint64_t step, float* weights) const;

  // After Update of all of an item table with Adam: moves its rows along features of the items, x [rows, count].
  //
  // The table is read as E = U + X V, of which Update moves U. The gradient of V is X^T dE. So its first moment is X^T
  // times that of E. Its second is taken as (X * X)^T times that of E, as if rows were independent, which noise is. A
  // step of V is at most kLongestAlong times the rate, because gradients that rows share add up. V has no state of its
  // own. `scratch` has ScratchAlong numbers.
  static constexpr float kLongestAlong = 2;
  static size_t ScratchAlong(size_t count, size_t cols) { return 2 * count * cols; }
  void UpdateAlong(const float* x, size_t count, const ParameterSpec& table, size_t offset, float rate, uint64_t step,
                   float* scratch, float* weights) const;

  // The mean over coordinates [offset, offset + n) of the squared final move of a weight, per unit of learning rate,
  // caused by a gradient of `size`, as of step `step`.
  //
  // Adam: min(1, size / (sqrt(v) + epsilon))^2 (times the effect of bias correction on the first steps' momentum),
  // because v is at least size^2 in the mean if every gradient holds noise of that size. SGD: (size / (1 -
  // momentum))^2.
  double MeanSquaredMove(size_t offset, size_t n, uint64_t step, double size) const;

  // MeanSquaredMove on a device, for `rows` rows of `cols` from `offset` on: variance_R[r] += scale *
  // MeanSquaredMove(row r). If row_R is given, row_R[r] takes the place of r on both sides.
  void AddSquaredMoves(size_t offset, size_t rows, size_t cols, uint64_t step, double size, double scale,
                       float* variance_R, const uint32_t* row_R) const;

  // The state as it is saved in a checkpoint: first and second moments (Adam), or momentum (SGD, whose second is
  // empty).
  const AlignedArray<float>& first() const { return first_; }
  const AlignedArray<float>& second() const { return second_; }
  bool is_on_device() const { return is_on_device_; }
  const OptimizerOptions& options() const { return options_; }
  size_t size_bytes() const { return first_.allocated_bytes() + second_.allocated_bytes(); }
  // The bytes that the state of so many weights will take; allocates nothing.
  static size_t PlanBytes(const OptimizerOptions& options, size_t size);

 private:
  // The coordinates that change: with row_J given, rows of d.
  struct Range {
    ParameterShape shape;
    size_t offset, n;
    const uint32_t* row_J = nullptr;
    size_t d = 1;
  };
  void Change(const Range& range, const float* g, float rate, uint64_t step, float* weights) const;

  const kernels::OpTable* ops_;
  bool is_on_device_;
  OptimizerOptions options_;
  AlignedArray<float> first_, second_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_TRAIN_OPTIMIZER_H_
