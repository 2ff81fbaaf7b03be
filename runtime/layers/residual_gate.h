// What stands between a branch and the stream that it is added to. Plain: nothing. Gated (LiGR): the branch is
// multiplied by sigmoid(W x + b) of the stream x, entry by entry.
//
//   gate.Forward(context, x, branch);                       // then x + branch
//   const float* dbranch = gate.Backward(context, x, dy);   // dy: the gradient of the gated branch
//   gate.BackwardStream(context, x, dx, sink);              // what the gate adds to the gradient of x
#ifndef WISP_RUNTIME_LAYERS_RESIDUAL_GATE_H_
#define WISP_RUNTIME_LAYERS_RESIDUAL_GATE_H_

#include <optional>
#include <vector>

#include "runtime/layers/context.h"
#include "runtime/layers/factors.h"
#include "runtime/layers/linear.h"

namespace wisp {

class ResidualGate {
 public:
  // Of block `index`; `weight` and `bias` are the roles of its parameters. Plain where the architecture has none.
  [[gnu::cold]] ResidualGate(const Architecture& architecture, const std::vector<ParameterSpec>& parameters,
                             ParameterRole weight, ParameterRole bias, uint32_t index, BufferPlan& plan);

  // x, branch [rows, D]; the branch is replaced by the gated one.
  void Forward(const RecordContext& context, const float* x, float* branch) const;

  // The gradient of the branch [rows, D]; dy itself where the residual is plain. Valid until the record is finished.
  const float* Backward(const RecordContext& context, const float* dy) const;
  // After Backward: adds to dx and emits the gate's factors.
  void BackwardStream(const RecordContext& context, const float* x, float* dx, FactorSink& sink) const;

 private:
  size_t d_;
  bool keeps_branch_;  // Backward reads it
  std::optional<Linear> linear_;
  Slot<float> gate_, branch_, dgate_, dbranch_;  // W x + b; the branch before it was gated
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_RESIDUAL_GATE_H_
