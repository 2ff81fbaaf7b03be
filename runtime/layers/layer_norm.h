// Layer norm over the width, forward and backward; saves mean and 1/std of each row.
#ifndef WISP_RUNTIME_LAYERS_LAYER_NORM_H_
#define WISP_RUNTIME_LAYERS_LAYER_NORM_H_

#include "runtime/layers/context.h"
#include "runtime/layers/factors.h"

namespace wisp {

// Indices of parameters, and what is added to the variance before its root.
struct NormParameters {
  size_t gain, bias;
  float epsilon;
};

class LayerNorm {
 public:
  [[gnu::cold]] LayerNorm(const std::vector<ParameterSpec>& parameters, const NormParameters& which, size_t max_rows,
                          BufferPlan& plan);

  // x, y [rows, D].
  void Forward(const RecordContext& context, const float* x, float* y) const;

  // dx [rows, D] is assigned or added to. `x` is the forward input.
  void Backward(const RecordContext& context, const float* x, const float* dy, float* dx, kernels::Store store,
                FactorSink& sink) const;

  // Re-Attention: var_y [rows, D] from the variance of the input of the last Forward; var_y may be var_x.
  void Variance(const RecordContext& context, const float* var_x, float* var_y) const;

 private:
  NormParameters which_;
  size_t d_;
  Slot<float> mean_, rstd_, dgain_, dbias_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_LAYER_NORM_H_
