// Passes numbers from a kernel to the host within one call of an op.
#ifndef WISP_KERNELS_CUDA_RESULTS_H_
#define WISP_KERNELS_CUDA_RESULTS_H_

#include <cstddef>

namespace wisp::kernels::cuda {

// Memory for `count` doubles that a kernel writes and the host reads after Wait. This thread's next call reuses it.
// Null if no memory is left; Wait then returns false.
double* Results(size_t count);

// Waits until everything launched has run. False if any of it failed, now or earlier: nothing computed since then can
// be trusted.
bool Wait();

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_RESULTS_H_
