// Optimizer steps.
#include "kernels/cuda/fill.h"
#include "kernels/cuda/for_each.h"

namespace wisp::kernels::cuda {
namespace {

void Adam(const AdamArgs<>& a) {
  ForEach(a.n, [a] __device__(size_t i) {
    const float g = a.g[i], w = a.w[i];
    const float m = a.beta1 * a.m[i] + (1.0f - a.beta1) * g;
    const float v = a.beta2 * a.v[i] + (1.0f - a.beta2) * g * g;
    const float step = m * a.correction1 / (sqrtf(v * a.correction2) + a.epsilon);
    a.w[i] = w - a.rate * (step + a.decay * w);
    a.m[i] = m;
    a.v[i] = v;
  });
}

void Sgd(const SgdArgs<>& a) {
  ForEach(a.n, [a] __device__(size_t i) {
    float m = a.g[i];
    if (a.m != nullptr) m = a.m[i] = a.momentum * a.m[i] + m;
    a.w[i] -= a.rate * (m + a.decay * a.w[i]);
  });
}

}  // namespace

void FillOptimizer(OpTable& table) {
  table.adam = ForTraining(Adam);
  table.sgd = ForTraining(Sgd);
}

}  // namespace wisp::kernels::cuda
