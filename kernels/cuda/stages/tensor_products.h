// Matrix products on tensor cores, with numbers of few bits (tensor_core.h).
//
// Packed weights are rows of words [n, CountWords(k)], filled up with zeros; integers have a scale for each row before
// them. Rows of inputs are converted to words as they are read.
// An element is a sum over slices in order, each as the tensor core sums it, for any numbers of rows and columns. As in
// float32 products (products.h), its bits depend only on its own row and column.
#ifndef WISP_KERNELS_CUDA_STAGES_TENSOR_PRODUCTS_H_
#define WISP_KERNELS_CUDA_STAGES_TENSOR_PRODUCTS_H_

#include "kernels/cuda/stages/products.h"
#include "kernels/cuda/tensor_core.h"

namespace wisp::kernels::cuda {

inline constexpr unsigned kTensorTile = 64, kSliceWords = 16;
// A pitch of 20 words makes the lanes of a warp read 32 different banks.
inline constexpr unsigned kSlicePitch = kSliceWords + 4;
using Slice = Shared<uint32_t, kTensorTile * kSlicePitch>;
using RowNumbers = Shared<float, kTensorTile>;

// Each kernel has only one of each, whatever kinds of numbers it multiplies.
__device__ inline Slice& GetSliceA() {
  __shared__ Slice slice;
  return slice;
}
__device__ inline Slice& GetSliceB() {
  __shared__ Slice slice;
  return slice;
}
__device__ inline RowNumbers& GetRowScales() {
  __shared__ RowNumbers scales;
  return scales;
}
__device__ inline RowNumbers& GetRowFactors() {
  __shared__ RowNumbers factors;
  return factors;
}

template <class Number>
__host__ __device__ constexpr size_t CountWords(size_t k) {
  return (k + Number::kPerWord - 1) / Number::kPerWord;
}

// The factor that turns a row into integers, and the factor that turns integers back into the row.
struct RowScale {
  float scale, factor;
};

// The bits are those of the processor (kernels/int8/quantise.cc). A whole warp must call. Magnitudes compare as their
// bits do.
__device__ inline RowScale ComputeRowScale(const float* x, unsigned k) {
  uint32_t largest = 0;
  for (unsigned i = Lane(); i < k; i += kWarp) {
    const uint32_t magnitude = GetBits(x[i]) & 0x7fffffff;
    largest = magnitude > largest ? magnitude : largest;
  }
  largest = WarpMax(largest);
  constexpr float kSmallest = 0x1p-100f;
  if (IsSpecial(largest)) return {BitsToFloat(kNotANumber), 0.0f};
  const float magnitude = BitsToFloat(largest);
  if (magnitude < kSmallest) return {0.0f, 0.0f};
  return {__fdiv_rn(magnitude, 127.0f), __fdiv_rn(127.0f, magnitude)};
}

// The source of B's words.
enum class WordSourceB { kPacked, kInner, kOuter };

// Word `word` of row `outer` of a float matrix.
template <class Number, Along kAlong>
__device__ inline uint32_t MakeWord(const float* matrix, size_t ld, unsigned outer, unsigned word, unsigned k,
                                    float factor) {
  float x[Number::kPerWord];
  WISP_UNROLL for (unsigned i = 0; i < Number::kPerWord; ++i) {
    const unsigned inner = word * Number::kPerWord + i;
    x[i] = inner < k ? At<kAlong>(matrix, ld, outer, inner) : 0.0f;
  }
  return Number::Word(x, factor);
}

template <class Number>
__device__ inline const uint32_t* PackedWords(const Product& p) {
  return reinterpret_cast<const uint32_t*>(p.b) + (Number::kScaled ? p.n : 0);
}

template <class Number, WordSourceB kFrom>
__device__ inline uint32_t LoadWordB(const Product& p, unsigned n, unsigned word) {
  if constexpr (kFrom == WordSourceB::kPacked) {
    return PackedWords<Number>(p)[n * CountWords<Number>(p.k) + word];
  } else {
    constexpr Along kAlong = kFrom == WordSourceB::kInner ? Along::kInner : Along::kOuter;
    return MakeWord<Number, kAlong>(p.b, p.ldb, n, word, p.k, 0.0f);
  }
}

// Finds the scales of the tile's rows, with a warp for each row.
__device__ inline void FindScales(const Product& p, unsigned first_m) {
  for (unsigned r = WarpInBlock(); r < kTensorTile; r += kStageThreads / kWarp) {
    const RowScale scale = first_m + r < p.m ? ComputeRowScale(p.a + (first_m + r) * p.lda, p.k) : RowScale{0.0f, 0.0f};
    if (Lane() == 0) {
      GetRowScales()[r] = scale.scale;
      GetRowFactors()[r] = scale.factor;
    }
  }
  __syncthreads();
}

template <class Number>
__device__ inline void FinishTensor(const Product& p, unsigned first_m, unsigned row, unsigned n,
                                    typename Number::Sum sum) {
  if (first_m + row >= p.m || n >= p.n) return;
  if constexpr (Number::kScaled) {
    const float of_row = __fmul_rn(static_cast<float>(sum), GetRowScales()[row]);
    Finish(p, first_m + row, n, __fmul_rn(of_row, p.b[n]));
  } else {
    Finish(p, first_m + row, n, sum);
  }
}

// The elements of a slice that a thread loads: neighbouring threads load neighbours in memory.
inline constexpr unsigned kSlicePerThread = kTensorTile * kSliceWords / kStageThreads;

template <bool kInner>
__device__ inline unsigned SliceRow(unsigned i) {
  return kInner ? threadIdx.x / kSliceWords + i * (kStageThreads / kSliceWords) : threadIdx.x % kTensorTile;
}
template <bool kInner>
__device__ inline unsigned SliceWord(unsigned i) {
  return kInner ? threadIdx.x % kSliceWords : threadIdx.x / kTensorTile + i * (kStageThreads / kTensorTile);
}

template <bool kInner>
__device__ inline void StoreSlice(Slice& slice, const uint32_t (&words)[kSlicePerThread]) {
  WISP_UNROLL for (unsigned i = 0; i < kSlicePerThread; ++i) {
    slice[SliceRow<kInner>(i) * kSlicePitch + SliceWord<kInner>(i)] = words[i];
  }
}

// Words of A: rows from first_m on, words from first_word on.
template <class Number, Along kA>
__device__ inline void FetchA(const Product& p, unsigned first_m, unsigned first_word,
                              uint32_t (&words)[kSlicePerThread]) {
  constexpr bool kInner = kA == Along::kInner;
  WISP_UNROLL for (unsigned i = 0; i < kSlicePerThread; ++i) {
    const unsigned row = SliceRow<kInner>(i), word = first_word + SliceWord<kInner>(i);
    float factor = 0.0f;
    if constexpr (Number::kScaled) factor = GetRowFactors()[row];
    const bool is_there = first_m + row < p.m && word < CountWords<Number>(p.k);
    words[i] = is_there ? MakeWord<Number, kA>(p.a, p.lda, first_m + row, word, p.k, factor) : 0;
  }
}

template <class Number, WordSourceB kB>
__device__ inline void FetchB(const Product& p, unsigned first_n, unsigned first_word,
                              uint32_t (&words)[kSlicePerThread]) {
  constexpr bool kInner = kB != WordSourceB::kOuter;
  WISP_UNROLL for (unsigned i = 0; i < kSlicePerThread; ++i) {
    const unsigned n = first_n + SliceRow<kInner>(i), word = first_word + SliceWord<kInner>(i);
    words[i] = n < p.n && word < CountWords<Number>(p.k) ? LoadWordB<Number, kB>(p, n, word) : 0;
  }
}

// A warp computes 16 rows by 32 columns of a tile. Eight warps, four by two, compute the tile.
inline constexpr unsigned kWarpColumnGroups = 4;  // groups of eight columns
__device__ inline unsigned FirstWarpRow() { return WarpInBlock() % 4 * 16; }
__device__ inline unsigned FirstWarpColumn() { return WarpInBlock() / 4 * (8 * kWarpColumnGroups); }

template <class Number>
__device__ inline void MultiplySlices(Slice& a_slice, Slice& b_slice,
                                      typename Number::Sum (&sum)[kWarpColumnGroups][4]) {
  const unsigned g = Lane() / 4, t = Lane() % 4;
  __syncwarp();  // lanes that loaded less may be ahead, and all multiply together
  WISP_UNROLL for (unsigned first = 0; first < kSliceWords; first += 8) {
    uint32_t a[4];
    WISP_UNROLL for (unsigned i = 0; i < 4; ++i) {
      a[i] = a_slice[(FirstWarpRow() + g + i % 2 * 8) * kSlicePitch + first + t + i / 2 * 4];
    }
    WISP_UNROLL for (unsigned j = 0; j < kWarpColumnGroups; ++j) {
      uint32_t b[2];
      WISP_UNROLL for (unsigned i = 0; i < 2; ++i) {
        b[i] = b_slice[(FirstWarpColumn() + 8 * j + g) * kSlicePitch + first + t + 4 * i];
      }
      Number::Multiply(sum[j], a, b);
    }
  }
}

// A block computes a tile of 64 by 64 elements. While a slice is multiplied, the next one is loaded to registers.
template <class Number, Along kA, WordSourceB kB>
__device__ inline void MultiplyTensorTile(const Product& p, unsigned tile) {
  static_assert(Number::kPerWord == 1 || (kA == Along::kInner && kB != WordSourceB::kOuter));
  const unsigned first_m = tile / p.tiles_n * kTensorTile, first_n = tile % p.tiles_n * kTensorTile;
  const unsigned words = static_cast<unsigned>(CountWords<Number>(p.k));
  Slice &a_slice = GetSliceA(), &b_slice = GetSliceB();
  if constexpr (Number::kScaled) FindScales(p, first_m);
  uint32_t a_next[kSlicePerThread], b_next[kSlicePerThread];
  typename Number::Sum sum[kWarpColumnGroups][4] = {};
  FetchA<Number, kA>(p, first_m, 0, a_next);
  FetchB<Number, kB>(p, first_n, 0, b_next);
  for (unsigned next = kSliceWords; next < words + kSliceWords; next += kSliceWords) {
    StoreSlice<kA == Along::kInner>(a_slice, a_next);
    StoreSlice<kB != WordSourceB::kOuter>(b_slice, b_next);
    __syncthreads();
    if (next < words) {
      FetchA<Number, kA>(p, first_m, next, a_next);
      FetchB<Number, kB>(p, first_n, next, b_next);
    }
    MultiplySlices<Number>(a_slice, b_slice, sum);
    __syncthreads();
  }
  WISP_UNROLL for (unsigned j = 0; j < kWarpColumnGroups; ++j) {
    WISP_UNROLL for (unsigned i = 0; i < 4; ++i) {
      const unsigned row = FirstWarpRow() + Lane() / 4 + i / 2 * 8;
      const unsigned n = first_n + FirstWarpColumn() + 8 * j + 2 * (Lane() % 4) + i % 2;
      FinishTensor<Number>(p, first_m, row, n, sum[j][i]);
    }
  }
}

// Rows by packed weights. The weights may be in pieces of equal width, each packed alone.
struct TensorProduct {
  Product p;  // for the first piece; p.n and p.ldb are for all
  size_t piece_columns, piece_stride;
  unsigned blocks_of_piece;
};

// The product of piece `piece`.
__device__ inline Product GetPiece(const TensorProduct& t, unsigned piece) {
  Product p = t.p;
  const size_t first = piece * t.piece_columns, left = p.n - first;
  p.b += piece * t.piece_stride;
  if (p.bias != nullptr) p.bias += first;
  p.c += first;
  p.n = static_cast<unsigned>(left < t.piece_columns ? left : t.piece_columns);
  p.tiles_n = (p.n + kTensorTile - 1) / kTensorTile;
  return p;
}

template <class Number>
constexpr StageKind TensorStageKind() {
  if constexpr (std::is_same_v<Number, Tf32>) return StageKind::kProductTf32;
  if constexpr (std::is_same_v<Number, Float16>) return StageKind::kProductFloat16;
  if constexpr (std::is_same_v<Number, Bfloat16>) return StageKind::kProductBfloat16;
  return StageKind::kProductInt8;
}

template <class Number>
struct TensorStage {
  using Args = TensorProduct;
  static constexpr StageKind kKind = TensorStageKind<Number>();
  static __device__ void Run(const Args& a, const BlockPlace& block) {
    const Product p = GetPiece(a, block.index / a.blocks_of_piece);
    const unsigned tile = block.index % a.blocks_of_piece;
    // The last piece may have fewer tiles than the others.
    if (tile < (p.m + kTensorTile - 1) / kTensorTile * p.tiles_n) {
      MultiplyTensorTile<Number, Along::kInner, WordSourceB::kPacked>(p, tile);
    }
  }
};

}  // namespace wisp::kernels::cuda

#endif  // WISP_KERNELS_CUDA_STAGES_TENSOR_PRODUCTS_H_
