// Matrix products on tensor cores, in place of those of gemm.cc (stages/tensor_products.h explains how an element is
// computed). Tf32 serves training too; the others only multiply rows by packed weights.
#include "kernels/cuda/fill.h"
#include "kernels/cuda/records.h"
#include "kernels/cuda/shares.h"
#include "kernels/cuda/stages/tensor_products.h"

namespace wisp::kernels::cuda {
namespace {

constexpr unsigned kThreads = kStageThreads;

unsigned CountTiles(size_t n) { return static_cast<unsigned>((n + kTensorTile - 1) / kTensorTile); }

// ---- Rows times packed weights. -------------------------------------------------------------------------------------

// Words in memory for floats; for integers, the scales before them.
template <class Number>
size_t PackedSize(size_t n, size_t k) {
  return n * CountWords<Number>(k) + (Number::kScaled ? n : 0);
}

// A warp for each row.
template <class Number>
__global__ void PackRows(PackWeightsArgs<> a) {
  const size_t warp = GlobalThread() / kWarp, warps = AllThreads() / kWarp;
  const unsigned k = static_cast<unsigned>(a.k), words = static_cast<unsigned>(CountWords<Number>(a.k));
  uint32_t* packed = reinterpret_cast<uint32_t*>(a.packed) + (Number::kScaled ? a.n : 0);
  for (size_t row = warp; row < a.n; row += warps) {
    const float* w = a.w_NK + row * a.ldw;
    RowScale scale = {1.0f, 1.0f};
    if constexpr (Number::kScaled) {
      scale = ComputeRowScale(w, k);
      if (Lane() == 0) a.packed[row] = scale.scale;
    }
    for (unsigned word = Lane(); word < words; word += kWarp) {
      packed[row * words + word] = MakeWord<Number, Along::kInner>(w, 0, 0, word, k, scale.factor);
    }
  }
}

template <class Number>
void PackWeights(const PackWeightsArgs<>& a) {
  if (a.n > 0) Launch<PackRows<Number>>({.blocks = BlocksFor(a.n * kWarp, kThreads), .threads = kThreads}, a);
}

template <class Number>
void RunTensorStage(TensorProduct t, unsigned pieces) {
  if (t.p.m == 0 || t.p.n == 0) return;
  t.blocks_of_piece = CountTiles(t.p.m) * CountTiles(t.piece_columns);
  RunStage<TensorStage<Number>>(pieces * t.blocks_of_piece, t, size_t{t.p.m} * t.p.n * t.p.k);
}

template <class Number>
void LinearForward(const LinearForwardArgs<>& a) {
  const Product p = {.a = a.x_RK,
                     .b = a.packed,
                     .bias = a.bias_N,
                     .c = a.y_RN,
                     .lda = a.ldx,
                     .ldb = 0,
                     .ldc = a.ldy,
                     .m = static_cast<unsigned>(a.rows),
                     .n = static_cast<unsigned>(a.n),
                     .k = static_cast<unsigned>(a.k),
                     .tiles_n = 0,
                     .scale = 1.0f,
                     .store = a.store};
  RunTensorStage<Number>({.p = p, .piece_columns = a.n, .piece_stride = 0, .blocks_of_piece = 0}, 1);
}

template <class Number>
void ScoreTiles(const ScoreTilesArgs<>& a) {
  if (a.n == 0) return;
  const Product p = {.a = a.x_RK,
                     .b = a.packed,
                     .bias = a.bias_N,
                     .c = a.y_RN,
                     .lda = a.k,
                     .ldb = 0,
                     .ldc = a.n,
                     .m = static_cast<unsigned>(a.rows),
                     .n = static_cast<unsigned>(a.n),
                     .k = static_cast<unsigned>(a.k),
                     .tiles_n = 0,
                     .scale = 1.0f,
                     .store = Store::kAssign};
  const unsigned pieces = static_cast<unsigned>((a.n + a.tile - 1) / a.tile);
  RunTensorStage<Number>({.p = p, .piece_columns = a.tile, .piece_stride = a.tile_stride, .blocks_of_piece = 0},
                         pieces);
}

// ---- Gradients, in tf32. --------------------------------------------------------------------------------------------

template <Along kA>
__global__ void __launch_bounds__(kThreads) MultiplyTf32(Product p) {
  MultiplyTensorTile<Tf32, kA, WordSourceB::kOuter>(p, blockIdx.x);
}

// Each row of blocks handles one share of the inner dimension.
__global__ void __launch_bounds__(kThreads) MultiplySharesTf32(Product p, unsigned rows_of_share) {
  MultiplyTensorTile<Tf32, Along::kOuter, WordSourceB::kOuter>(TakeShare(p, rows_of_share, blockIdx.y), blockIdx.x);
}

// Each row of blocks handles one record (gemm.cc).
__global__ void __launch_bounds__(kThreads) MultiplyRecordsTf32(Product p, LaunchedRecords records, size_t stride) {
  const uint32_t begin = records.begin[blockIdx.y];
  p.a += begin * p.lda;
  p.b += begin * p.ldb;
  p.c += size_t{records.first + blockIdx.y} * stride;
  p.k = records.begin[blockIdx.y + 1] - begin;
  MultiplyTensorTile<Tf32, Along::kOuter, WordSourceB::kOuter>(p, blockIdx.x);
}

template <Along kA>
void LaunchTf32(Product p) {
  if (p.m == 0 || p.n == 0) return;
  p.tiles_n = CountTiles(p.n);
  const unsigned tiles = CountTiles(p.m) * p.tiles_n;
  if constexpr (kA == Along::kOuter) {
    if (const unsigned shares = CountShares(tiles, p.k); shares > 1) {
      return MultiplyInShares(p, shares, [&](const Product& of_shares, unsigned rows_of_share) {
        Launch<MultiplySharesTf32>({.blocks = tiles, .blocks_y = shares, .threads = kThreads}, of_shares,
                                   rows_of_share);
      });
    }
  }
  Launch<MultiplyTf32<kA>>({.blocks = tiles, .threads = kThreads}, p);
}

void LinearBackwardInput(const LinearBackwardInputArgs<>& a) {
  LaunchTf32<Along::kInner>({.a = a.dy_RN,
                             .b = a.w_NK,
                             .bias = nullptr,
                             .c = a.dx_RK,
                             .lda = a.lddy,
                             .ldb = a.ldw,
                             .ldc = a.lddx,
                             .m = static_cast<unsigned>(a.rows),
                             .n = static_cast<unsigned>(a.k),
                             .k = static_cast<unsigned>(a.n),
                             .tiles_n = 0,
                             .scale = 1.0f,
                             .store = a.store});
}

void LinearBackwardWeight(const LinearBackwardWeightArgs<>& a) {
  LaunchTf32<Along::kOuter>({.a = a.dy_RN,
                             .b = a.x_RK,
                             .bias = nullptr,
                             .c = a.dw_NK,
                             .lda = a.lddy,
                             .ldb = a.ldx,
                             .ldc = a.lddw,
                             .m = static_cast<unsigned>(a.n),
                             .n = static_cast<unsigned>(a.k),
                             .k = static_cast<unsigned>(a.rows),
                             .tiles_n = 0,
                             .scale = a.scale,
                             .store = a.store});
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
                     .k = 0,  // each record has its own
                     .tiles_n = CountTiles(a.k),
                     .scale = 1.0f,
                     .store = Store::kAdd};
  ForRecords(a.records, a.records.rows, [&](const LaunchedRecords& records) {
    const Grid grid = {.blocks = CountTiles(a.n) * p.tiles_n, .blocks_y = records.count, .threads = kThreads};
    Launch<MultiplyRecordsTf32>(grid, p, records, a.stride);
  });
}

// ---- Tables. --------------------------------------------------------------------------------------------------------

template <class Number>
void FillNumber(OpTable& table, const char* name) {
  table.name = name;
  table.packed_size = PackedSize<Number>;
  table.pack_weights = PackWeights<Number>;
  table.linear_forward = LinearForward<Number>;
  table.score_tiles = ScoreTiles<Number>;
  table.linear_backward_weight = nullptr;  // this table is for inference
  table.record_weight_gradients = nullptr;
}

}  // namespace

void FillTensor(OpTable& table, Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::kFloat32:
      return;
    case Arithmetic::kTf32:
      FillNumber<Tf32>(table, "cuda tf32");
      table.linear_backward_input = LinearBackwardInput;
      table.linear_backward_weight = ForTraining(LinearBackwardWeight);
      table.record_weight_gradients = ForTraining(RecordWeightGradients);
      return;
    case Arithmetic::kFloat16:
      table.largest_factor = kLargestHalf;
      return FillNumber<Float16>(table, "cuda float16");
    case Arithmetic::kBfloat16:
      return FillNumber<Bfloat16>(table, "cuda bfloat16");
    case Arithmetic::kInt8:
      return FillNumber<Int8>(table, "cuda int8");
  }
}

}  // namespace wisp::kernels::cuda
