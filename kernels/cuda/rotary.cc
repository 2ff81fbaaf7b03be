// Rotary positions: one thread for each pair.
#include "kernels/cuda/fill.h"
#include "kernels/cuda/for_each.h"
#include "kernels/cuda/records.h"

namespace wisp::kernels::cuda {
namespace {

// Pair i of all heads of a row that stands at `position`.
__device__ inline void RotatePair(const RotaryArgs<>& a, float* row, size_t position, size_t i) {
  const size_t pairs = a.rotated / 2, p = i % pairs;
  const bool halves = a.pairs == RotaryPairs::kHalves;
  float* x = row + i / pairs * a.head_width;
  float& first = x[halves ? p : 2 * p];
  float& second = x[halves ? p + pairs : 2 * p + 1];
  const float c = a.cos_TP[position * pairs + p], sine = a.sin_TP[position * pairs + p];
  const float s = a.rotation == Rotation::kInverse ? -sine : sine, before = first;
  first = before * c - second * s;
  second = before * s + second * c;
}

// One record for each row of blocks.
__global__ void RotateRecords(RotaryArgs<> a, RecordsOfLaunch records) {
  const size_t begin = records.begin[blockIdx.y], rows = records.begin[blockIdx.y + 1] - begin;
  const size_t of_row = a.heads * (a.rotated / 2);
  for (size_t i = GlobalThread(); i < rows * of_row; i += AllThreads()) {
    const size_t r = i / of_row;
    RotatePair(a, a.x_RD + (begin + r) * a.ldx, a.first_position + r, i % of_row);
  }
}

void Rotary(const RotaryArgs<>& a) {
  const size_t of_row = a.heads * (a.rotated / 2);
  if (of_row == 0) return;
  ForRecords(a.records, a.rows, [&](const RecordsOfLaunch& records) {
    const Grid grid = {.blocks = BlocksFor(LongestOf(records) * of_row, 256), .blocks_y = records.count};
    if (grid.blocks > 0) Launch(RotateRecords, grid, WithoutRecords(a), records);
  });
}

}  // namespace

void FillRotary(OpTable& table) { table.rotary = Rotary; }

}  // namespace wisp::kernels::cuda
