// Activations, alone and gated.
#include "kernels/cuda/fill.h"
#include "kernels/cuda/stages/elementwise.h"

namespace wisp::kernels::cuda {
namespace {

__device__ inline float Slope(float x, Activation kind) {
  switch (kind) {
    case Activation::kRelu:
      return x > 0 ? 1.0f : 0.0f;
    case Activation::kGelu:
      return NormalCdf(x) + x * NormalDensity(x);
    case Activation::kGeluTanh: {
      if (fabsf(x) > 10.0f) return x < 0 ? 0.0f : 1.0f;  // beyond this, squares of x may overflow
      const float u = x * (kGeluLinear + kGeluCubic * x * x);
      const float inner = x * (kGeluLinear + 3 * kGeluCubic * x * x);
      return Logistic(u) * (1.0f + inner * Logistic(-u));
    }
    case Activation::kSilu:
      return Logistic(x) * (1.0f + x * Logistic(-x));
    case Activation::kSigmoid:
      return Logistic(x) * Logistic(-x);
  }
  return 1.0f;
}

void Forward(const ActivationForwardArgs<>& a) { RunStage<ActivationStage>(BlocksFor(a.n, kStageThreads), a); }

void Backward(const ActivationBackwardArgs<>& a) {
  ForEach(a.n, [a] __device__(size_t i) {
    // Where relu is flat the gradient is zero, whatever dy is.
    const bool flat = a.kind == Activation::kRelu && !(a.x[i] > 0);
    a.dx[i] = flat ? 0.0f : a.dy[i] * Slope(a.x[i], a.kind);
  });
}

void GatedForward(const GatedActivationForwardArgs<>& a) {
  RunStage<GatedActivationStage>(BlocksFor(a.rows * a.n, kStageThreads), a);
}

void GatedBackward(const GatedActivationBackwardArgs<>& a) {
  ForEachElement(a.rows, a.n, [a] __device__(size_t r, size_t i) {
    const float dy = a.dy_RF[r * a.lddy + i], gate = a.gate_RF[r * a.ldgate + i], up = a.up_RF[r * a.ldup + i];
    a.dgate_RF[r * a.lddgate + i] = dy * up * Slope(gate, a.kind);
    a.dup_RF[r * a.lddup + i] = dy * Activated(gate, a.kind);
  });
}

}  // namespace

void FillActivation(OpTable& table) {
  table.activation_forward = Forward;
  table.activation_backward = ForTraining(Backward);
  table.gated_activation_forward = GatedForward;
  table.gated_activation_backward = ForTraining(GatedBackward);
}

}  // namespace wisp::kernels::cuda
