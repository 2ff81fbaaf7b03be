// Layer norm and RMS norm. A warp handles one row (stages/norms.h). Gradients of gain and bias are sums down the
// columns of a record, with 32 columns for each block.
#include "kernels/cuda/fill.h"
#include "kernels/cuda/for_each.h"
#include "kernels/cuda/records.h"
#include "kernels/cuda/stages/norms.h"

namespace wisp::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256, kWarps = kThreads / kWarp;

void LayerNormForward(const LayerNormForwardArgs<>& a) {
  RunStage<LayerNormStage>(BlocksFor(a.rows * kWarp, kStageThreads), a);
}

void RmsNormForward(const RmsNormForwardArgs<>& a) {
  RunStage<RmsNormStage>(BlocksFor(a.rows * kWarp, kStageThreads), a);
}

// The backward pass of both norms. The RMS norm has no mean and no bias.
struct NormBackward {
  const float *dy_RD, *x_RD, *gain_D, *mean_R, *rstd_R;
  float *dx_RD, *dgain_D, *dbias_D;
  size_t rows, d;
  Store store;
};

// With u = (x - mean) rstd and e = dy gain: dx = rstd (e - mean(e) - u mean(e u)). An RMS norm has no mean(e).
__global__ void NormInputGradients(NormBackward a) {
  const size_t warps = AllThreads() / kWarp;
  const float inverse = 1.0f / static_cast<float>(a.d);
  for (size_t r = GlobalThread() / kWarp; r < a.rows; r += warps) {
    const float *x = a.x_RD + r * a.d, *dy = a.dy_RD + r * a.d;
    const float rstd = a.rstd_R[r], mean = a.mean_R != nullptr ? a.mean_R[r] : 0.0f;
    float sum_e = 0, sum_eu = 0;
    for (size_t i = Lane(); i < a.d; i += kWarp) {
      const float e = dy[i] * a.gain_D[i];
      sum_e += e;
      sum_eu += e * ((x[i] - mean) * rstd);
    }
    const float mean_eu = WarpSum(sum_eu) * inverse;
    const float mean_e = a.mean_R != nullptr ? WarpSum(sum_e) * inverse : 0.0f;
    for (size_t i = Lane(); i < a.d; i += kWarp) {
      const float u = (x[i] - mean) * rstd;
      Put(a.dx_RD[r * a.d + i], rstd * (dy[i] * a.gain_D[i] - mean_e - u * mean_eu), a.store);
    }
  }
}

// Each row of blocks handles one record, and each of its blocks 32 columns. Each warp handles every eighth row.
__global__ void NormParameterGradients(NormBackward a, LaunchedRecords records) {
  __shared__ Shared<float, kThreads> gains;
  __shared__ Shared<float, kThreads> biases;
  const size_t column = size_t{blockIdx.x} * kWarp + Lane();
  float gain = 0, bias = 0;
  if (column < a.d) {
    for (size_t r = records.begin[blockIdx.y] + WarpInBlock(); r < records.begin[blockIdx.y + 1]; r += kWarps) {
      const float dy = a.dy_RD[r * a.d + column], mean = a.mean_R != nullptr ? a.mean_R[r] : 0.0f;
      gain += dy * ((a.x_RD[r * a.d + column] - mean) * a.rstd_R[r]);
      bias += dy;
    }
  }
  gains[threadIdx.x] = gain;
  biases[threadIdx.x] = bias;
  __syncthreads();
  if (threadIdx.x >= kWarp || column >= a.d) return;
  for (unsigned w = 1; w < kWarps; ++w) {
    gain += gains[w * kWarp + Lane()];
    bias += biases[w * kWarp + Lane()];
  }
  const size_t at = size_t{records.first + blockIdx.y} * a.d + column;
  a.dgain_D[at] = gain;
  if (a.dbias_D != nullptr) a.dbias_D[at] = bias;
}

void Backward(const NormBackward& a, const Segments& segments) {
  if (a.d == 0) return;
  if (a.rows > 0) Launch<NormInputGradients>({.blocks = BlocksFor(a.rows * kWarp, kThreads), .threads = kThreads}, a);
  ForRecords(segments, a.rows, [&](const LaunchedRecords& records) {
    const Grid grid = {.blocks = BlocksFor(a.d, kWarp, kAllBlocks), .blocks_y = records.count, .threads = kThreads};
    Launch<NormParameterGradients>(grid, a, records);
  });
}

void LayerNormBackward(const LayerNormBackwardArgs<>& a) {
  Backward({.dy_RD = a.dy_RD,
            .x_RD = a.x_RD,
            .gain_D = a.gain_D,
            .mean_R = a.mean_R,
            .rstd_R = a.rstd_R,
            .dx_RD = a.dx_RD,
            .dgain_D = a.dgain_D,
            .dbias_D = a.dbias_D,
            .rows = GetRows(a),
            .d = a.d,
            .store = a.store},
           a.records);
}

void RmsNormBackward(const RmsNormBackwardArgs<>& a) {
  Backward({.dy_RD = a.dy_RD,
            .x_RD = a.x_RD,
            .gain_D = a.gain_D,
            .mean_R = nullptr,
            .rstd_R = a.rstd_R,
            .dx_RD = a.dx_RD,
            .dgain_D = a.dgain_D,
            .dbias_D = nullptr,
            .rows = GetRows(a),
            .d = a.d,
            .store = a.store},
           a.records);
}

}  // namespace

void FillNorm(OpTable& table) {
  table.layer_norm_forward = LayerNormForward;
  table.layer_norm_backward = ForTraining(LayerNormBackward);
  table.rms_norm_forward = RmsNormForward;
  table.rms_norm_backward = ForTraining(RmsNormBackward);
}

}  // namespace wisp::kernels::cuda
