// Rotary positions: one thread for each pair.
#include "kernels/cuda/fill.h"
#include "kernels/cuda/for_each.h"
#include "kernels/cuda/records.h"
#include "kernels/cuda/stages/rotary.h"

namespace wisp::kernels::cuda {
namespace {

// Each row of blocks handles one record.
__global__ void RotateRecords(RotaryArgs<> a, LaunchedRecords records) {
  const size_t begin = records.begin[blockIdx.y], rows = records.begin[blockIdx.y + 1] - begin;
  const size_t of_row = a.heads * (a.rotated / 2);
  for (size_t i = GlobalThread(); i < rows * of_row; i += AllThreads()) {
    const auto [r, pair] = SplitBy(i, of_row);
    RotatePair(a, a.x_RD + (begin + r) * a.ldx, a.first_position + r, pair);
  }
}

void Rotary(const RotaryArgs<>& a) {
  const size_t of_row = a.heads * (a.rotated / 2);
  if (of_row == 0) return;
  if (IsGathering() && a.records.begin_B == nullptr) {  // otherwise the kernel for several records, as in attention
    return RunStage<RotaryStage>(BlocksFor(a.rows * of_row, kStageThreads), WithoutRecords(a));
  }
  ForRecords(a.records, a.rows, [&](const LaunchedRecords& records) {
    const Grid grid = {.blocks = BlocksFor(FindLongest(records) * of_row, 256), .blocks_y = records.count};
    if (grid.blocks > 0) Launch<RotateRecords>(grid, WithoutRecords(a), records);
  });
}

}  // namespace

void FillRotary(OpTable& table) { table.rotary = Rotary; }

}  // namespace wisp::kernels::cuda
