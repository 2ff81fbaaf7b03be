// The effect of noise in the weights on activations (Re-Attention).
#include "kernels/cuda/fill.h"
#include "kernels/cuda/for_each.h"
#include "kernels/cuda/normal.h"

namespace wisp::kernels::cuda {
namespace {

// Limits to [0, kMaxVariance]; NaN becomes 0.
__device__ inline float Hold(float v) {
  if (!(v > 0)) return 0;
  return v < kMaxVariance ? v : kMaxVariance;
}

// A warp for each row.
__global__ void AddLinearVariance(LinearVarianceArgs<> a) {
  const size_t warps = AllThreads() / kWarp;
  for (size_t r = GlobalThread() / kWarp; r < a.rows; r += warps) {
    float sum = 0;
    for (size_t k = Lane(); k < a.k; k += kWarp) {
      const float mean = a.mean_RK[r * a.ldmean + k];
      sum += mean * mean;
      if (a.variance_RK != nullptr) sum += a.variance_RK[r * a.ldvariance + k];
    }
    const float added = a.weight_variance * WarpSum(sum) + a.bias_variance;
    for (size_t n = Lane(); n < a.n; n += kWarp) a.y_RN[r * a.ldy + n] = Hold(a.y_RN[r * a.ldy + n] + added);
  }
}

void LinearVariance(const LinearVarianceArgs<>& a) {
  if (a.rows > 0) Launch<AddLinearVariance>({.blocks = BlocksFor(a.rows * kWarp, 256)}, a);
}

void LayerNormVariance(const LayerNormVarianceArgs<>& a) {
  ForEachElement(a.rows, a.d, [a] __device__(size_t r, size_t i) {
    const float factor = a.gain_D[i] * a.rstd_R[r];
    a.y_RD[r * a.d + i] = Hold(a.x_RD[r * a.d + i] * (factor * factor));
  });
}

// The formula of kernels/reference, written so that nothing cancels if |z| is large.
void ActivationVariance(const ActivationVarianceArgs<>& a) {
  ForEach(a.n, [a] __device__(size_t i) {
    const float variance = a.x[i];
    if (!(variance > 0)) {
      a.y[i] = 0;
      return;
    }
    const float z = fmaxf(-8.0f, fminf(8.0f, a.mean[i] / sqrtf(variance)));
    const float cdf = NormalCdf(z), density = NormalDensity(z);
    const float share = cdf + z * cdf * (z * NormalCdf(-z)) + z * density * (1.0f - 2.0f * cdf) - density * density;
    a.y[i] = Hold(variance * share);
  });
}

}  // namespace

void FillVariance(OpTable& table) {
  table.linear_variance = LinearVariance;
  table.layer_norm_variance = LayerNormVariance;
  table.activation_variance = ActivationVariance;
}

}  // namespace wisp::kernels::cuda
