// Matrix products in float.
//
// Whatever the kernel and the number of rows, an element is the same chain of fused multiply-adds, in the order of the
// inner index: its bits depend on its own row and column and on nothing beside them. So a record's gradient does not
// depend on the records that pass with it (docs/algorithms.md, "many records at once").
// Packed weights are W^T [k, n]: the threads of a warp read 32 columns side by side.
#include "kernels/cuda/fill.h"
#include "kernels/cuda/for_each.h"
#include "kernels/cuda/records.h"

namespace wisp::kernels::cuda {
namespace {

// c[m, n] (=|+=) scale * sum over k of A(m, k) B(n, k), and a bias for each n. A(m, k) is a[m * lda + k] where k runs
// along the memory, else a[k * lda + m]; likewise B.
struct Product {
  const float *a, *b, *bias;
  float* c;
  size_t lda, ldb, ldc;
  unsigned m, n, k, tiles_n;
  float scale;
  Store store;
};

enum class Along { kInner, kOuter };  // what runs along the memory

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

constexpr unsigned kThreads = 256, kSideThreads = 16, kDepth = 16;

// A block makes a tile of 16 kSide by 16 kSide, a thread kSide by kSide elements of it, 16 apart. While a slice of
// depth 16 is multiplied, the next is on its way to the registers.
template <Along kA, Along kB, unsigned kSide>
__device__ inline void MultiplyTile(const Product& p) {
  constexpr unsigned kTile = kSideThreads * kSide, kPitch = kTile + 2;  // + 2: stores along k meet no bank twice
  __shared__ Shared<float, kDepth * kPitch> a_slice;
  __shared__ Shared<float, kDepth * kPitch> b_slice;
  const unsigned first_m = blockIdx.x / p.tiles_n * kTile, first_n = blockIdx.x % p.tiles_n * kTile;
  const unsigned row = threadIdx.x / kSideThreads, column = threadIdx.x % kSideThreads;
  // The part of a slice that this thread brings: element i is (outer, inner) of the tile.
  const auto outer_of = [](Along along, unsigned i) {
    return along == Along::kInner ? threadIdx.x / kDepth + i * kSideThreads : (threadIdx.x + i * kThreads) % kTile;
  };
  const auto inner_of = [](Along along, unsigned i) {
    return along == Along::kInner ? threadIdx.x % kDepth : (threadIdx.x + i * kThreads) / kTile;
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
    // Behind the last k both are zero: the chain goes on, and nothing changes.
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

template <Along kA, Along kB, unsigned kSide>
__global__ void __launch_bounds__(kThreads) MultiplyTiles(Product p) {
  MultiplyTile<kA, kB, kSide>(p);
}

// One record for each row of blocks: its rows are the inner dimension, and its product lies `stride` behind the one
// before.
template <unsigned kSide>
__global__ void __launch_bounds__(kThreads) MultiplyRecords(Product p, RecordsOfLaunch records, size_t stride) {
  const uint32_t begin = records.begin[blockIdx.y];
  p.a += begin * p.lda;
  p.b += begin * p.ldb;
  p.c += size_t{records.first + blockIdx.y} * stride;
  p.k = records.begin[blockIdx.y + 1] - begin;
  MultiplyTile<Along::kOuter, Along::kOuter, kSide>(p);
}

// A thread for each element: where there are few rows, tiles would stand empty. B is read side by side.
template <Along kA>
__global__ void MultiplyFewRows(Product p) {
  for (size_t i = GlobalThread(); i < size_t{p.m} * p.n; i += AllThreads()) {
    const auto m = static_cast<unsigned>(i / p.n), n = static_cast<unsigned>(i % p.n);
    float sum = 0;
    for (unsigned k = 0; k < p.k; ++k) sum = fmaf(At<kA>(p.a, p.lda, m, k), p.b[k * p.ldb + n], sum);
    Finish(p, m, n, sum);
  }
}

template <Along kA, Along kB, unsigned kSide>
void LaunchTiles(Product p) {
  constexpr unsigned kTile = kSideThreads * kSide;
  p.tiles_n = (p.n + kTile - 1) / kTile;
  const unsigned tiles_m = (p.m + kTile - 1) / kTile;
  Launch(MultiplyTiles<kA, kB, kSide>, {.blocks = tiles_m * p.tiles_n, .threads = kThreads}, p);
}

// Large tiles read less; small ones leave fewer processors idle. (Bounds: to be measured on a device.)
constexpr size_t kFewRows = 8, kLargeOutput = size_t{128} * 128 * 64;

template <Along kA, Along kB>
void Multiply(const Product& p) {
  if (p.m == 0 || p.n == 0) return;
  if constexpr (kB == Along::kOuter) {
    if (p.m <= kFewRows) {
      return Launch(MultiplyFewRows<kA>, {.blocks = BlocksFor(size_t{p.m} * p.n, 128), .threads = 128}, p);
    }
  }
  size_t{p.m} * p.n >= kLargeOutput ? LaunchTiles<kA, kB, 8>(p) : LaunchTiles<kA, kB, 4>(p);
}

size_t PackedSize(size_t n, size_t k) { return n * k; }

void PackWeights(const PackWeightsArgs<>& a) {
  ForEachOf(a.k, a.n, [a] __device__(size_t i, size_t j) { a.packed[i * a.n + j] = a.w_NK[j * a.ldw + i]; });
}

void LinearForward(const LinearForwardArgs<>& a) {
  Multiply<Along::kInner, Along::kOuter>({.a = a.x_RK,
                                          .b = a.packed,
                                          .bias = a.bias_N,
                                          .c = a.y_RN,
                                          .lda = a.ldx,
                                          .ldb = a.n,
                                          .ldc = a.ldy,
                                          .m = static_cast<unsigned>(a.rows),
                                          .n = static_cast<unsigned>(a.n),
                                          .k = static_cast<unsigned>(a.k),
                                          .scale = 1.0f,
                                          .store = a.store});
}

void LinearBackwardInput(const LinearBackwardInputArgs<>& a) {
  Multiply<Along::kInner, Along::kOuter>({.a = a.dy_RN,
                                          .b = a.w_NK,
                                          .bias = nullptr,
                                          .c = a.dx_RK,
                                          .lda = a.lddy,
                                          .ldb = a.ldw,
                                          .ldc = a.lddx,
                                          .m = static_cast<unsigned>(a.rows),
                                          .n = static_cast<unsigned>(a.k),
                                          .k = static_cast<unsigned>(a.n),
                                          .scale = 1.0f,
                                          .store = a.store});
}

void LinearBackwardWeight(const LinearBackwardWeightArgs<>& a) {
  Multiply<Along::kOuter, Along::kOuter>({.a = a.dy_RN,
                                          .b = a.x_RK,
                                          .bias = nullptr,
                                          .c = a.dw_NK,
                                          .lda = a.lddy,
                                          .ldb = a.ldx,
                                          .ldc = a.lddw,
                                          .m = static_cast<unsigned>(a.n),
                                          .n = static_cast<unsigned>(a.k),
                                          .k = static_cast<unsigned>(a.rows),
                                          .scale = a.scale,
                                          .store = a.store});
}

template <unsigned kSide>
void LaunchRecords(Product p, const RecordWeightGradientsArgs<>& a) {
  constexpr unsigned kTile = kSideThreads * kSide;
  p.tiles_n = (p.n + kTile - 1) / kTile;
  const unsigned tiles = (p.m + kTile - 1) / kTile * p.tiles_n;
  ForRecords(a.records, a.records.rows, [&](const RecordsOfLaunch& records) {
    const Grid grid = {.blocks = tiles, .blocks_y = records.count, .threads = kThreads};
    Launch(MultiplyRecords<kSide>, grid, p, records, a.stride);
  });
}

void RecordWeightGradients(const RecordWeightGradientsArgs<>& a) {
  if (a.n == 0 || a.k == 0) return;
  const Product p = {.a = a.dy_RN,
                     .b = a.x_RK,
                     .bias = nullptr,
                     .c = a.dw_BNK,
                     .lda = a.lddy,
                     .ldb = a.ldx,
                     .ldc = a.k,
                     .m = static_cast<unsigned>(a.n),
                     .n = static_cast<unsigned>(a.k),
                     .k = 0,  // each record's
                     .scale = 1.0f,
                     .store = Store::kAdd};
  a.n* a.k* a.records.num_records >= kLargeOutput ? LaunchRecords<8>(p, a) : LaunchRecords<4>(p, a);
}

}  // namespace

void FillGemm(OpTable& table) {
  table.packed_size = PackedSize;
  table.pack_weights = PackWeights;
  table.linear_forward = LinearForward;
  table.linear_backward_input = LinearBackwardInput;
  table.linear_backward_weight = ForTraining(LinearBackwardWeight);
  table.record_weight_gradients = ForTraining(RecordWeightGradients);
}

}  // namespace wisp::kernels::cuda
