// Fused attention: the common parts of both passes, and the forward pass for one record. No matrix of logits is stored.
//
// A warp handles one row of queries or keys, and goes over the rows of the other side 32 at a time, a lane for each. A
// block has eight such warps of one head, and loads each 32 rows to shared memory once for all of them. A lane keeps
// every 32nd column of the sums for the warp's row. No two threads write to the same place, so sums have the same bits
// each time.
#ifndef WISP_KERNELS_CUDA_STAGES_ATTENTION_H_
#define WISP_KERNELS_CUDA_STAGES_ATTENTION_H_

#include "kernels/cuda/stage.h"

namespace wisp::kernels::cuda {

inline constexpr unsigned kWarps = kStageThreads / kWarp, kPitch = kWarp + 1;
// Rows that the warps of a block share, and numbers that the lanes of a warp exchange.
using Tile = Shared<float, kWarp * kPitch>;
using Numbers = Shared<float, kStageThreads>;

enum class Squared { kNeither, kMine, kRows };

// The products of one row with `count` (at most 32) rows of a matrix: lane l gets <mine, row l>. `mine` null: 0. All
// threads of the block must call, with the same rows.
template <Squared kSquared = Squared::kNeither>
__device__ inline float MultiplyRows(Tile& tile, Numbers& numbers, const float* rows, size_t ld, unsigned count,
                                     const float* mine, unsigned width) {
  float sum = 0;
  for (unsigned first = 0; first < width; first += kWarp) {
    const unsigned column = first + Lane();
    __syncthreads();  // all have read the previous tile
    for (unsigned r = WarpInBlock(); r < kWarp; r += kWarps) {
      const float value = r < count && column < width ? rows[r * ld + column] : 0.0f;
      tile[r * kPitch + Lane()] = kSquared == Squared::kRows ? value * value : value;
    }
    const float own = mine != nullptr && column < width ? mine[column] : 0.0f;
    numbers[threadIdx.x] = kSquared == Squared::kMine ? own * own : own;
    __syncthreads();
    // Heads may be eight wide. Beyond the width both are zeros.
    for (unsigned begin = 0; begin < kWarp && first + begin < width; begin += 8) {
      WISP_UNROLL for (unsigned c = begin; c < begin + 8; ++c) {
        sum = fmaf(numbers[WarpInBlock() * kWarp + c], tile[Lane() * kPitch + c], sum);
      }
    }
  }
  return sum;
}

// Every 32nd column of a row, from `first` + lane on.
template <unsigned kChunks>
struct Columns {
  float of[kChunks] = {};

