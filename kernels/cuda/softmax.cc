// Softmax with cross-entropy over tiles of classes: a warp for each row.
#include <limits>

#include "kernels/cuda/fill.h"
#include "kernels/cuda/for_each.h"
#include "kernels/cuda/records.h"
#include "kernels/cuda/results.h"

namespace wisp::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256, kWarps = kThreads / kWarp;
constexpr float kLowestExponent = -80.0f;        // exponentials of smaller numbers are zero
constexpr float kLeastNormal = 1.17549435e-38f;  // nonzero gradients are at least this

__global__ void UpdateStats(SoftmaxStatsArgs<> a) {
  const size_t warps = AllThreads() / kWarp;
  for (size_t r = GlobalThread() / kWarp; r < a.rows; r += warps) {
    const float* z = a.z_RN + r * a.ldz;
    const float before = a.max_R[r];
    float largest = before;
    for (size_t j = Lane(); j < a.n; j += kWarp) {
      if (largest < z[j]) largest = z[j];
    }
    largest = WarpMax(largest);
    const int64_t column = int64_t{a.target_R[r]} - a.first;
    if (Lane() == 0 && column >= 0 && column < static_cast<int64_t>(a.n)) a.target_logit_R[r] = z[column];
    // exp_RN may be z_RN, so the target's logit is read first.
    __syncwarp();
    float sum = 0;
    for (size_t j = Lane(); j < a.n; j += kWarp) {
      const float below = z[j] - largest, e = below < kLowestExponent ? 0.0f : expf(below);
      sum += e;
      if (a.exp_RN != nullptr) a.exp_RN[r * a.ldz + j] = e;
    }
    sum = WarpSum(sum);
    if (Lane() == 0) {
      a.sum_R[r] = a.sum_R[r] * expf(before - largest) + sum;
      a.max_R[r] = largest;
    }
  }
}

void SoftmaxStats(const SoftmaxStatsArgs<>& a) {
  if (a.rows > 0 && a.n > 0)
    Launch<UpdateStats>({.blocks = BlocksFor(a.rows * kWarp, kThreads), .threads = kThreads}, a);
}

void CrossEntropyGradient(const CrossEntropyGradientArgs<>& a) {
  ForEachElement(a.rows, a.n, [a] __device__(size_t r, size_t j) {
    float& z = a.z_RN[r * a.ldz + j];
    const float weight = a.weight_R[r], lse = a.lse_R[r];
    if (weight == 0) {
      z = 0;
      return;
    }
    float p = a.max_R != nullptr ? z * expf(a.max_R[r] - lse) : expf(z - lse);
    if (p < kLeastNormal) p = 0;
    if (int64_t{a.target_R[r]} - a.first == static_cast<int64_t>(j)) p -= 1.0f;
    z = p * weight;
  });
}

// The largest value of a block, for all its threads. `scratch` may be used again after the next barrier.
__device__ inline float BlockMax(float value, Shared<float, kWarps>& scratch) {
  value = WarpMax(value);
  if (Lane() == 0) scratch[WarpInBlock()] = value;
  __syncthreads();
  float largest = scratch[0];
  for (unsigned w = 1; w < kWarps; ++w) largest = fmaxf(largest, scratch[w]);
  return largest;
}

// A block for each row: its logits come from memory once, and then from the cache.
__global__ void __launch_bounds__(kThreads) FormGradients(SoftmaxGradientArgs<> a) {
  __shared__ Shared<float, kWarps> of_warps;
  __shared__ Shared<float, kWarps> sums;
  for (size_t r = blockIdx.x; r < a.rows; r += gridDim.x) {
    float* z = a.z_RN + r * a.ldz;
    const float weight = a.weight_R[r];
    if (weight == 0) {
      for (size_t j = threadIdx.x; j < a.n; j += kThreads) z[j] = 0;
      continue;
    }
    const auto target = static_cast<size_t>(int64_t{a.target_R[r]});  // no column if there is no target
    float largest = -INFINITY;
    for (size_t j = threadIdx.x; j < a.n; j += kThreads) {
      if (largest < z[j]) largest = z[j];
      if (j == target) a.target_logit_R[r] = z[j];
    }
    largest = BlockMax(largest, of_warps);
    float sum = 0;
    for (size_t j = threadIdx.x; j < a.n; j += kThreads) {
      const float below = z[j] - largest;
      sum += below < kLowestExponent ? 0.0f : expf(below);
    }
    sum = BlockSum<kThreads>(sum, sums);
    const float lse = largest + logf(sum);
    for (size_t j = threadIdx.x; j < a.n; j += kThreads) {
      float p = expf(z[j] - lse);
      if (p < kLeastNormal) p = 0;
      z[j] = (j == target ? p - 1.0f : p) * weight;
    }
    if (threadIdx.x == 0) {
      a.max_R[r] = largest;
      a.sum_R[r] = sum;
    }
  }
}

