// Launches put together: what a thread asks for is recorded as a program of stages, and one launch runs them all, with
// a barrier over the whole device between two of them.
//
// For the latency of small models, where launches and not sums take the time. A thread turns it on for itself
// (MemoryTable::gather). An op that is no stage, whatever returns numbers, and a copy that is too large run the
// program first: work is done in the order of the calls, always.
#ifndef WISP_KERNELS_CUDA_PROGRAM_H_
#define WISP_KERNELS_CUDA_PROGRAM_H_

#include <cstddef>
#include <cstdint>

#include "kernels/device.h"

namespace wisp::kernels::cuda {

// Of every block of every stage.
inline constexpr unsigned kStageThreads = 256;

enum class StageKind : uint32_t {
  kActivation,
  kAttention1,  // of so many columns a lane
  kAttention2,
  kAttention4,
  kAttention8,
  kClipRows,
  kCopyIn,
  kCopyOut,
  kEmbed,
  kEmbedHalf,
  kGatedActivation,
  kLayerNorm,
  kMap,
  kMeanRows,
  kMultiplyHalf,
  kProductFewRows,
  kProductSmallTiles,
  kProductLargeTiles,
  kProductTf32,  // on tensor cores
  kProductFloat16,
  kProductBfloat16,
  kProductInt8,
  kRmsNorm,
  kRotary,
  kScale,
  kScoreFewRows,
  kTopK,
};

// What stands before a stage's arguments, which are `size` bytes.
struct StageHead {
  StageKind kind;
  uint32_t blocks, size;
};

// From now on, in this thread.
void Gather(void* stream, Launches launches);
bool IsGathering();
// Keeps a stage for later. False where this thread does not gather, or the stage is too large for any program.
bool Record(const StageHead& head, const void* arguments);
// Launches what was recorded in this thread.
void FlushProgram();

// Of MemoryTable's copies. True: the bytes have been taken along, or have come with the program's results. False: the
// program has been launched, and the bytes are to be copied as ever.
bool CopyInWithProgram(void* to, const void* from, size_t bytes);
bool CopyOutWithProgram(void* to, const void* from, size_t bytes);

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_PROGRAM_H_
