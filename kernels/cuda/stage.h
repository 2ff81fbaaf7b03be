// A stage: a kernel's work as a function of its arguments and of a block's place. It is launched alone, or a single
// launch runs it with other stages, one after another (program.h).
//
//   struct ScaleStage {
//     using Args = ScaleArgs<>;
//     static constexpr StageKind kKind = StageKind::kScale;
//     static __device__ void Run(const Args& a, const BlockPlace& block) { ... }
//   };
//   RunStage<ScaleStage>(BlocksFor(a.n, kStageThreads), a);
//
// The result of a stage does not depend on how many blocks of the device share its blocks. So a launch of its own and a
// program give the same bits.
#ifndef WISP_KERNELS_CUDA_STAGE_H_
#define WISP_KERNELS_CUDA_STAGE_H_

#include <type_traits>

#include "kernels/cuda/device_code.h"
#include "kernels/cuda/program.h"

namespace wisp::kernels::cuda {

// The index of a stage's block, and the number of its blocks. Not blockIdx: in a program, one block of the device runs
// many of them.
struct BlockPlace {
  unsigned index, count;
};

__device__ inline size_t GetThread(const BlockPlace& block) { return size_t{block.index} * blockDim.x + threadIdx.x; }
__device__ inline size_t CountThreads(const BlockPlace& block) { return size_t{block.count} * blockDim.x; }

template <class Stage>
__global__ void __launch_bounds__(kStageThreads, 2) CallStage(typename Stage::Args a) {
  Stage::Run(a, {blockIdx.x, gridDim.x});
}

// Runs a stage with `blocks` blocks of kStageThreads; nothing if `blocks` is 0. Launches it now, or records it while
// the thread gathers. `work`: multiply-adds of a product (kNarrowWork).
template <class Stage>
void RunStage(unsigned blocks, const typename Stage::Args& args, size_t work = 0) {
  static_assert(std::is_trivially_copyable_v<typename Stage::Args>);
  if (blocks == 0) return;
  if (IsGathering()) {
#ifndef __CUDACC__
    emulate::CheckArgument(args);
#endif
    if (Record({.kind = Stage::kKind, .blocks = blocks, .size = sizeof(args), .narrow = IsNarrow(blocks, work)}, &args))
      return;
  }
  Launch<CallStage<Stage>>({.blocks = blocks, .threads = kStageThreads}, args);
}

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_STAGE_H_
