// Forms each record's gradient, bounds it and adds it.
#include <limits>

#include "kernels/cuda/fill.h"
#include "kernels/cuda/for_each.h"
#include "kernels/cuda/records.h"
#include "kernels/cuda/results.h"
#include "kernels/cuda/scatter.h"

namespace wisp::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256, kWarps = kThreads / kWarp;

// Each row of blocks handles one record.
__global__ void AddRecordRows(RecordScatterAddArgs<> a, LaunchedRecords records) {
  const size_t begin = records.begin[blockIdx.y];
  AddRowsById({.dx_TD = a.dx_RD + begin * a.lddx,
               .lddx = a.lddx,
               .ids_T = a.ids_R + begin,
               .table_MD = a.table_BMD + size_t{records.first + blockIdx.y} * a.stride,
               .ldtable = a.d,
               .rows = records.begin[blockIdx.y + 1] - begin,
               .d = a.d,
               .scale = a.scale});
}

void RecordScatterAdd(const RecordScatterAddArgs<>& a) {
  ForRecords(a.records, a.records.rows, [&](const LaunchedRecords& records) {
    const unsigned blocks = BlocksFor(FindLongest(records) * kWarp, kScatterThreads);
    if (blocks > 0)
      Launch(AddRecordRows, {.blocks = blocks, .blocks_y = records.count, .threads = kScatterThreads},
             WithoutRecords(a), records);
  });
}

void AddRows(const AddRowsArgs<>& a) {
  ForEachElement(a.rows, a.n, [a] __device__(size_t b, size_t i) { a.y_BN[b * a.ldy + i] += a.x_BN[b * a.ldx + i]; });
}

// A thread handles this many columns of every row, kThreads apart. The blocks together cover n columns.
constexpr unsigned kColumns = 4;
unsigned BlocksOver(size_t n) {
  return static_cast<unsigned>((n + size_t{kThreads} * kColumns - 1) / (size_t{kThreads} * kColumns));
}

struct Scales {
  float of[kMaxLaunchRecords];
};

// A block's square sum for a record is stored by warp, at parts[warp * rows + b]. They are added in the order of the
// warps.
__device__ inline void LeaveParts(Shared<double, kWarps * kMaxLaunchRecords>& squares, unsigned rows, double* parts_B) {
  __syncthreads();
  for (unsigned b = threadIdx.x; b < rows; b += kThreads) {
    double sum = 0;
    for (unsigned w = 0; w < kWarps; ++w) sum += squares[w * kMaxLaunchRecords + b];
    parts_B[size_t{blockIdx.x} * rows + b] = sum;
  }
}

__global__ void __launch_bounds__(kThreads) SumRowSquares(SquaresOfRowsArgs<> a, unsigned rows, double* parts) {
  __shared__ Shared<double, kWarps * kMaxLaunchRecords> squares;
  const size_t first = size_t{blockIdx.x} * kThreads * kColumns + threadIdx.x;
  for (unsigned b = 0; b < rows; ++b) {
    double sum = 0;
    for (unsigned j = 0; j < kColumns; ++j) {
      const size_t i = first + size_t{j} * kThreads;
      const double x = i < a.n ? static_cast<double>(a.x_BN[b * a.ldx + i]) : 0.0;
      sum += x * x;
    }
    sum = WarpSum(sum);
    if (Lane() == 0) squares[WarpInBlock() * kMaxLaunchRecords + b] = sum;
  }
  LeaveParts(squares, rows, parts);
}

// Integers can be added in any order, and the squares are of what is added. The product is rounded before it is
// converted to a whole number, so the numbers are those of the processor.
__global__ void __launch_bounds__(kThreads)
    AddRowsOnGrid(AccumulateRowsOnGridArgs<> a, Scales scales, unsigned rows, double* parts) {
  __shared__ Shared<double, kWarps * kMaxLaunchRecords> squares;
  const size_t first = size_t{blockIdx.x} * kThreads * kColumns + threadIdx.x;
  int64_t total[kColumns] = {};
  for (unsigned b = 0; b < rows; ++b) {
    double sum = 0;
    const float scale = scales.of[b];
    WISP_UNROLL for (unsigned j = 0; j < kColumns; ++j) {
      const size_t i = first + size_t{j} * kThreads;
      const int steps = scale != 0 && i < a.n ? __float2int_rn(__fmul_rn(a.x_BN[b * a.ldx + i], scale)) : 0;
      total[j] += steps;
      sum += static_cast<double>(steps) * static_cast<double>(steps);
    }
    sum = WarpSum(sum);
    if (Lane() == 0) squares[WarpInBlock() * kMaxLaunchRecords + b] = sum;
  }
  WISP_UNROLL for (unsigned j = 0; j < kColumns; ++j) {
    const size_t i = first + size_t{j} * kThreads;
    if (i < a.n) a.sum[i] += a.sign * total[j];
  }
  LeaveParts(squares, rows, parts);
}

