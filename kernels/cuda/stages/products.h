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

// An element that is added to `before`, or replaces it.
__device__ inline float Finished(const Product& p, unsigned n, float sum, float before) {
  float value = p.scale == 1.0f ? sum : __fmul_rn(p.scale, sum);
  if (p.bias != nullptr) value = __fadd_rn(value, p.bias[n]);
  return p.store == Store::kAdd ? __fadd_rn(before, value) : value;
}

__device__ inline void Finish(const Product& p, unsigned m, unsigned n, float sum) {
  float& c = p.c[m * p.ldc + n];
  c = Finished(p, n, sum, p.store == Store::kAdd ? c : 0.0f);
}

// Elements n ... n + kCount - 1 of a row, as far as it goes.
template <unsigned kCount>
__device__ inline void FinishVector(const Product& p, unsigned m, unsigned n, const float* sum, bool aligned) {
  if (!aligned || n + kCount > p.n) {
    WISP_UNROLL for (unsigned j = 0; j < kCount; ++j) {
      if (n + j < p.n) Finish(p, m, n + j, sum[j]);
    }
    return;
  }
  float* c = p.c + m * p.ldc + n;
  float values[kCount] = {};
  if (p.store == Store::kAdd) LoadVector<kCount>(values, c);
  WISP_UNROLL for (unsigned j = 0; j < kCount; ++j) values[j] = Finished(p, n + j, sum[j], values[j]);
  StoreVector<kCount>(c, values);
}

inline constexpr unsigned kSideThreads = 16, kDepth = 16;

// The number of neighbours that a thread of a tile loads, keeps and stores at once.
template <unsigned kSide>
inline constexpr unsigned kNeighbours = kSide < 4 ? kSide : 4;

// A slice of A or B in shared memory: kDepth inner indices of kTile outer ones. The pitch keeps vectors aligned.
template <unsigned kSide>
inline constexpr unsigned kSlicePitchOf = kSideThreads* kSide + 4;
template <unsigned kSide>
using FloatSlice = Shared<float, kDepth * kSlicePitchOf<kSide>>;

// A matrix of which a block multiplies some outer indices, from `first` on.
struct SliceSource {
  const float* matrix;
  size_t ld;
  unsigned first, end, depth;  // of the outer indices; the number of inner indices
};

// Loads a thread's share of a slice to registers, and stores it to shared memory.
template <Along kAlong, unsigned kSide>
struct SliceShare {
  static constexpr unsigned kVector = kNeighbours<kSide>, kTile = kSideThreads * kSide;
  static constexpr unsigned kOfRow = (kAlong == Along::kInner ? kDepth : kTile) / kVector;  // vectors
  float of[kSide];

  static __device__ unsigned Across(unsigned i) { return (threadIdx.x + i * kStageThreads) / kOfRow; }
  static __device__ unsigned AlongRow(unsigned i) { return (threadIdx.x + i * kStageThreads) % kOfRow * kVector; }

  // Beyond the matrix there are zeros.
  __device__ void Fetch(const SliceSource& from, bool aligned, unsigned first_inner) {
    const bool inner = kAlong == Along::kInner;
    WISP_UNROLL for (unsigned i = 0; i < kSide / kVector; ++i) {
      const unsigned across = (inner ? from.first : first_inner) + Across(i),
                     across_end = inner ? from.end : from.depth;
      const unsigned along = (inner ? first_inner : from.first) + AlongRow(i),
                     along_end = inner ? from.depth : from.end;
      const float* at = from.matrix + across * from.ld + along;
      if (aligned && across < across_end && along + kVector <= along_end) {
        LoadVector<kVector>(of + i * kVector, at);
      } else {
        WISP_UNROLL for (unsigned j = 0; j < kVector; ++j) of[i * kVector + j] =
            across < across_end && along + j < along_end ? at[j] : 0.0f;
      }
    }
  }

  __device__ void Put(FloatSlice<kSide>& slice) const {
    constexpr unsigned kPitch = kSlicePitchOf<kSide>;
    WISP_UNROLL for (unsigned i = 0; i < kSide / kVector; ++i) {
      if constexpr (kAlong == Along::kOuter) {
        StoreVector<kVector>(slice, Across(i) * kPitch + AlongRow(i), of + i * kVector);
      } else {
        WISP_UNROLL for (unsigned j = 0; j < kVector; ++j) slice[(AlongRow(i) + j) * kPitch + Across(i)] =
            of[i * kVector + j];
      }
    }
  }
};

