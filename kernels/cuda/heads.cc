// Softmax with a separate target, softmax over few classes, and bounds of representations: a warp for each row, sums in
// double.
#include <limits>

#include "kernels/cuda/fill.h"
#include "kernels/cuda/for_each.h"
#include "kernels/cuda/records.h"
#include "kernels/cuda/results.h"
#include "kernels/cuda/stages/heads.h"

namespace wisp::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256;

Grid WarpsFor(size_t rows) { return {.blocks = BlocksFor(rows * kWarp, kThreads), .threads = kThreads}; }

// The index of the first of the ascending class_N that is not below `target`.
__device__ inline size_t LowerBound(const int32_t* class_N, size_t n, int32_t target) {
  size_t first = 0;
  for (size_t count = n; count > 0;) {
    const size_t half = count / 2;
    const bool below = class_N[first + half] < target;
    first += below ? half + 1 : 0;
    count = below ? count - half - 1 : half;
  }
  return first;
}

__global__ void ScoreTargets(TargetLogitsArgs<> a) {
  const size_t warps = AllThreads() / kWarp;
  for (size_t r = GlobalThread() / kWarp; r < a.rows; r += warps) {
    const int32_t target = a.target_R[r];
    if (target < 0) continue;
    const auto row = static_cast<size_t>(target);
    const float product = static_cast<float>(WideDot(a.x_RK + r * a.k, a.w_MK + row * a.k, a.k));
    if (Lane() != 0) continue;
    const size_t hit = LowerBound(a.class_N, a.n, target);
    if (hit < a.n && a.class_N[hit] == target) a.z_RN[r * a.n + hit] = -INFINITY;
    a.target_logit_R[r] = a.bias_M != nullptr ? __fadd_rn(product, a.bias_M[row]) : product;
  }
}

void TargetLogits(const TargetLogitsArgs<>& a) {
  if (a.rows > 0) Launch<ScoreTargets>(WarpsFor(a.rows), a);
}

void TargetGradient(const TargetGradientArgs<>& a) {
  ForEachElement(a.rows, a.k, [a] __device__(size_t r, size_t i) {
    const float weight = a.weight_R[r];
    const float g = weight == 0 ? 0.0f : (expf(a.target_logit_R[r] - a.lse_R[r]) - 1.0f) * weight;
    a.dw_RK[r * a.k + i] = g * a.x_RK[r * a.k + i];
    if (g != 0) a.dx_RK[r * a.k + i] += g * a.w_MK[static_cast<size_t>(a.target_R[r]) * a.k + i];
  });
}

__global__ void ClassRows(ClassCrossEntropyArgs<> a, double* loss_R) {
  const size_t warps = AllThreads() / kWarp;
  for (size_t r = GlobalThread() / kWarp; r < a.rows; r += warps) {
    const float* z = a.z_RN + r * a.n;
    const auto target = static_cast<size_t>(a.target_R[r]);
    float largest = z[0];
    for (size_t j = Lane(); j < a.n; j += kWarp) largest = largest < z[j] ? z[j] : largest;
    const double max = WarpMax(largest);
    double sum = 0;
    for (size_t j = Lane(); j < a.n; j += kWarp) sum += exp(static_cast<double>(z[j]) - max);
    const double lse = max + log(WarpSum(sum));
    if (Lane() == 0 && loss_R != nullptr) loss_R[r] = lse - static_cast<double>(z[target]);
    if (a.dz_RN == nullptr) continue;
    for (size_t j = Lane(); j < a.n; j += kWarp) {
      a.dz_RN[r * a.n + j] = static_cast<float>(exp(static_cast<double>(z[j]) - lse) - (j == target ? 1.0 : 0.0));
    }
  }
}

void ClassCrossEntropy(const ClassCrossEntropyArgs<>& a) {
  ClassCrossEntropyArgs<> on_device = a;
  on_device.loss_R = nullptr;  // host memory
  if (a.n == 0 || a.rows == 0) return;
  double* loss = a.loss_R != nullptr ? Results(a.rows) : nullptr;
  Launch<ClassRows>(WarpsFor(a.rows), on_device, loss);
  if (a.loss_R == nullptr) return;
  const bool arrived = Wait() && loss != nullptr;
  for (size_t r = 0; r < a.rows; ++r) a.loss_R[r] = arrived ? loss[r] : std::numeric_limits<double>::quiet_NaN();
}

