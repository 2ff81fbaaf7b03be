// Ops that treat each number by itself: scaling, functions, activations.
#ifndef WISP_KERNELS_CUDA_STAGES_ELEMENTWISE_H_
#define WISP_KERNELS_CUDA_STAGES_ELEMENTWISE_H_

#include "kernels/cuda/for_each.h"
#include "kernels/cuda/normal.h"
#include "kernels/cuda/stage.h"

namespace wisp::kernels::cuda {

// (1 + tanh(u)) / 2 = Logistic(2 u), and 2 u = x (kGeluLinear + kGeluCubic x^2).
inline constexpr float kGeluLinear = 1.59576912f, kGeluCubic = 0.0713548163f;

__device__ inline float Activated(float x, Activation kind) {
  switch (kind) {
    case Activation::kRelu:
      return x > 0 ? x : 0.0f;
    case Activation::kGelu:
      return x * NormalCdf(x);
    case Activation::kGeluTanh:
      return x * Logistic(x * (kGeluLinear + kGeluCubic * x * x));
    case Activation::kSilu:
      return x * Logistic(x);
    case Activation::kSigmoid:
      return Logistic(x);
  }
  return x;
}

struct ActivationStage {
  using Args = ActivationForwardArgs<>;
  static constexpr StageKind kKind = StageKind::kActivation;
  static __device__ void Run(const Args& a, const BlockPlace& block) {
    for (size_t i = GetThread(block); i < a.n; i += CountThreads(block)) a.y[i] = Activated(a.x[i], a.kind);
  }
};

struct GatedActivationStage {
  using Args = GatedActivationForwardArgs<>;
  static constexpr StageKind kKind = StageKind::kGatedActivation;
  static __device__ void Run(const Args& a, const BlockPlace& block) {
    for (size_t at = GetThread(block); at < a.rows * a.n; at += CountThreads(block)) {
      const auto [r, i] = SplitBy(at, a.n);
      a.y_RF[r * a.ldy + i] = Activated(a.gate_RF[r * a.ldgate + i], a.kind) * a.up_RF[r * a.ldup + i];
    }
  }
};

struct MapStage {
  using Args = MapArgs<>;
  static constexpr StageKind kKind = StageKind::kMap;
  static __device__ void Run(const Args& a, const BlockPlace& block) {
    for (size_t i = GetThread(block); i < a.n; i += CountThreads(block)) {
      a.y[i] = a.function == Function::kTanh ? tanhf(a.x[i]) : __fmul_rn(a.x[i], a.x[i]);
    }
  }
};

struct ScaleStage {
  using Args = ScaleArgs<>;
  static constexpr StageKind kKind = StageKind::kScale;
  static __device__ void Run(const Args& a, const BlockPlace& block) {
    for (size_t i = GetThread(block); i < a.n; i += CountThreads(block)) {
      Put(a.y[i], __fmul_rn(a.a, a.x[i]), a.store);
    }
  }
};

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_STAGES_ELEMENTWISE_H_
