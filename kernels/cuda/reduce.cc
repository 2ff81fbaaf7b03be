// Reductions in double and sums on an integer grid.
//
// Each block writes its part to Results, and the host adds the parts in their order. So a sum has the same bits each
// time.
#include <limits>

#include "kernels/cuda/fill.h"
#include "kernels/cuda/for_each.h"
#include "kernels/cuda/records.h"
#include "kernels/cuda/results.h"

namespace wisp::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256, kWarps = kThreads / kWarp, kMostBlocks = 256;

// parts[block] = the sum of f(i) over the block's share.
template <class F>
__global__ void SumParts(size_t n, F f, double* parts) {
  __shared__ Shared<double, kWarps> scratch;
  double sum = 0;
  for (size_t i = GlobalThread(); i < n; i += AllThreads()) sum += f(i);
  sum = BlockSum<kThreads>(sum, scratch);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

// The sum of f(0) ... f(n - 1), on the host. NaN if the device failed: NaN passes no check.
template <class F>
double Sum(size_t n, const F& f) {
  if (n == 0) return 0;
  const unsigned blocks = BlocksFor(n, kThreads, kMostBlocks);
  double* parts = Results(blocks);
  if (parts != nullptr) Launch<SumParts<F>>({.blocks = blocks, .threads = kThreads}, n, f, parts);
  if (!Wait()) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  for (unsigned i = 0; i < blocks; ++i) sum += parts[i];
  return sum;
}

double Dot(const float* x, const float* y, size_t n) {
  return Sum(n, [=] __device__(size_t i) { return static_cast<double>(x[i]) * static_cast<double>(y[i]); });
}

double SumSquares(const float* x, size_t n) { return Dot(x, x, n); }

double DotRows(const DotRowsArgs<>& a) {
  return Sum(a.rows * a.d, [a] __device__(size_t i) {
    const auto [r, j] = SplitBy(i, a.d);
    if (a.ids_R[r] < 0) return 0.0;
    return static_cast<double>(a.x_RD[r * a.ldx + j]) * static_cast<double>(a.y_RD[r * a.ldy + j]);
  });
}

// The product is rounded before it is converted to a whole number, so the numbers are those of the processor.
double AccumulateOnGrid(const AccumulateOnGridArgs<>& a) {
  return Sum(a.n, [a] __device__(size_t i) {
    const int steps = __float2int_rn(__fmul_rn(a.x[i], a.scale));
    a.sum[i] += a.sign * static_cast<int64_t>(steps);
    return static_cast<double>(steps) * static_cast<double>(steps);
  });
}

// Each row of blocks handles one record, and each of its blocks 32 columns. Each warp handles every eighth row.
__global__ void SumColumns(ColumnSumArgs<> a, LaunchedRecords records) {
  __shared__ Shared<float, kThreads> parts;
  const size_t column = size_t{blockIdx.x} * kWarp + Lane();
  float sum = 0;
  if (column < a.n) {
    for (size_t r = records.begin[blockIdx.y] + WarpInBlock(); r < records.begin[blockIdx.y + 1]; r += kWarps) {
      sum += a.x_RN[r * a.ldx + column];
    }
  }
  parts[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x >= kWarp || column >= a.n) return;
  for (unsigned w = 1; w < kWarps; ++w) sum += parts[w * kWarp + Lane()];
  Put(a.out_N[size_t{records.first + blockIdx.y} * a.n + column], a.scale * sum, a.store);
}

void ColumnSum(const ColumnSumArgs<>& a) {
  if (a.n == 0) return;
  ForRecords(a.records, a.rows, [&](const LaunchedRecords& records) {
    const Grid grid = {.blocks = BlocksFor(a.n, kWarp, kAllBlocks), .blocks_y = records.count, .threads = kThreads};
    Launch<SumColumns>(grid, WithoutRecords(a), records);
  });
}

}  // namespace

void FillReduce(OpTable& table) {
  table.column_sum = ForTraining(ColumnSum);
  table.dot = ForTraining(Dot);
  table.dot_rows = ForTraining(DotRows);
  table.sum_squares = ForTraining(SumSquares);
  table.accumulate_on_grid = ForTraining(AccumulateOnGrid);
}

}  // namespace wisp::kernels::cuda