void ClipRows(const ClipRowsArgs<>& a) { RunStage<ClipRowsStage>(BlocksFor(a.rows * kWarp, kStageThreads), a); }

// y = s x. If ||x|| > C: s = C / ||x|| and dx = s (dy - x <x, dy> / ||x||^2). Otherwise s = 1 and dx = dy. For x =
// tanh(p) the result is dx (1 - x^2).
__global__ void ClippedRowsBackward(ClipRowsBackwardArgs<> a) {
  const size_t warps = AllThreads() / kWarp;
  for (size_t r = GlobalThread() / kWarp; r < a.rows; r += warps) {
    const float *x = a.x_RD + r * a.d, *dy = a.dy_RD + r * a.d;
    const double scale = ClipScale(x, a.d, a.bound);
    const double radial = scale < 1 ? WideDot(x, dy, a.d) / WideDot(x, x, a.d) : 0.0;
    for (size_t i = Lane(); i < a.d; i += kWarp) {
      const double xi = x[i], slope = a.before == Before::kTanh ? 1 - xi * xi : 1;
      a.dx_RD[r * a.d + i] = static_cast<float>(scale * (static_cast<double>(dy[i]) - xi * radial) * slope);
    }
  }
}

void ClipRowsBackward(const ClipRowsBackwardArgs<>& a) {
  if (a.rows > 0) Launch<ClippedRowsBackward>(WarpsFor(a.rows), a);
}

// Each row of blocks handles one record.
__global__ void RecordMeans(MeanRowsArgs<> a, LaunchedRecords records) {
  const size_t begin = records.begin[blockIdx.y], rows = records.begin[blockIdx.y + 1] - begin;
  float* y = a.y_BD + (records.first + blockIdx.y) * a.d;
  for (size_t i = GlobalThread(); i < a.d; i += AllThreads()) y[i] = ColumnMean(a.x_RD + begin * a.d + i, rows, a.d);
}

// A single record is a stage, because texts are embedded one by one.
void MeanRows(const MeanRowsArgs<>& a) {
  if (a.records.begin_B == nullptr && a.records.num_records == 1)
    return RunStage<MeanRowsStage>(BlocksFor(a.d, kStageThreads),
                                   {.x_RD = a.x_RD, .y_D = a.y_BD, .rows = a.records.rows, .d = a.d});
  ForRecords(a.records, a.records.rows, [&](const LaunchedRecords& records) {
    const Grid grid = {.blocks = BlocksFor(a.d, kThreads), .blocks_y = records.count, .threads = kThreads};
    if (grid.blocks > 0) Launch<RecordMeans>(grid, a, records);
  });
}

__global__ void SpreadMeans(MeanRowsBackwardArgs<> a, LaunchedRecords records) {
  const size_t begin = records.begin[blockIdx.y], rows = records.begin[blockIdx.y + 1] - begin;
  const float share = rows > 0 ? 1.0f / static_cast<float>(rows) : 0.0f;
  const float* dy = a.dy_BD + (records.first + blockIdx.y) * a.d;
  float* dx = a.dx_RD + begin * a.d;
  for (size_t at = GlobalThread(); at < rows * a.d; at += AllThreads()) dx[at] = dy[SplitBy(at, a.d).rest] * share;
}

void MeanRowsBackward(const MeanRowsBackwardArgs<>& a) {
  ForRecords(a.records, a.records.rows, [&](const LaunchedRecords& records) {
    const Grid grid = {
        .blocks = BlocksFor(FindLongest(records) * a.d, kThreads), .blocks_y = records.count, .threads = kThreads};
    if (grid.blocks > 0) Launch<SpreadMeans>(grid, a, records);
  });
}

}  // namespace

void FillHeads(OpTable& table) {
  table.target_logits = ForTraining(TargetLogits);
  table.target_gradient = ForTraining(TargetGradient);
  table.class_cross_entropy = ForTraining(ClassCrossEntropy);
  table.clip_rows = ClipRows;
  table.clip_rows_backward = ForTraining(ClipRowsBackward);
  table.mean_rows = MeanRows;
  table.mean_rows_backward = ForTraining(MeanRowsBackward);
}

}  // namespace wisp::kernels::cuda
