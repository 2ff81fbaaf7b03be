// Multi-head self-attention: one product for queries, keys and values, the fused kernel, the output product.
#ifndef WISP_RUNTIME_LAYERS_ATTENTION_H_
#define WISP_RUNTIME_LAYERS_ATTENTION_H_

#include <string>

#include "runtime/layers/context.h"
#include "runtime/layers/dropout.h"
#include "runtime/layers/factors.h"
#include "runtime/layers/linear.h"

namespace wisp {

class Attention {
 public:
  // `block` is the block's index, `site` the first of two dropout sites.
  Attention(const Architecture& architecture, const kernels::OpTable& ops, const std::vector<ParameterSpec>& parameters,
            size_t block, uint64_t site, BufferPlan& plan);

  // x [rows, D], y [wanted rows, D]; y before the residual is added. Re-Attention: var_x [rows, D] is the variance of x
  // (else null), and var_y [rows, D] is assigned that of y, except in the last block, where nobody reads it.
  void Forward(const RecordContext& context, const float* x, float* y, const float* var_x = nullptr,
               float* var_y = nullptr) const;

  // dy, dx [rows, D]; dx is assigned or added to.
  void Backward(const RecordContext& context, const float* x, const float* dy, float* dx, kernels::Store store,
                FactorSink& sink) const;

 private:
  const float* KeyVariance(const RecordContext& context) const {
    return re_attention_ ? context.forward(key_value_variance_) : nullptr;
  }
  const float* Slopes() const { return slopes_.empty() ? nullptr : slopes_.data(); }
  float Rate(const RecordContext& context) const { return context.dropout != nullptr ? context.dropout->attention : 0; }

  size_t d_, heads_;
  kernels::AttentionMask mask_;
  float scale_;
  std::vector<float> slopes_;  // [H], or empty
  Linear qkv_, out_;
  Dropout dropout_;
  Slot<float> projected_, mixed_, lse_, forward_scratch_;
  Slot<float> key_value_variance_, mixed_variance_;  // Re-Attention: [T, 2 D] (or keys only, [T, D]), [T, D]
  bool re_attention_;
  size_t variance_width_;  // D in the last block, whose values' variance nobody reads; else 2 D
  Slot<float> dprojected_, dmixed_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_ATTENTION_H_
