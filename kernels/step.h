// Arguments of the ops that finish a training step in a device's memory: they add noise to the sum, and record how much
// the parameters move.
//
// Tables of the host lack them (null), except for the reference: plain loops do both in host memory.
#ifndef WISP_KERNELS_STEP_H_
#define WISP_KERNELS_STEP_H_

#include <cstddef>
#include <cstdint>

namespace wisp::kernels {

// y_i = scale * (sum_i + noise_i). The integers are added exactly. Their sum is rounded to float, then the product.
template <class T = float>
struct NoisedSumArgs {
  const int64_t* sum;
  const int64_t* noise;
  T* y;
  size_t n;
  T scale;
};

// variance_R[r] += scale * mean over i of min(1, size / (sqrt(v_ri * correction) + epsilon))^2, with the mean in
// double. v [rows, n] is dense; if it is null the mean is size^2. If row_R is given, r stands for row_R[r] of v and of
// variance; no row is named twice. The max error is 1e-5 relative to what is added.
template <class T = float>
struct AddSquaredMovesArgs {
  const T* v_RN;
  T* variance_R;
  size_t rows, n;
  T size, correction, epsilon;
  double scale;
  const uint32_t* row_R = nullptr;
};

}  // namespace wisp::kernels

#endif  // WISP_KERNELS_STEP_H_
