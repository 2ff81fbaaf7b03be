// The gate between a branch and the stream that it is added to. Plain residuals: the branch is unchanged. Gated (LiGR):
// the branch is multiplied by sigmoid(W x + b) of the stream x, entry by entry.
//
//   gate.Forward(context, x, branch);                       // then x + branch
//   const float* dbranch = gate.Backward(context, x, dy);   // dy: the gradient of the gated branch
//   gate.BackwardStream(context, x, dx, sink);              // adds the gate's part to the gradient of x
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
  // The gate of block `index`. `weight` and `bias` are the roles of its parameters. Plain if the architecture has no
  // gates.
  [[gnu::cold]] ResidualGate(const Architecture& architecture, const std::vector<ParameterSpec>& parameters,
                             ParameterRole weight, ParameterRole bias, uint32_t index, BufferPlan& plan);

  // x, branch [rows, D]. Gates `branch` in place.
  void Forward(const RecordContext& context, const float* x, float* branch) const;

  // Returns the gradient of the branch [rows, D]; dy itself if the residual is plain. Valid until the record is
  // finished.
  const float* Backward(const RecordContext& context, const float* dy) const;
  // Call it after Backward. Adds the gate's part to dx and emits the gate's factors.
  void BackwardStream(const RecordContext& context, const float* x, float* dx, FactorSink& sink) const;

 private:
  size_t d_;
  bool keeps_branch_;  // true if Backward reads the branch
  std::optional<Linear> linear_;
  Slot<float> gate_, branch_, dgate_, dbranch_;  // gate_: W x + b; branch_: the branch before gating
};

}  // namespace wisp

#endif  // WISP_RUNTIME_LAYERS_RESIDUAL_GATE_H_
