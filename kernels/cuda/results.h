// Memory that ops use within one call: for numbers that a kernel passes to the host, and for parts of a sum.
#ifndef WISP_KERNELS_CUDA_RESULTS_H_
#define WISP_KERNELS_CUDA_RESULTS_H_

#include <cstddef>

namespace wisp::kernels::cuda {

// Memory for `count` doubles that a kernel writes and the host reads after Wait. This thread's next call reuses it.
// Null if no memory is left; Wait then returns false.
double* Results(size_t count);

// kScratchFloats of the device's memory for the launches of one call of an op. They are zero, and the call's last
// launch makes them zero again. They last as long as the process, so that nothing can fail for lack of them.
inline constexpr size_t kScratchFloats = size_t{1} << 19;
float* Scratch();

// Waits until everything launched has run. False if any of it failed, now or earlier: nothing computed since then can
// be trusted.
bool Wait();

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_RESULTS_H_
