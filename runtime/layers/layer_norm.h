// Layer norm over the width, forward and backward; saves mean and 1/std of each row.
#ifndef WISP_RUNTIME_LAYERS_LAYER_NORM_H_
#define WISP_RUNTIME_LAYERS_LAYER_NORM_H_

#include <string>

#include "runtime/layers/context.h"
#include "runtime/layers/factors.h"

namespace wisp {

class LayerNorm {
 public:
  LayerNorm(const std::vector<ParameterSpec>& parameters, const std::string& name, float epsilon, size_t max_rows,
            BufferPlan& plan);

  // x, y [rows, D].
  void Forward(const RecordContext& context, const float* x, float* y) const;

  // Re-Attention: var_y [rows, D] from the variance of the input of the last Forward; var_y may be var_x.
  void Variance(const RecordContext& context, const float* var_x, float* var_y) const;

  // dx [rows, D] is assigned or added to. `x` is the forward input.
  void Backward(const RecordContext& context, const float* x, const float* dy, float* dx, kernels::Store store,
                FactorSink& sink) const;

 private:
  size_t gain_, bias_, d_;
  float epsilon_;
  Slot<float> mean_, rstd_, dgain_, dbias_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_LAYER_NORM_H_