void SoftmaxGradient(const SoftmaxGradientArgs<>& a) {
  if (a.rows > 0 && a.n > 0) Launch<FormGradients>({.blocks = BlocksFor(a.rows, 1), .threads = kThreads}, a);
}

struct TargetWeights {
  float of[kMaxLaunchRecords];
};

// Each row of blocks handles one record.
__global__ void StartRows(const int32_t* target_R, float* max_R, float* sum_R, float* target_logit_R, float* weight_R,
                          int32_t* none_R, LaunchedRecords records, TargetWeights weights) {
  const size_t end = records.begin[blockIdx.y + 1];
  for (size_t r = records.begin[blockIdx.y] + GlobalThread(); r < end; r += AllThreads()) {
    max_R[r] = -INFINITY;
    sum_R[r] = target_logit_R[r] = 0;
    weight_R[r] = target_R[r] < 0 ? 0.0f : weights.of[blockIdx.y];
    if (none_R != nullptr) none_R[r] = -1;
  }
}

void SoftmaxStart(const SoftmaxStartArgs<>& a) {
  ForRecords(a.records, a.records.rows, [&](const LaunchedRecords& records) {
    TargetWeights weights = {};
    for (uint32_t b = 0; b < records.count; ++b)
      weights.of[b] = MakeOptions(a.options_B, records.first + b).target_weight;
    const Grid grid = {.blocks = BlocksFor(FindLongest(records), 256, 16), .blocks_y = records.count};
    if (grid.blocks == 0) return;
    Launch<StartRows>(grid, a.target_R, a.max_R, a.sum_R, a.target_logit_R, a.weight_R, a.none_R, records, weights);
  });
}

struct LossRows {
  const float *max_R, *sum_R, *target_logit_R, *weight_R;
  float* lse_R;
  TargetTerm target;
};

// A block for each record; loss[block] = its sum.
__global__ void SumLosses(LossRows a, LaunchedRecords records, double* loss) {
  __shared__ Shared<double, kWarps> scratch;
  double sum = 0;
  for (size_t r = records.begin[blockIdx.x] + threadIdx.x; r < records.begin[blockIdx.x + 1]; r += kThreads) {
    const float target = a.target_logit_R[r], max = a.max_R[r], largest = max < target ? target : max;
    const bool counts = !(a.weight_R[r] == 0);
    float lse = 0;
    if (a.target == TargetTerm::kInSum) {
      lse = max + logf(a.sum_R[r]);
    } else if (counts) {
      lse = largest + logf(a.sum_R[r] * expf(max - largest) + expf(target - largest));
    }
    a.lse_R[r] = lse;
    if (counts) sum += static_cast<double>(a.weight_R[r]) * (static_cast<double>(lse) - static_cast<double>(target));
  }
  sum = BlockSum<kThreads>(sum, scratch);
  if (threadIdx.x == 0) loss[blockIdx.x] = sum;
}

void CrossEntropyLoss(const CrossEntropyLossArgs<>& a) {
  const LossRows rows = {a.max_R, a.sum_R, a.target_logit_R, a.weight_R, a.lse_R, a.target};
  double* loss = Results(a.records.num_records);
  ForRecords(a.records, a.records.rows, [&](const LaunchedRecords& records) {
    const Grid grid = {.blocks = records.count, .threads = kThreads};
    if (loss != nullptr) Launch<SumLosses>(grid, rows, records, loss + records.first);
  });
  const bool arrived = Wait();
  for (size_t b = 0; b < a.records.num_records; ++b) {
    a.loss_B[b] = arrived ? loss[b] : std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace

void FillSoftmax(OpTable& table) {
  table.softmax_start = ForTraining(SoftmaxStart);
  table.softmax_stats = ForTraining(SoftmaxStats);
  table.cross_entropy_loss = ForTraining(CrossEntropyLoss);
  table.cross_entropy_gradient = ForTraining(CrossEntropyGradient);
  table.softmax_gradient = ForTraining(SoftmaxGradient);
}

}  // namespace wisp::kernels::cuda
