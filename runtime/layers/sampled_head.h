// Next-item head with a sampled softmax: each position's target against the step's negatives instead of all items.
//
//   loss = log(exp(z_t) + sum over negatives n != t of w exp(z_n)) - z_t,   w the number of items a negative stands for
//
// estimates the full cross-entropy at a cost that does not depend on the catalogue. Negatives are sampled independently
// of the data, so they reveal nothing. The output table's gradient is emitted as one Outer with ids (the negatives) and
// one Rows (the targets).
#ifndef WISP_RUNTIME_LAYERS_SAMPLED_HEAD_H_
#define WISP_RUNTIME_LAYERS_SAMPLED_HEAD_H_

#include "runtime/layers/context.h"
#include "runtime/layers/factors.h"

namespace wisp {

class SampledHead {
 public:
  // `num_negatives` 0 reserves nothing; such a head must not be called.
  SampledHead(const Architecture& architecture, const std::vector<ParameterSpec>& parameters, size_t num_negatives,
              BufferPlan& plan);

  // See NextItemHead. context.negatives has num_negatives items, at least 2.
  void Forward(const RecordContext& context, const float* h, const int32_t* targets, double* loss_B) const;
  void Backward(const RecordContext& context, const float* h, const int32_t* targets, float* dh,
                FactorSink& sink) const;

 private:
  size_t table_, d_;
  std::optional<size_t> bias_;
  Slot<float> logits_, max_, sum_, lse_, target_logit_, weight_, dtarget_;
  Slot<int32_t> no_target_;
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_SAMPLED_HEAD_H_
