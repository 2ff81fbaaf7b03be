// Bytes that travel with a program: from the host into the device's memory, and results back.
#ifndef WISP_KERNELS_CUDA_STAGES_COPIES_H_
#define WISP_KERNELS_CUDA_STAGES_COPIES_H_

#include "kernels/cuda/stage.h"

namespace wisp::kernels::cuda {

// Copies words to `to`. They lie right behind this struct in the program.
struct CopyInArgs {
  uint32_t* to;
  uint64_t words;
};

struct CopyInStage {
  using Args = CopyInArgs;
  static constexpr StageKind kKind = StageKind::kCopyIn;
  static __device__ void Run(const Args& a, const BlockPlace& block) {
    const auto* from = reinterpret_cast<const uint32_t*>(&a + 1);
    for (size_t i = GetThread(block); i < a.words; i += CountThreads(block)) a.to[i] = from[i];
  }
};

// Copies to memory from Results (results.h).
struct CopyOutArgs {
  const uint32_t* from;
  uint32_t* to;
  uint64_t words;
};

struct CopyOutStage {
  using Args = CopyOutArgs;
  static constexpr StageKind kKind = StageKind::kCopyOut;
  static __device__ void Run(const Args& a, const BlockPlace& block) {
    for (size_t i = GetThread(block); i < a.words; i += CountThreads(block)) a.to[i] = a.from[i];
  }
};

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_STAGES_COPIES_H_