// Each row of blocks handles one record and strides through its rows of the sum.
__global__ void __launch_bounds__(kThreads)
    AddSlotsOnGrid(AccumulateSlotsOnGridArgs<> a, Scales scales, unsigned records, double* parts) {
  __shared__ Shared<double, kWarps> scratch;
  const unsigned b = blockIdx.y;
  const float scale = scales.of[b];
  double squares = 0;
  for (size_t e = GlobalThread(); e < a.slots * a.d && scale != 0; e += AllThreads()) {
    const int32_t slot = a.slot_BJ[b * a.slots + e / a.d];
    if (slot < 0) continue;
    const int steps = __float2int_rn(__fmul_rn(a.x_BJD[b * a.stride + e], scale));
    AtomicAdd(a.sum + static_cast<size_t>(slot) * a.d + e % a.d, a.sign * static_cast<int64_t>(steps));
    squares += static_cast<double>(steps) * static_cast<double>(steps);
  }
  squares = BlockSum<kThreads>(squares, scratch);
  if (threadIdx.x == 0) parts[size_t{blockIdx.x} * records + b] = squares;
}

// Splits rows [0, rows) into shares of kMaxLaunchRecords. Calls launch(first, count, parts), then sets squares_B[first
// + b] for each.
template <class LaunchShare>
void ForShares(size_t rows, unsigned blocks, double* squares_B, const LaunchShare& launch) {
  for (size_t first = 0; first < rows; first += kMaxLaunchRecords) {
    const auto count = static_cast<unsigned>(std::min(kMaxLaunchRecords, rows - first));
    double* parts = Results(size_t{blocks} * count);
    if (parts != nullptr && blocks > 0) launch(first, count, parts);
    const bool done = Wait();
    for (unsigned b = 0; b < count; ++b) {
      double sum = done && (parts != nullptr || blocks == 0) ? 0 : std::numeric_limits<double>::quiet_NaN();
      for (unsigned i = 0; i < blocks && parts != nullptr; ++i) sum += parts[size_t{i} * count + b];
      squares_B[first + b] = sum;
    }
  }
}

void SquaresOfRows(const SquaresOfRowsArgs<>& a) {
  const unsigned blocks = BlocksOver(a.n);
  ForShares(a.rows, blocks, a.squares_B, [&](size_t first, unsigned count, double* parts) {
    SquaresOfRowsArgs<> share = a;
    share.x_BN += first * a.ldx;
    share.squares_B = nullptr;  // host memory
    Launch(SumRowSquares, {.blocks = blocks, .threads = kThreads}, share, count, parts);
  });
}

void AccumulateRowsOnGrid(const AccumulateRowsOnGridArgs<>& a) {
  const unsigned blocks = BlocksOver(a.n);
  ForShares(a.rows, blocks, a.squares_B, [&](size_t first, unsigned count, double* parts) {
    AccumulateRowsOnGridArgs<> share = a;
    share.x_BN += first * a.ldx;
    share.scale_B = nullptr;  // host memory, like squares_B
    share.squares_B = nullptr;
    Scales scales = {};
    std::copy_n(a.scale_B + first, count, scales.of);
    Launch(AddRowsOnGrid, {.blocks = blocks, .threads = kThreads}, share, scales, count, parts);
  });
}

void AccumulateSlotsOnGrid(const AccumulateSlotsOnGridArgs<>& a) {
  const unsigned blocks = BlocksFor(a.slots * a.d, kThreads * kColumns, 64);
  ForShares(a.rows, blocks, a.squares_B, [&](size_t first, unsigned count, double* parts) {
    AccumulateSlotsOnGridArgs<> share = a;
    share.x_BJD += first * a.stride;
    share.slot_BJ += first * a.slots;
    share.scale_B = nullptr;  // host memory, like squares_B
    share.squares_B = nullptr;
    Scales scales = {};
    std::copy_n(a.scale_B + first, count, scales.of);
    const Grid grid = {.blocks = blocks, .blocks_y = count, .threads = kThreads};
    Launch(AddSlotsOnGrid, grid, share, scales, count, parts);
  });
}

}  // namespace

void FillFormed(OpTable& table) {
  table.record_scatter_add = ForTraining(RecordScatterAdd);
  table.add_rows = ForTraining(AddRows);
  table.squares_of_rows = ForTraining(SquaresOfRows);
  table.accumulate_rows_on_grid = ForTraining(AccumulateRowsOnGrid);
  table.accumulate_slots_on_grid = ForTraining(AccumulateSlotsOnGrid);
}

}  // namespace wisp::kernels::cuda
