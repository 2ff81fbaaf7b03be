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
      Launch<AddRecordRows>({.blocks = blocks, .blocks_y = records.count, .threads = kScatterThreads},
                            WithoutRecords(a), records);
  });
}

void AddRows(const AddRowsArgs<>& a) {
  ForEachElement(a.rows, a.n, [a] __device__(size_t b, size_t i) { a.y_BN[b * a.ldy + i] += a.x_BN[b * a.ldx + i]; });
}

// A block handles kThreads * kColumns columns of every row; a thread kColumns of them, in groups of kVector neighbours.
constexpr unsigned kVector = 4, kColumns = 2 * kVector;
unsigned BlocksOver(size_t n) {
  return static_cast<unsigned>((n + size_t{kThreads} * kColumns - 1) / (size_t{kThreads} * kColumns));
}

// The first column of group j of this thread's.
__device__ inline size_t FirstColumn(unsigned j) {
  return (size_t{blockIdx.x} * kColumns + j) * kThreads + size_t{threadIdx.x} * kVector;
}

// Loads this thread's columns of a row; 0 beyond n.
__device__ inline void LoadColumns(const float* row, size_t n, bool aligned, float (&x)[kColumns]) {
  WISP_UNROLL for (unsigned j = 0; j < kColumns; j += kVector) {
    const size_t i = FirstColumn(j);
    if (aligned && i + kVector <= n) {
      LoadVector<kVector>(x + j, row + i);
    } else {
      WISP_UNROLL for (unsigned v = 0; v < kVector; ++v) x[j + v] = i + v < n ? row[i + v] : 0.0f;
    }
  }
}

struct Scales {
  float of[kMaxLaunchRecords];
};

// A block's sum for a record is stored by warp, at parts[warp * kMaxLaunchRecords + b]. They are added in the order of
// the warps.
template <class T, class Add>
__device__ inline void LeaveParts(Shared<T, kWarps * kMaxLaunchRecords>& sums, unsigned rows, const Add& add,
                                  double* parts_B) {
  __syncthreads();
  for (unsigned b = threadIdx.x; b < rows; b += kThreads) {
    T sum = 0;
    for (unsigned w = 0; w < kWarps; ++w) sum = add(sum, T(sums[w * kMaxLaunchRecords + b]));
    parts_B[size_t{blockIdx.x} * rows + b] = static_cast<double>(sum);
  }
}

// A sum of squares as two floats, high + low, with errors that are below 2^-44 of it: GPUs add doubles at 1/64 of the
// speed. A square is high + low exactly unless low is below what floats can express, which ComputeSquares looks after.
struct TwoFloats {
  float high = 0, low = 0;
  __device__ void AddSquare(float x) {
    const float square = __fmul_rn(x, x), rest = fmaf(x, x, -square);
    const float sum = __fadd_rn(high, square), back = __fadd_rn(sum, -high);
    const float lost = __fadd_rn(__fadd_rn(high, -__fadd_rn(sum, -back)), __fadd_rn(square, -back));
    low = __fadd_rn(low, __fadd_rn(lost, rest));
    high = sum;
  }
};

// Two floats lose less than 2^-148 of a small square. So a sum of a few that is less than 2^-100 and not 0 is formed in
// double, and so is one that floats may not hold.
constexpr float kLeastSquares = 0x1p-100f, kMostSquares = 0x1p100f;
__device__ inline double SumSquaresOf(const float (&x)[kColumns]) {
  TwoFloats sum;
  float largest = 0;
  WISP_UNROLL for (unsigned j = 0; j < kColumns; ++j) {
    sum.AddSquare(x[j]);
    largest = fmaxf(largest, fabsf(x[j]));
  }
  if (largest == 0 && sum.high == 0) return 0;
  if (sum.high > kLeastSquares && sum.high < kMostSquares)
    return static_cast<double>(sum.high) + static_cast<double>(sum.low);
  double exact = 0;
  WISP_UNROLL for (unsigned j = 0; j < kColumns; ++j) exact += static_cast<double>(x[j]) * static_cast<double>(x[j]);
  return exact;
}

__global__ void __launch_bounds__(kThreads) SumRowSquares(SquaresOfRowsArgs<> a, unsigned rows, double* parts) {
  __shared__ Shared<double, kWarps * kMaxLaunchRecords> squares;
  const bool aligned = IsAligned<kVector>(a.x_BN, a.ldx);
  for (unsigned b = 0; b < rows; ++b) {
    float x[kColumns];
    LoadColumns(a.x_BN + b * a.ldx, a.n, aligned, x);
    const double sum = WarpSum(SumSquaresOf(x));
    if (Lane() == 0) squares[WarpInBlock() * kMaxLaunchRecords + b] = sum;
  }
  LeaveParts(
      squares, rows, [](double x, double y) { return x + y; }, parts);
}

