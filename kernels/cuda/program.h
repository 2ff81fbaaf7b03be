// Combines launches. What a thread asks for is recorded as a program of stages. One launch then runs all stages, with a
// barrier over the whole device between two of them.
//
// This reduces the latency of small models, for which launches take longer than arithmetic. A thread turns it on for
// itself (MemoryTable::gather). An op that is not a stage, a call that returns numbers, and a copy that is too large
// run the program first. So work always runs in the order of the calls.
#ifndef WISP_KERNELS_CUDA_PROGRAM_H_
#define WISP_KERNELS_CUDA_PROGRAM_H_

#include <cstddef>
#include <cstdint>

#include "kernels/device.h"

namespace wisp::kernels::cuda {

// Threads in every block of every stage.
inline constexpr unsigned kStageThreads = 256;

enum class StageKind : uint32_t {
  kActivation,
  kAttention1,  // with this many columns for each lane
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
  kProductTinyTiles,
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

// The header before a stage's arguments, which have `size` bytes.
struct StageHead {
  StageKind kind;
  uint32_t blocks, size;
  uint32_t narrow;  // 1: the first block of the device runs all of it
};

// Two narrow stages in a row need no barrier over the device, because the same threads run both. That saves a few
// thousand cycles, in which one processor makes some hundred thousand multiply-adds. (Not measured on a device.)
inline constexpr size_t kNarrowBlocks = 4, kNarrowWork = size_t{1} << 17;
constexpr uint32_t IsNarrow(size_t blocks, size_t work) {
  return blocks <= kNarrowBlocks && work <= kNarrowWork ? 1 : 0;
}

// Sets how this thread's launches are submitted from now on.
void Gather(void* stream, Launches launches);
bool IsGathering();
// Records a stage for later. False if this thread does not gather, or if the stage is too large for any program.
bool Record(const StageHead& head, const void* arguments);
// Launches what this thread has recorded.
void FlushProgram();

// Handle copies of MemoryTable. True: the bytes were recorded with the program, or came back with its results. False:
// the program has been launched, and the caller must copy the bytes.
bool CopyInWithProgram(void* to, const void* from, size_t bytes);
bool CopyOutWithProgram(void* to, const void* from, size_t bytes);

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_PROGRAM_H_
