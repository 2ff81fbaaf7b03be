#include "runtime/layers/residual_gate.h"

namespace wisp {

ResidualGate::ResidualGate(const Architecture& a, const std::vector<ParameterSpec>& parameters, ParameterRole weight,
                           ParameterRole bias, uint32_t index, BufferPlan& plan)
    : d_(a.width), keeps_branch_(plan.use == GraphUse::kTraining) {
  if (a.blocks[index].residual == Residual::kPlain) return;
  linear_.emplace(parameters, FindLinear(a, parameters, weight, bias, index), plan);
  const size_t size = plan.max_rows() * d_;
  gate_ = plan.ReserveInTurn<float>(size);
  branch_ = keeps_branch_ ? plan.ReserveInTurn<float>(size) : gate_;
  dgate_ = plan.ReserveBackward<float>(size);
  dbranch_ = plan.ReserveBackward<float>(size);
}

void ResidualGate::Forward(const RecordContext& context, const float* x, float* branch) const {
  if (!linear_) return;
  const size_t n = context.rows() * d_;
  float* gate = context.forward(gate_);
  linear_->Forward(context, x, gate, context.rows());
  const float* ungated = branch;
  if (keeps_branch_) {
    context.ops().scale(
        {.x = branch, .y = context.forward(branch_), .n = n, .a = 1.0f, .store = kernels::Store::kAssign});
    ungated = context.forward(branch_);
  }
  context.ops().gated_activation_forward({.gate_RF = gate,
                                          .ldgate = d_,
                                          .up_RF = ungated,
                                          .ldup = d_,
                                          .y_RF = branch,
                                          .ldy = d_,
                                          .rows = context.rows(),
                                          .n = d_,
                                          .kind = kernels::Activation::kSigmoid});
}

const float* ResidualGate::Backward(const RecordContext& context, const float* dy) const {
  if (!linear_) return dy;
  context.ops().gated_activation_backward({.dy_RF = dy,
                                           .lddy = d_,
                                           .gate_RF = context.forward(gate_),
                                           .ldgate = d_,
                                           .up_RF = context.forward(branch_),
                                           .ldup = d_,
                                           .dgate_RF = context.backward(dgate_),
                                           .lddgate = d_,
                                           .dup_RF = context.backward(dbranch_),
                                           .lddup = d_,
                                           .rows = context.rows(),
                                           .n = d_,
                                           .kind = kernels::Activation::kSigmoid});
  return context.backward(dbranch_);
}

void ResidualGate::BackwardStream(const RecordContext& context, const float* x, float* dx, FactorSink& sink) const {
  if (linear_) linear_->Backward(context, x, context.backward(dgate_), dx, kernels::Store::kAdd, sink);
}

}  // namespace wisp
