// y = x W^T + b, forward and backward.
#ifndef WISP_RUNTIME_LAYERS_LINEAR_H_
#define WISP_RUNTIME_LAYERS_LINEAR_H_

#include <string>

#include "runtime/layers/context.h"
#include "runtime/layers/factors.h"

namespace wisp {

class Linear {
 public:
  // `name` as in ParametersOf: "block0.qkv" has "block0.qkv.weight" and ".bias".
  Linear(const std::vector<ParameterSpec>& parameters, const std::string& name, BufferPlan& plan);

  // x [rows, k] -> y [rows, n], both dense. `rows` may be fewer than the record's.
  void Forward(const RecordContext& context, const float* x, float* y, size_t rows) const;

  // Re-Attention: var_y [rows, n] of the first `n` outputs of those that have squares (SquaredFirstRow), given the mean
  // x and its variance. `n` up to all of them; 0: all.
  void Variance(const RecordContext& context, const float* x, const float* var_x, float* var_y, size_t n = 0) const;

  // Emits the weight's and the bias's factors; dx [rows, k] is assigned or added to.
  // x and dy must stay as they are until the record is finished.
  void Backward(const RecordContext& context, const float* x, const float* dy, float* dx, kernels::Store store,
                FactorSink& sink) const;

 private:
  size_t weight_, bias_, n_, k_, num_squared_;
  Slot<float> dbias_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_LINEAR_H_