// Sums of squares of integers of 32 bits end at 2^62: then no addition of two overflows, and what is capped is far
// above 2^60, the most that a record may have (runtime/privacy/noise/exact_sum.h).
constexpr uint64_t kSquaresEnd = uint64_t{1} << 62;
__device__ inline uint64_t AddCapped(uint64_t x, uint64_t y) { return x + y < kSquaresEnd ? x + y : kSquaresEnd; }

__device__ inline uint64_t WarpSumCapped(uint64_t x) {
  for (unsigned step = kWarp / 2; step > 0; step /= 2) x = AddCapped(x, __shfl_xor_sync(kWholeWarp, x, step));
  return x;
}

__device__ inline uint64_t Square(int steps) {
  const uint32_t size = steps < 0 ? 0u - static_cast<uint32_t>(steps) : static_cast<uint32_t>(steps);
  return uint64_t{size} * size;
}

// The product is rounded before it is converted to a whole number, so the numbers are those of the processor.
__device__ inline int ToSteps(float x, float scale) { return scale != 0 ? __float2int_rn(__fmul_rn(x, scale)) : 0; }

// Integers can be added in any order, and the squares are of what is added.
__global__ void __launch_bounds__(kThreads)
    AddRowsOnGrid(AccumulateRowsOnGridArgs<> a, Scales scales, unsigned rows, double* parts) {
  __shared__ Shared<uint64_t, kWarps * kMaxLaunchRecords> squares;
  const bool aligned = IsAligned<kVector>(a.x_BN, a.ldx);
  int64_t total[kColumns] = {};
  for (unsigned b = 0; b < rows; ++b) {
    float x[kColumns];
    LoadColumns(a.x_BN + b * a.ldx, a.n, aligned, x);
    uint64_t sum = 0;
    WISP_UNROLL for (unsigned j = 0; j < kColumns; ++j) {
      const int steps = ToSteps(x[j], scales.of[b]);
      total[j] += steps;
      sum = AddCapped(sum, Square(steps));
    }
    sum = WarpSumCapped(sum);
    if (Lane() == 0) squares[WarpInBlock() * kMaxLaunchRecords + b] = sum;
  }
  WISP_UNROLL for (unsigned j = 0; j < kColumns; ++j) {
    const size_t i = FirstColumn(j / kVector * kVector) + j % kVector;
    if (i < a.n) a.sum[i] += a.sign * total[j];
  }
  LeaveParts(
      squares, rows, [](uint64_t x, uint64_t y) { return AddCapped(x, y); }, parts);
}

// Each row of blocks handles one record and strides through its rows of the sum.
__global__ void __launch_bounds__(kThreads)
    AddSlotsOnGrid(AccumulateSlotsOnGridArgs<> a, Scales scales, unsigned records, double* parts) {
  __shared__ Shared<uint64_t, kWarps> of_warps;
  const unsigned b = blockIdx.y;
  const float scale = scales.of[b];
  uint64_t squares = 0;
  for (size_t e = GlobalThread(); e < a.slots * a.d && scale != 0; e += AllThreads()) {
    const auto [row, i] = SplitBy(e, a.d);
    const int32_t slot = a.slot_BJ[b * a.slots + row];
    if (slot < 0) continue;
    const int steps = ToSteps(a.x_BJD[b * a.stride + e], scale);
    AtomicAdd(a.sum + static_cast<size_t>(slot) * a.d + i, a.sign * static_cast<int64_t>(steps));
    squares = AddCapped(squares, Square(steps));
  }
  squares = WarpSumCapped(squares);
  if (Lane() == 0) of_warps[WarpInBlock()] = squares;
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (unsigned w = 1; w < kWarps; ++w) squares = AddCapped(squares, of_warps[w]);
  parts[size_t{blockIdx.x} * records + b] = static_cast<double>(squares);
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
    Launch<SumRowSquares>({.blocks = blocks, .threads = kThreads}, share, count, parts);
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
    Launch<AddRowsOnGrid>({.blocks = blocks, .threads = kThreads}, share, scales, count, parts);
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
    Launch<AddSlotsOnGrid>(grid, share, scales, count, parts);
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
