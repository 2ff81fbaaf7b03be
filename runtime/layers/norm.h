// Layer norm or RMS norm over the width, forward and backward. Saves each row's mean and divisor.
#ifndef WISP_RUNTIME_LAYERS_NORM_H_
#define WISP_RUNTIME_LAYERS_NORM_H_

#include <optional>

#include "runtime/layers/context.h"
#include "runtime/layers/factors.h"

namespace wisp {

// The indices of a norm's parameters, and the epsilon that is added to the variance before the square root.
struct NormParameters {
  size_t gain;
  std::optional<size_t> bias;  // layer norm only
  float epsilon;
};

class NormLayer {
 public:
  [[gnu::cold]] NormLayer(const std::vector<ParameterSpec>& parameters, const NormParameters& which, size_t max_rows,
                          BufferPlan& plan);

  // x, y [rows, D].
  void Forward(const RecordContext& context, const float* x, float* y) const;

  // dx [rows, D] is assigned or added to, as `store` says. `x` is the input of Forward.
  void Backward(const RecordContext& context, const float* x, const float* dy, float* dx, kernels::Store store,
                FactorSink& sink) const;

  // True if the sink wants the gain's or the bias's factors.
  bool Wanted(const FactorSink& sink) const {
    return sink.Wants(which_.gain) || (which_.bias && sink.Wants(*which_.bias));
  }

  // Re-Attention: var_y [rows, D] from the variance of the last Forward's input. var_y may be var_x.
  void Variance(const RecordContext& context, const float* var_x, float* var_y) const;

 private:
  bool is_rms() const { return !which_.bias; }

  NormParameters which_;
  size_t d_;
  Slot<float> mean_, rstd_, dgain_, dbias_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_NORM_H_
