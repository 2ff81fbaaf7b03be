// Optimizer steps.
#include "kernels/cuda/fill.h"
#include "kernels/cuda/for_each.h"

namespace wisp::kernels::cuda {
namespace {

// The index in w, m and v that element i of the gradient belongs to.
template <class Args>
__device__ inline size_t Of(const Args& a, size_t i) {
  if (a.row_J == nullptr) return i;
  const Split at = SplitBy(i, a.d);
  return size_t{a.row_J[at.quotient]} * a.d + at.rest;
}

void Adam(const AdamArgs<>& a) {
  ForEach(a.n, [a] __device__(size_t i) {
    const size_t to = Of(a, i);
    const float g = a.g[i], w = a.w[to];
    const float m = a.beta1 * a.m[to] + (1.0f - a.beta1) * g;
    const float v = a.beta2 * a.v[to] + (1.0f - a.beta2) * g * g;
    const float step = m * a.correction1 / (sqrtf(v * a.correction2) + a.epsilon);
    a.w[to] = w - a.rate * (step + a.decay * w);
    a.m[to] = m;
    a.v[to] = v;
  });
}

void Sgd(const SgdArgs<>& a) {
  ForEach(a.n, [a] __device__(size_t i) {
    const size_t to = Of(a, i);
    float m = a.g[i];
    if (a.m != nullptr) m = a.m[to] = a.momentum * a.m[to] + m;
    a.w[to] -= a.rate * (m + a.decay * a.w[to]);
  });
}

}  // namespace

void FillOptimizer(OpTable& table) {
  table.adam = ForTraining(Adam);
  table.sgd = ForTraining(Sgd);
}

}  // namespace wisp::kernels::cuda
