// How numbers get from a kernel to the host within one call of an op.
#ifndef WISP_KERNELS_CUDA_RESULTS_H_
#define WISP_KERNELS_CUDA_RESULTS_H_

#include <cstddef>

namespace wisp::kernels::cuda {

// Memory that a kernel writes and the host reads after Wait: `count` doubles, which this thread's next call takes over.
// Null where there is none left; Wait then returns false.
double* Results(size_t count);

// Until all that was launched has run. False where some of it failed, now or earlier: nothing that was
// computed since can be trusted.
bool Wait();

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_RESULTS_H_