// A block computes a tile of 16 kSide by 16 kSide; a thread computes kSide by kSide of its elements, in groups of
// neighbours. While a slice of depth 16 is multiplied, the next one is loaded to registers. `tile` is an index, with
// p.tiles_n tiles side by side.
template <Along kA, Along kB, unsigned kSide>
__device__ inline void MultiplyTile(const Product& p, unsigned tile) {
  constexpr unsigned kTile = kSideThreads * kSide, kPitch = kSlicePitchOf<kSide>, kVector = kNeighbours<kSide>;
  __shared__ FloatSlice<kSide> a_slice;
  __shared__ FloatSlice<kSide> b_slice;
  const SliceSource a = {p.a, p.lda, tile / p.tiles_n * kTile, p.m, p.k};
  const SliceSource b = {p.b, p.ldb, tile % p.tiles_n * kTile, p.n, p.k};
  const bool a_aligned = IsAligned<kVector>(p.a, p.lda), b_aligned = IsAligned<kVector>(p.b, p.ldb);
  const unsigned row = threadIdx.x / kSideThreads * kVector, column = threadIdx.x % kSideThreads * kVector;
  SliceShare<kA, kSide> a_next;
  SliceShare<kB, kSide> b_next;
  float sum[kSide][kSide] = {};
  a_next.Fetch(a, a_aligned, 0);
  b_next.Fetch(b, b_aligned, 0);
  for (unsigned first_k = 0; first_k < p.k; first_k += kDepth) {
    a_next.Put(a_slice);
    b_next.Put(b_slice);
    __syncthreads();
    if (first_k + kDepth < p.k) {
      a_next.Fetch(a, a_aligned, first_k + kDepth);
      b_next.Fetch(b, b_aligned, first_k + kDepth);
    }
    // Beyond the last k both operands are zero, so the remaining terms change nothing.
    WISP_UNROLL for (unsigned k = 0; k < kDepth; ++k) {
      float of_a[kSide], of_b[kSide];
      WISP_UNROLL for (unsigned i = 0; i < kSide; i += kVector) {
        LoadVector<kVector>(of_a + i, a_slice, k * kPitch + row + kSideThreads * i);
        LoadVector<kVector>(of_b + i, b_slice, k * kPitch + column + kSideThreads * i);
      }
      WISP_UNROLL for (unsigned i = 0; i < kSide; ++i) {
        WISP_UNROLL for (unsigned j = 0; j < kSide; ++j) sum[i][j] = fmaf(of_a[i], of_b[j], sum[i][j]);
      }
    }
    __syncthreads();
  }
  const bool c_aligned = IsAligned<kVector>(p.c, p.ldc);
  WISP_UNROLL for (unsigned i = 0; i < kSide; ++i) {
    const unsigned m = a.first + row + kSideThreads * (i / kVector * kVector) + i % kVector;
    WISP_UNROLL for (unsigned j = 0; j < kSide; j += kVector) {
      const unsigned n = b.first + column + kSideThreads * j;
      if (m < p.m && n < p.n) FinishVector<kVector>(p, m, n, sum[i] + j, c_aligned);
    }
  }
}

// An element of a row of A with a column of B that is contiguous along n. A thread reads B beside what its neighbours
// read, and 16 numbers are loaded at once.
__device__ inline void MultiplyElement(const Product& p, unsigned m, unsigned n) {
  constexpr unsigned kAtOnce = 16;
  float sum = 0;
  unsigned k = 0;
  for (; k + kAtOnce <= p.k; k += kAtOnce) {
    float a[kAtOnce], b[kAtOnce];
    WISP_UNROLL for (unsigned i = 0; i < kAtOnce; ++i) {
      a[i] = p.a[m * p.lda + k + i];
      b[i] = p.b[(k + i) * p.ldb + n];
    }
    WISP_UNROLL for (unsigned i = 0; i < kAtOnce; ++i) sum = fmaf(a[i], b[i], sum);
  }
  for (; k < p.k; ++k) sum = fmaf(p.a[m * p.lda + k], p.b[k * p.ldb + n], sum);
  Finish(p, m, n, sum);
}

// ---- Rows times packed weights W^T [k, n]. --------------------------------------------------------------------------

// A thread for each element: with few rows, tiles would be mostly empty.
struct FewRowsStage {
  using Args = Product;
  static constexpr StageKind kKind = StageKind::kProductFewRows;
  static __device__ void Run(const Args& p, const BlockPlace& block) {
    for (size_t i = GetThread(block); i < size_t{p.m} * p.n; i += CountThreads(block)) {
      const Split at = SplitBy(i, p.n);
      MultiplyElement(p, static_cast<unsigned>(at.quotient), static_cast<unsigned>(at.rest));
    }
  }
};

template <unsigned kSide>
struct TilesStage {
  using Args = Product;
  static constexpr StageKind kKind = kSide == 2   ? StageKind::kProductTinyTiles
                                     : kSide == 4 ? StageKind::kProductSmallTiles
                                                  : StageKind::kProductLargeTiles;
  static __device__ void Run(const Args& p, const BlockPlace& block) {
    MultiplyTile<Along::kInner, Along::kOuter, kSide>(p, block.index);
  }
};

// ---- Rows times weights that are packed in separate tiles. ----------------------------------------------------------

// The product for a packed tile.
__device__ inline Product MakeTileProduct(const ScoreTilesArgs<>& a, size_t tile) {
  const size_t first = tile * a.tile, count = a.n - first < a.tile ? a.n - first : a.tile;
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
      const Split at = SplitBy(i, a.n), of_tile = SplitBy(at.rest, a.tile);
      MultiplyElement(MakeTileProduct(a, of_tile.quotient), static_cast<unsigned>(at.quotient),
                      static_cast<unsigned>(of_tile.rest));
    }
  }
};

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_STAGES_PRODUCTS_H_
