// Ops that look rows up and move them.
#include "kernels/cuda/fill.h"
#include "kernels/cuda/for_each.h"
#include "kernels/cuda/records.h"
#include "kernels/cuda/scatter.h"
#include "kernels/cuda/stages/rows.h"

namespace wisp::kernels::cuda {
namespace {

void EmbedForward(const EmbedForwardArgs<>& a) { RunStage<EmbedStage>(BlocksFor(a.rows * a.d, kStageThreads), a); }

void EmbedHalf(const EmbedHalfArgs& a) { RunStage<EmbedHalfStage>(BlocksFor(a.rows * a.d, kStageThreads), a); }

void EmbedVariance(const EmbedVarianceArgs<>& a) {
  ForEachElement(a.rows, a.d, [a] __device__(size_t t, size_t i) {
    const int32_t id = a.ids_T[t];
    float variance = id >= 0 ? a.scale * a.scale * a.variance_M[id] + a.position_variance : 0.0f;
    if (variance > kMaxVariance) variance = kMaxVariance;
    a.y_TD[t * a.d + i] = variance;
  });
}

// Each row of blocks handles one record.
__global__ void WritePositions(const int32_t* ids_R, int32_t* position_R, size_t end, LaunchedRecords records) {
  const size_t begin = records.begin[blockIdx.y], rows = records.begin[blockIdx.y + 1] - begin;
  const size_t first = end == 0 ? 0 : end - rows;
  for (size_t t = GlobalThread(); t < rows; t += AllThreads()) {
    position_R[begin + t] = ids_R[begin + t] < 0 ? -1 : static_cast<int32_t>(first + t);
  }
}

void PositionIds(const PositionIdsArgs& a) {
  ForRecords(a.records, a.records.rows, [&](const LaunchedRecords& records) {
    const Grid grid = {.blocks = BlocksFor(FindLongest(records), 256, 16), .blocks_y = records.count};
    if (grid.blocks > 0) Launch<WritePositions>(grid, a.ids_R, a.position_R, a.end, records);
  });
}

__global__ void AddRows(ScatterAddArgs<> a) { AddRowsById(a); }

void ScatterAdd(const ScatterAddArgs<>& a) {
  if (a.rows > 0)
    Launch<AddRows>({.blocks = BlocksFor(a.rows * kWarp, kScatterThreads), .threads = kScatterThreads}, a);
}

void CopyRows(const CopyRowsArgs<>& a) {
  ForEachElement(a.rows, a.d, [a] __device__(size_t r, size_t i) {
    const size_t from = a.from_R != nullptr ? a.from_R[r] : r, to = a.to_R != nullptr ? a.to_R[r] : r;
    a.y_RD[to * a.ldy + i] = a.x_RD[from * a.ldx + i];
  });
}

void GatherColumns(const GatherColumnsArgs<>& a) {
  ForEachElement(a.rows, a.columns, [a] __device__(size_t r, size_t j) {
    const int64_t column = int64_t{a.column_J[j]} - a.first;
    if (column >= 0 && column < static_cast<int64_t>(a.n)) {
      a.y_RJ[r * a.ldy + j] = a.x_RN[r * a.ldx + static_cast<size_t>(column)];
    }
  });
}

}  // namespace

void FillEmbedding(OpTable& table) {
  table.embed_forward = EmbedForward;
  table.embed_half = EmbedHalf;
  table.embed_variance = EmbedVariance;
  table.position_ids = ForTraining(PositionIds);
  table.scatter_add = ForTraining(ScatterAdd);
  table.copy_rows = ForTraining(CopyRows);
  table.gather_columns = ForTraining(GatherColumns);
}

}  // namespace wisp::kernels::cuda
