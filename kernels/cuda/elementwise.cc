// Ops that treat each number by itself: scaling, functions, dropout.
#include "kernels/cuda/fill.h"
#include "kernels/cuda/for_each.h"
#include "kernels/cuda/records.h"
#include "kernels/cuda/stages/elementwise.h"

namespace wisp::kernels::cuda {
namespace {

void Scale(const ScaleArgs<>& a) { RunStage<ScaleStage>(BlocksFor(a.n, kStageThreads), a); }

// Bytes before and after the aligned words of four are cleared one by one.
void Clear(const ClearArgs& a) {
  auto* bytes = static_cast<uint8_t*>(a.y);
  const size_t before = std::min<size_t>(a.bytes, (4 - reinterpret_cast<uintptr_t>(bytes) % 4) % 4);
  const size_t words = (a.bytes - before) / 4;
  auto* word = reinterpret_cast<uint32_t*>(bytes + before);
  ForEach(words, [word] __device__(size_t i) { word[i] = 0; });
  const size_t ends = a.bytes - 4 * words;
  ForEach(ends, [=] __device__(size_t i) { bytes[i < before ? i : i + 4 * words] = 0; });
}

void Map(const MapArgs<>& a) { RunStage<MapStage>(BlocksFor(a.n, kStageThreads), a); }

void ApplyKeep(const ApplyKeepArgs<>& a) {
  ForEach(a.n, [a] __device__(size_t i) { a.y[i] = a.keep[i] != 0 ? a.x[i] * a.scale : 0.0f; });
}

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15ull;

__host__ __device__ inline uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

struct Keys {
  uint64_t of[kMaxLaunchRecords];
};

// Each row of blocks handles one record.
__global__ void DrawMasks(uint8_t* keep_RW, size_t width, uint32_t threshold, LaunchedRecords records, Keys keys) {
  const unsigned b = blockIdx.y;
  const size_t begin = records.begin[b] * width, n = records.begin[b + 1] * width - begin;
  for (size_t i = GlobalThread(); i < n; i += AllThreads()) {
    const uint64_t bits = Mix(keys.of[b] + kGolden * (i / 4));
    keep_RW[begin + i] = static_cast<uint32_t>((bits >> (16 * (i % 4))) & 0xffff) >= threshold ? 1 : 0;
  }
}

void DrawKeep(const DrawKeepArgs& a) {
  if (a.records.rows == 0 || a.width == 0) return;
  ForRecords(a.records, a.records.rows, [&](const LaunchedRecords& records) {
    Keys keys = {};
    for (uint32_t b = 0; b < records.count; ++b) {
      keys.of[b] = Mix(MakeOptions(a.options_B, records.first + b).dropout_seed + kGolden * (a.site + 1));
    }
    const Grid grid = {.blocks = BlocksFor(a.width * FindLongest(records), 256, 64), .blocks_y = records.count};
    if (grid.blocks > 0) Launch<DrawMasks>(grid, a.keep_RW, a.width, a.threshold, records, keys);
  });
}

}  // namespace

void FillElementwise(OpTable& table) {
  table.scale = Scale;
  table.clear = ForTraining(Clear);
  table.map = Map;
  table.apply_keep = ApplyKeep;
  table.draw_keep = ForTraining(DrawKeep);
}

}  // namespace wisp::kernels::cuda
