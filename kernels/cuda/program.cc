// The program of a thread: its storage, and the kernel that runs it.
//
// A program is passed as the kernel's argument. So it is submitted in one piece with the launch, without a copy before
// it, and every block reads it from a constant cache. From pinned memory each block would fetch each stage over the
// bus.
#include "kernels/cuda/program.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "kernels/cuda/results.h"
#include "kernels/cuda/stages/attention.h"
#include "kernels/cuda/stages/copies.h"
#include "kernels/cuda/stages/elementwise.h"
#include "kernels/cuda/stages/heads.h"
#include "kernels/cuda/stages/norms.h"
#include "kernels/cuda/stages/products.h"
#include "kernels/cuda/stages/rotary.h"
#include "kernels/cuda/stages/rows.h"
#include "kernels/cuda/stages/tensor_products.h"
#include "kernels/cuda/stages/top_k.h"
#ifdef __CUDACC__
#include "kernels/cuda/gpu/grid_barrier.h"
#endif

namespace wisp::kernels::cuda {
namespace {

// Sizes of kernel arguments: at most 32,764 bytes, and 4 KB before CUDA 12.1. Most programs fit the smaller size, which
// is faster to submit.
constexpr size_t kSmallBytes = 6144, kLargeBytes = 32640;
constexpr size_t kCopyInBytes = 8192, kCopyOutBytes = 16384;  // the most that travels with a program
constexpr size_t kAlignment = 16;

template <size_t kBytes>
struct alignas(kAlignment) Program {
  unsigned char stages[kBytes];  // heads, each followed by its arguments
  uint32_t used = 0;             // in bytes
};

constexpr size_t Aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

template <class Stage>
__device__ inline void RunAs(const void* arguments, const BlockPlace& block) {
  Stage::Run(*static_cast<const typename Stage::Args*>(arguments), block);
}

__device__ inline void RunStageBlock(StageKind kind, const void* arguments, const BlockPlace& block) {
  switch (kind) {
    case StageKind::kActivation:
      return RunAs<ActivationStage>(arguments, block);
    case StageKind::kAttention1:
      return RunAs<AttendStage<1>>(arguments, block);
    case StageKind::kAttention2:
      return RunAs<AttendStage<2>>(arguments, block);
    case StageKind::kAttention4:
      return RunAs<AttendStage<4>>(arguments, block);
    case StageKind::kAttention8:
      return RunAs<AttendStage<8>>(arguments, block);
    case StageKind::kClipRows:
      return RunAs<ClipRowsStage>(arguments, block);
    case StageKind::kCopyIn:
      return RunAs<CopyInStage>(arguments, block);
    case StageKind::kCopyOut:
      return RunAs<CopyOutStage>(arguments, block);
    case StageKind::kEmbed:
      return RunAs<EmbedStage>(arguments, block);
    case StageKind::kEmbedHalf:
      return RunAs<EmbedHalfStage>(arguments, block);
    case StageKind::kGatedActivation:
      return RunAs<GatedActivationStage>(arguments, block);
    case StageKind::kLayerNorm:
      return RunAs<LayerNormStage>(arguments, block);
    case StageKind::kMap:
      return RunAs<MapStage>(arguments, block);
    case StageKind::kMeanRows:
      return RunAs<MeanRowsStage>(arguments, block);
    case StageKind::kMultiplyHalf:
      return RunAs<MultiplyHalfStage>(arguments, block);
    case StageKind::kProductFewRows:
      return RunAs<FewRowsStage>(arguments, block);
    case StageKind::kProductTinyTiles:
      return RunAs<TilesStage<2>>(arguments, block);
    case StageKind::kProductSmallTiles:
      return RunAs<TilesStage<4>>(arguments, block);
    case StageKind::kProductLargeTiles:
      return RunAs<TilesStage<8>>(arguments, block);
    case StageKind::kProductTf32:
      return RunAs<TensorStage<Tf32>>(arguments, block);
    case StageKind::kProductFloat16:
      return RunAs<TensorStage<Float16>>(arguments, block);
    case StageKind::kProductBfloat16:
      return RunAs<TensorStage<Bfloat16>>(arguments, block);
    case StageKind::kProductInt8:
      return RunAs<TensorStage<Int8>>(arguments, block);
    case StageKind::kRmsNorm:
      return RunAs<RmsNormStage>(arguments, block);
    case StageKind::kRotary:
      return RunAs<RotaryStage>(arguments, block);
    case StageKind::kScale:
      return RunAs<ScaleStage>(arguments, block);
    case StageKind::kScoreFewRows:
      return RunAs<ScoreFewRowsStage>(arguments, block);
    case StageKind::kTopK:
      return RunAs<TopKStage>(arguments, block);
  }
}

template <size_t kBytes>
__global__ void __launch_bounds__(kStageThreads, 1) RunProgram(WISP_IN_PLACE(Program<kBytes>) program) {
  bool narrow_before = false;
  for (uint32_t at = 0; at < program.used;) {
    const StageHead& head = *reinterpret_cast<const StageHead*>(program.stages + at);
    const void* arguments = program.stages + at + Aligned(sizeof(StageHead));
    const bool narrow = head.narrow != 0 || gridDim.x == 1;
    if (at > 0 && narrow && narrow_before) {
      __syncthreads();
    } else if (at > 0) {
      GridBarrier();
    }
    const unsigned first = narrow && blockIdx.x > 0 ? head.blocks : blockIdx.x, step = narrow ? 1 : gridDim.x;
    for (unsigned block = first; block < head.blocks; block += step) {
      if (block != first) __syncthreads();  // the next block reuses the shared memory
      RunStageBlock(head.kind, arguments, {block, head.blocks});
    }
    narrow_before = narrow;
    at += static_cast<uint32_t>(Aligned(sizeof(StageHead)) + Aligned(head.size));
  }
}

// The program that one host thread records.
struct Recorder {
  bool gathers = false;
  unsigned most_blocks = 1;  // the most blocks of a stage that is not narrow
  Program<kLargeBytes> program;

