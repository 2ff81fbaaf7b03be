// Optimizers and learning-rate schedules as data, and the state they keep. They see the released gradient only.
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
  float final_fraction = 0.0f;  // of the learning rate, reached at the last step of a linear decay
};

Status Validate(const OptimizerOptions& options);

// The rate of step `step` (from 0) of `num_steps`: linear warm-up, then constant or linear.
float LearningRate(const OptimizerOptions& options, double step, uint64_t num_steps);

// Where a step stands in a schedule of `planned` steps. A run that has to end sooner goes from step `from` on through
// what is left of its schedule in fewer, longer strides: its rate makes no jump there, and it ends where it was to end.
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
  // Of a trained set of this size.
  Optimizer(const kernels::Device& device, const OptimizerOptions& options, size_t size);

  // Updates weights[0, n) of a parameter of this shape from gradient g[0, n); `offset`: where they lie in the trained
  // set. Call for every range once a step, in any order and from any thread. `rate` from LearningRate, `step` from 0.
  void Update(ParameterShape shape, size_t offset, const float* g, size_t n, float rate, uint64_t step,
              float* weights) const;
  // The same of whole rows of a table: g [n / cols, cols], row j of it of the table's row row_J[j], none named twice.
  // `weights` and `offset` are the whole table's.
  void UpdateRows(const ParameterSpec& table, size_t offset, const float* g, size_t n, const uint32_t* row_J,
                  float rate, uint64_t step, float* weights) const;

  // Mean over coordinates [offset, offset + n) of the square of how far a gradient of `size` moves a weight in the end,
  // per unit of learning rate, as of step `step`. Adam: min(1, size / (sqrt(v) + epsilon))^2 (times what bias
  // correction makes of the first steps' momentum), as v is at least size^2 in the mean when every gradient holds noise
  // of that size; SGD: (size / (1 - momentum))^2.
  double MeanSquaredMove(size_t offset, size_t n, uint64_t step, double size) const;

  // The same on a device, of `rows` rows of `cols` from `offset` on: variance_R[r] += scale * MeanSquaredMove(row r).
  // Where row_R is given, r stands for row_R[r] of both.
  void AddSquaredMoves(size_t offset, size_t rows, size_t cols, uint64_t step, double size, double scale,
                       float* variance_R, const uint32_t* row_R) const;

  // State as it goes into a checkpoint: first and second moments (Adam), momentum (SGD: second is empty).
  AlignedArray<float>& first() { return first_; }
  AlignedArray<float>& second() { return second_; }
  bool is_on_device() const { return is_on_device_; }
  const OptimizerOptions& options() const { return options_; }
  size_t size_bytes() const { return first_.allocated_bytes() + second_.allocated_bytes(); }
  // What the state of so many weights will take; nothing is allocated.
  static size_t PlanBytes(const OptimizerOptions& options, size_t size);

 private:
  // What changes: with row_J given, rows of d.
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
