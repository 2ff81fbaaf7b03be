// Matrix products in float.
//
// For every kernel and number of rows, an element is the same chain of fused multiply-adds in the order of the inner
// index. Its bits depend only on its own row and column. So a record's gradient does not depend on the records that
// pass with it (docs/algorithms.md, section 1).
#ifndef WISP_KERNELS_CUDA_STAGES_PRODUCTS_H_
#define WISP_KERNELS_CUDA_STAGES_PRODUCTS_H_

#include "kernels/cuda/stage.h"

namespace wisp::kernels::cuda {

// c[m, n] (=|+=) scale * sum over k of A(m, k) B(n, k), plus a bias for each n. A(m, k) is a[m * lda + k] if k is
// contiguous in memory, otherwise a[k * lda + m]; likewise B.
struct Product {
  const float *a, *b, *bias;
  float* c;
  size_t lda, ldb, ldc;
  unsigned m, n, k, tiles_n;
  float scale;
  Store store;
};

enum class Along { kInner, kOuter };  // the index that is contiguous in memory

template <Along kAlong>
__device__ inline float At(const float* matrix, size_t ld, unsigned outer, unsigned inner) {
  return kAlong == Along::kInner ? matrix[outer * ld + inner] : matrix[inner * ld + outer];
}

__device__ inline void Finish(const Product& p, unsigned m, unsigned n, float sum) {
  float value = p.scale == 1.0f ? sum : __fmul_rn(p.scale, sum);
  if (p.bias != nullptr) value = __fadd_rn(value, p.bias[n]);
  float& c = p.c[m * p.ldc + n];
  c = p.store == Store::kAdd ? __fadd_rn(c, value) : value;
}

inline constexpr unsigned kSideThreads = 16, kDepth = 16;

// A block computes a tile of 16 kSide by 16 kSide; a thread computes kSide by kSide of its elements, 16 apart. While a
// slice of depth 16 is multiplied, the next one is loaded to registers. `tile` is an index, with p.tiles_n tiles side
// by side.
template <Along kA, Along kB, unsigned kSide>
__device__ inline void MultiplyTile(const Product& p, unsigned tile) {
  constexpr unsigned kTile = kSideThreads * kSide, kPitch = kTile + 2;  // + 2: stores along k use each bank once
  __shared__ Shared<float, kDepth * kPitch> a_slice;
  __shared__ Shared<float, kDepth * kPitch> b_slice;
  const unsigned first_m = tile / p.tiles_n * kTile, first_n = tile % p.tiles_n * kTile;
  const unsigned row = threadIdx.x / kSideThreads, column = threadIdx.x % kSideThreads;
  // The elements of a slice that this thread loads: element i is (outer, inner) of the tile.
  const auto outer_of = [](Along along, unsigned i) {
    return along == Along::kInner ? threadIdx.x / kDepth + i * kSideThreads : (threadIdx.x + i * kStageThreads) % kTile;
  };
  const auto inner_of = [](Along along, unsigned i) {
    return along == Along::kInner ? threadIdx.x % kDepth : (threadIdx.x + i * kStageThreads) / kTile;
  };
  float a_next[kSide], b_next[kSide];
  const auto fetch = [&](unsigned first_k) {
    WISP_UNROLL for (unsigned i = 0; i < kSide; ++i) {
      const unsigned m = first_m + outer_of(kA, i), k_of_a = first_k + inner_of(kA, i);
      const unsigned n = first_n + outer_of(kB, i), k_of_b = first_k + inner_of(kB, i);
      a_next[i] = m < p.m && k_of_a < p.k ? At<kA>(p.a, p.lda, m, k_of_a) : 0.0f;
      b_next[i] = n < p.n && k_of_b < p.k ? At<kB>(p.b, p.ldb, n, k_of_b) : 0.0f;
    }
  };
  float sum[kSide][kSide] = {};
  fetch(0);
  for (unsigned first_k = 0; first_k < p.k; first_k += kDepth) {
    WISP_UNROLL for (unsigned i = 0; i < kSide; ++i) {
      a_slice[inner_of(kA, i) * kPitch + outer_of(kA, i)] = a_next[i];
      b_slice[inner_of(kB, i) * kPitch + outer_of(kB, i)] = b_next[i];
    }
    __syncthreads();
    if (first_k + kDepth < p.k) fetch(first_k + kDepth);
    // Beyond the last k both operands are zero, so the remaining terms change nothing.
    WISP_UNROLL for (unsigned k = 0; k < kDepth; ++k) {
      float a[kSide], b[kSide];
      WISP_UNROLL for (unsigned i = 0; i < kSide; ++i) {
        a[i] = a_slice[k * kPitch + row + kSideThreads * i];
        b[i] = b_slice[k * kPitch + column + kSideThreads * i];
      }
      WISP_UNROLL for (unsigned i = 0; i < kSide; ++i) {
        WISP_UNROLL for (unsigned j = 0; j < kSide; ++j) sum[i][j] = fmaf(a[i], b[j], sum[i][j]);
      }
    }
    __syncthreads();
  }
  WISP_UNROLL for (unsigned i = 0; i < kSide; ++i) {
    const unsigned m = first_m + row + kSideThreads * i;
    WISP_UNROLL for (unsigned j = 0; j < kSide; ++j) {
      const unsigned n = first_n + column + kSideThreads * j;
      if (m < p.m && n < p.n) Finish(p, m, n, sum[i][j]);
    }
  }
}

// An element of a row or column of A with a column of B that is contiguous along n. A thread reads B beside what its
// neighbours read, and 16 numbers are loaded at once.
template <Along kA>
__device__ inline void MultiplyElement(const Product& p, unsigned m, unsigned n) {
  constexpr unsigned kAtOnce = 16;
  float sum = 0;
  unsigned k = 0;
  for (; k + kAtOnce <= p.k; k += kAtOnce) {
    float a[kAtOnce], b[kAtOnce];
    WISP_UNROLL for (unsigned i = 0; i < kAtOnce; ++i) {
      a[i] = At<kA>(p.a, p.lda, m, k + i);
      b[i] = p.b[(k + i) * p.ldb + n];
    }
    WISP_UNROLL for (unsigned i = 0; i < kAtOnce; ++i) sum = fmaf(a[i], b[i], sum);
  }
  for (; k < p.k; ++k) sum = fmaf(At<kA>(p.a, p.lda, m, k), p.b[k * p.ldb + n], sum);
  Finish(p, m, n, sum);
}

// ---- Rows times packed weights W^T [k, n]. --------------------------------------------------------------------------

// A thread for each element: with few rows, tiles would be mostly empty.
struct FewRowsStage {
  using Args = Product;
  static constexpr StageKind kKind = StageKind::kProductFewRows;
  static __device__ void Run(const Args& p, const BlockPlace& block) {
    for (size_t i = GetThread(block); i < size_t{p.m} * p.n; i += CountThreads(block)) {
      MultiplyElement<Along::kInner>(p, static_cast<unsigned>(i / p.n), static_cast<unsigned>(i % p.n));
    }
  }
};

template <unsigned kSide>
struct TilesStage {
  using Args = Product;
  static constexpr StageKind kKind = kSide == 4 ? StageKind::kProductSmallTiles : StageKind::kProductLargeTiles;
  static __device__ void Run(const Args& p, const BlockPlace& block) {
    MultiplyTile<Along::kInner, Along::kOuter, kSide>(p, block.index);
  }
};

// ---- Rows times weights that are packed in separate tiles. ----------------------------------------------------------

// The product for the packed tile that holds column n.
__device__ inline Product MakeTileProduct(const ScoreTilesArgs<>& a, size_t n) {
  const size_t tile = n / a.tile, first = tile * a.tile, count = a.n - first < a.tile ? a.n - first : a.tile;
  return {.a = a.x_RK,
          .b = a.packed + tile * a.tile_stride,
          .bias = a.bias_N != nullptr ? a.bias_N + first : nullptr,
          .c = a.y_RN + first,
          .lda = a.k,
          .ldb = count,
          .ldc = a.n,
          .m = static_cast<unsigned>(a.rows),
          .n = static_cast<unsigned>(count),
          .k = static_cast<unsigned>(a.k),
          .tiles_n = 0,
          .scale = 1.0f,
          .store = Store::kAssign};
}

struct ScoreFewRowsStage {
  using Args = ScoreTilesArgs<>;
  static constexpr StageKind kKind = StageKind::kScoreFewRows;
  static __device__ void Run(const Args& a, const BlockPlace& block) {
    for (size_t i = GetThread(block); i < a.rows * a.n; i += CountThreads(block)) {
      const size_t n = i % a.n;
      MultiplyElement<Along::kInner>(MakeTileProduct(a, n), static_cast<unsigned>(i / a.n),
                                     static_cast<unsigned>(n % a.tile));
    }
  }
};

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_STAGES_PRODUCTS_H_