  unsigned char* Append(const StageHead& head, size_t size) {
    unsigned char* place = program.stages + program.used;
    std::memcpy(place, &head, sizeof(head));
    program.used += static_cast<uint32_t>(Aligned(sizeof(StageHead)) + Aligned(size));
    if (head.narrow == 0) most_blocks = std::max(most_blocks, head.blocks);
    return place + Aligned(sizeof(StageHead));
  }
  bool HasRoom(size_t size) const { return program.used + Aligned(sizeof(StageHead)) + Aligned(size) <= kLargeBytes; }
};

Recorder& TheRecorder() {
  static thread_local Recorder recorder;
  return recorder;
}

// 0 if the device cannot run blocks together, or has refused to.
std::atomic<unsigned>& CountDeviceBlocks() {
  static std::atomic<unsigned> blocks = std::min(BlocksTogether<RunProgram<kSmallBytes>>(kStageThreads),
                                                 BlocksTogether<RunProgram<kLargeBytes>>(kStageThreads));
  return blocks;
}

// A program that the device refuses runs on one block, which needs no barrier of the grid: slowly, and with the same
// bits. From then on every op is launched by itself.
template <size_t kBytes>
void LaunchProgram(const Program<kBytes>& program, unsigned most_blocks) {
  const unsigned blocks = std::min(most_blocks, std::max(1u, CountDeviceBlocks().load()));
  if (LaunchTogether<RunProgram<kBytes>>(blocks, kStageThreads, program)) return;
  CountDeviceBlocks() = 0;
  LaunchTogether<RunProgram<kBytes>>(1, kStageThreads, program);
}

// Finds space in this thread's program and launches the program first if it is full. Null if the thread does not
// gather or the stage never fits.
unsigned char* RoomFor(const StageHead& head) {
  Recorder& recorder = TheRecorder();
  if (!IsGathering() || Aligned(sizeof(StageHead)) + Aligned(head.size) > kLargeBytes) return nullptr;
  if (!recorder.HasRoom(head.size)) FlushProgram();
  return recorder.Append(head, head.size);
}

// True if these are whole words of four bytes.
bool AreWords(const void* on_device, size_t bytes) {
  return reinterpret_cast<uintptr_t>(on_device) % 4 == 0 && bytes % 4 == 0;
}

}  // namespace

void Gather(void*, Launches launches) {
  FlushProgram();
  TheRecorder().gathers = launches == Launches::kTogether && CountDeviceBlocks() > 0;
}

bool IsGathering() { return TheRecorder().gathers && CountDeviceBlocks() > 0; }

bool Record(const StageHead& head, const void* arguments) {
  unsigned char* room = RoomFor(head);
  if (room == nullptr) return false;
  std::memcpy(room, arguments, head.size);
  return true;
}

void FlushProgram() {
  Recorder& recorder = TheRecorder();
  if (recorder.program.used == 0) return;
  if (recorder.program.used <= kSmallBytes) {
    Program<kSmallBytes> small;
    std::memcpy(small.stages, recorder.program.stages, recorder.program.used);
    small.used = recorder.program.used;
    LaunchProgram(small, recorder.most_blocks);
  } else {
    LaunchProgram(recorder.program, recorder.most_blocks);
  }
  recorder.program.used = 0;
  recorder.most_blocks = 1;
}

bool CopyInWithProgram(void* to, const void* from, size_t bytes) {
  const StageHead head = {
      .kind = StageKind::kCopyIn, .blocks = 1, .size = static_cast<uint32_t>(sizeof(CopyInArgs) + bytes), .narrow = 1};
  unsigned char* room = bytes <= kCopyInBytes && AreWords(to, bytes) ? RoomFor(head) : nullptr;
  if (room == nullptr) {
    FlushProgram();
    return false;
  }
  const CopyInArgs args = {.to = static_cast<uint32_t*>(to), .words = bytes / 4};
  std::memcpy(room, &args, sizeof(args));
  std::memcpy(room + sizeof(args), from, bytes);
  return true;
}

bool CopyOutWithProgram(void* to, const void* from, size_t bytes) {
  const bool fits = IsGathering() && bytes <= kCopyOutBytes && AreWords(from, bytes);
  double* results = fits ? Results((bytes + sizeof(double) - 1) / sizeof(double)) : nullptr;
  if (results == nullptr) {
    FlushProgram();
    return false;
  }
  RunStage<CopyOutStage>(
      1, {.from = static_cast<const uint32_t*>(from), .to = reinterpret_cast<uint32_t*>(results), .words = bytes / 4});
  FlushProgram();
  const bool arrived = Wait();
  if (arrived) {
    std::memcpy(to, results, bytes);
  } else {
    std::memset(to, 0, bytes);
  }
  return true;
}

}  // namespace wisp::kernels::cuda