  // Adds factor_l row_l for all lanes l < count.
  __device__ void Add(Numbers& numbers, float factor, const float* rows, size_t ld, unsigned count, unsigned first,
                      unsigned width) {
    __syncwarp();  // all lanes have read the previous numbers
    numbers[threadIdx.x] = factor;
    __syncwarp();
    for (unsigned l = 0; l < count; ++l) {
      const float f = numbers[WarpInBlock() * kWarp + l];
      WISP_UNROLL for (unsigned i = 0; i < kChunks; ++i) {
        const unsigned column = first + i * kWarp + Lane();
        if (column < width) of[i] = fmaf(f, rows[l * ld + column], of[i]);
      }
    }
  }
  __device__ void Scale(float factor) { WISP_UNROLL for (unsigned i = 0; i < kChunks; ++i) of[i] *= factor; }
  __device__ void Store(float* row, unsigned first, unsigned width) const {
    WISP_UNROLL for (unsigned i = 0; i < kChunks; ++i) {
      const unsigned column = first + i * kWarp + Lane();
      if (column < width) row[column] = of[i];
    }
  }
};

// A logit, from the products with q and with its squares.
struct Logit {
  float value;
  bool held;  // at its lower limit, where it has no gradient
};
template <class Args>
__device__ inline Logit ComputeLogit(const Args& a, unsigned head, size_t query, size_t key, float product,
                                     float variance) {
  bool held = false;
  if (a.key_variance != nullptr) {
    product -= 0.5f * a.scale * variance;
    held = !(kLowestCorrectedLogit < product);
    if (product < kLowestCorrectedLogit) product = kLowestCorrectedLogit;  // NaN stays NaN
  }
  float value = product * a.scale;
  if (a.slope_H != nullptr) {
    const size_t position = a.num_keys - a.num_queries + query;
    value -= a.slope_H[head] * static_cast<float>(position < key ? key - position : position - key);
  }
  return {value, held};
}

// The keys that a query may attend to: [AttendBegin, AttendEnd).
template <class Args>
__device__ inline size_t AttendEnd(const Args& a, size_t query) {
  return a.mask == AttentionMask::kCausal ? a.num_keys - a.num_queries + query + 1 : a.num_keys;
}

template <class Args>
__device__ inline bool Attends(const Args& a, size_t query, size_t key) {
  return query < a.num_queries && key >= AttendBegin(a, query) && key < AttendEnd(a, query);
}

template <class Args>
__device__ inline float Keep(const Args& a, unsigned head, size_t query, size_t key) {
  if (a.keep_HQT == nullptr) return 1.0f;
  return a.keep_HQT[(head * a.num_queries + query) * a.num_keys + key] != 0 ? a.keep_scale : 0.0f;
}

// The head and the columns of a block. Rows with more columns than a warp keeps are split into parts, one block for
// each.
struct Share {
  unsigned head, key_head, first_column;
};
// `part` counts the parts of all heads.
template <unsigned kChunks, class Args>
__device__ inline Share ComputeShare(const Args& a, unsigned part) {
  const auto width = static_cast<unsigned>(a.head_width);
  const unsigned parts = (width + kChunks * kWarp - 1) / (kChunks * kWarp);
  const unsigned head = part / parts;
  return {head, static_cast<unsigned>(KeyHead(a, head)), part % parts * kChunks * kWarp};
}

// A kernel has one Tile and one Numbers, whatever number of columns its stages keep.
__device__ inline Tile& TheTile() {
  __shared__ Tile tile;
  return tile;
}
__device__ inline Numbers& TheNumbers() {
  __shared__ Numbers numbers;
  return numbers;
}

// ---- Forward: a warp for each query. --------------------------------------------------------------------------------
// Block `x` of the queries of one record, for part `part` of its heads.
template <unsigned kChunks, bool kVariances>
__device__ inline void AttendBlockQueries(const AttentionForwardArgs<>& a, unsigned x, unsigned part) {
  Tile& tile = TheTile();
  Numbers& numbers = TheNumbers();
  const auto width = static_cast<unsigned>(a.head_width);
  const Share share = ComputeShare<kChunks>(a, part);
  const size_t query = size_t{x} * kWarps + WarpInBlock();
  const bool real = query < a.num_queries;
  const float* q = real ? a.q + query * a.ldq + share.head * width : nullptr;
  const size_t last_query = size_t{x} * kWarps + kWarps - 1;
  const size_t end = AttendEnd(a, last_query < a.num_queries ? last_query : a.num_queries - 1);
  Columns<kChunks> out;
  Columns<kVariances ? kChunks : 1> variance;
  float largest = -INFINITY, sum = 0;
  for (size_t first = AttendBegin(a, size_t{x} * kWarps); first < end; first += kWarp) {
    const auto count = static_cast<unsigned>(end - first < kWarp ? end - first : kWarp);
    const float* keys = a.k + first * a.ldkv + share.key_head * width;
    const float* values = a.v + first * a.ldkv + share.key_head * width;
    const size_t key = first + Lane();
    const float product = MultiplyRows(tile, numbers, keys, a.ldkv, count, q, width);
    float lowering = 0;
    if (a.key_variance != nullptr) {
      const float* variances = a.key_variance + first * a.ldvariance + share.key_head * width;
      lowering = MultiplyRows<Squared::kMine>(tile, numbers, variances, a.ldvariance, count, q, width);
    }
    const bool attends = Attends(a, query, key);
    const float logit = attends ? ComputeLogit(a, share.head, query, key, product, lowering).value : -INFINITY;
    const float before = largest;
    largest = WarpMax(before < logit ? logit : before);
    const float shrink = before == largest ? 1.0f : expf(before - largest);
    const float p = attends ? expf(logit - largest) : 0.0f;
    sum = sum * shrink + WarpSum(p);
    const float kept = attends ? p * Keep(a, share.head, query, key) : 0.0f;
    out.Scale(shrink);
    out.Add(numbers, kept, values, a.ldkv, count, share.first_column, width);
    if constexpr (kVariances) {
      variance.Scale(shrink * shrink);
      variance.Add(numbers, kept * kept, a.value_variance + first * a.ldvariance + share.key_head * width, a.ldvariance,
                   count, share.first_column, width);
    }
  }
  if (!real) return;
  const bool none = AttendEnd(a, query) <= AttendBegin(a, query);
  const float inverse = none ? 0.0f : 1.0f / sum;
  out.Scale(inverse);
  out.Store(a.out + query * a.ldout + share.head * width, share.first_column, width);
  if constexpr (kVariances) {
    variance.Scale(inverse * inverse);
    variance.Store(a.out_variance + query * a.ldout_variance + share.head * width, share.first_column, width);
  }
  if (Lane() == 0 && share.first_column == 0) {
    a.lse_HQ[share.head * a.num_queries + query] = none ? 0.0f : largest + logf(sum);
  }
}

// Arguments for one record, without variances of values.
struct AttendArgs {
  AttentionForwardArgs<> attention;
  unsigned blocks_x;  // blocks for the queries; each part of the heads has this many
};

template <unsigned kChunks>
struct AttendStage {
  using Args = AttendArgs;
  static constexpr StageKind kKind = kChunks == 1   ? StageKind::kAttention1
                                     : kChunks == 2 ? StageKind::kAttention2
                                     : kChunks == 4 ? StageKind::kAttention4
                                                    : StageKind::kAttention8;
  static __device__ void Run(const Args& a, const BlockPlace& block) {
    AttendBlockQueries<kChunks, false>(a.attention, block.index % a.blocks_x, block.index / a.blocks_x);
  }
};

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_STAGES_ATTENTION_H_
