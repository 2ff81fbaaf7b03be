// Matrix products in float, for one matrix or for many records (stages/products.h explains how an element is computed).
//
// Packed weights are W^T [k, n]: the threads of a warp read 32 columns side by side.
#include "kernels/cuda/fill.h"
#include "kernels/cuda/for_each.h"
#include "kernels/cuda/records.h"
#include "kernels/cuda/stages/products.h"

namespace wisp::kernels::cuda {
namespace {

constexpr unsigned kThreads = kStageThreads;

template <Along kA, Along kB, unsigned kSide>
__global__ void __launch_bounds__(kThreads) MultiplyTiles(Product p) {
  MultiplyTile<kA, kB, kSide>(p, blockIdx.x);
}

// Each row of blocks handles one record. Its rows are the inner dimension, and its product lies `stride` after the
// previous one.
template <unsigned kSide>
__global__ void __launch_bounds__(kThreads) MultiplyRecords(Product p, LaunchedRecords records, size_t stride) {
  const uint32_t begin = records.begin[blockIdx.y];
  p.a += begin * p.lda;
  p.b += begin * p.ldb;
  p.c += size_t{records.first + blockIdx.y} * stride;
  p.k = records.begin[blockIdx.y + 1] - begin;
  MultiplyTile<Along::kOuter, Along::kOuter, kSide>(p, blockIdx.x);
}

// Computes a tile of scores, all of whose columns are in one packed tile.
template <unsigned kSide>
__global__ void __launch_bounds__(kThreads) ScoreTile(ScoreTilesArgs<> a, unsigned blocks_of_tile) {
  constexpr unsigned kTile = kSideThreads * kSide;
  Product p = MakeTileProduct(a, blockIdx.x / blocks_of_tile * a.tile);
  p.tiles_n = (p.n + kTile - 1) / kTile;
  const unsigned block = blockIdx.x % blocks_of_tile, tiles_m = (p.m + kTile - 1) / kTile;
  if (block < tiles_m * p.tiles_n) MultiplyTile<Along::kInner, Along::kOuter, kSide>(p, block);
}

__global__ void MultiplyFewColumns(Product p) {
  for (size_t i = GlobalThread(); i < size_t{p.m} * p.n; i += AllThreads()) {
    MultiplyElement<Along::kOuter>(p, static_cast<unsigned>(i / p.n), static_cast<unsigned>(i % p.n));
  }
}

// Large tiles read less memory; small tiles leave fewer processors idle. (These bounds are not measured on a device.)
constexpr size_t kFewRows = 8, kLargeOutput = size_t{128} * 128 * 64;

unsigned CountTiles(Product& p, unsigned side) {
  const unsigned tile = kSideThreads * side;
  p.tiles_n = (p.n + tile - 1) / tile;
  return (p.m + tile - 1) / tile * p.tiles_n;
}

// Multiplies rows by a matrix in the layout of packed weights.
void MultiplyRows(Product p) {
  if (p.m == 0 || p.n == 0) return;
  if (p.m <= kFewRows) return RunStage<FewRowsStage>(BlocksFor(size_t{p.m} * p.n, kThreads), p);
  if (size_t{p.m} * p.n >= kLargeOutput) return RunStage<TilesStage<8>>(CountTiles(p, 8), p);
  RunStage<TilesStage<4>>(CountTiles(p, 4), p);
}

// Multiplies columns by rows: the inner index is contiguous in neither operand.
void MultiplyColumns(Product p) {
  if (p.m == 0 || p.n == 0) return;
  if (p.m <= kFewRows) return Launch(MultiplyFewColumns, {.blocks = BlocksFor(size_t{p.m} * p.n, kThreads)}, p);
  if (size_t{p.m} * p.n >= kLargeOutput) {
    const Grid grid = {.blocks = CountTiles(p, 8), .threads = kThreads};
    return Launch(MultiplyTiles<Along::kOuter, Along::kOuter, 8>, grid, p);
  }
  const Grid grid = {.blocks = CountTiles(p, 4), .threads = kThreads};
  Launch(MultiplyTiles<Along::kOuter, Along::kOuter, 4>, grid, p);
}

size_t PackedSize(size_t n, size_t k) { return n * k; }

void PackWeights(const PackWeightsArgs<>& a) {
  ForEachElement(a.k, a.n, [a] __device__(size_t i, size_t j) { a.packed[i * a.n + j] = a.w_NK[j * a.ldw + i]; });
}

void LinearForward(const LinearForwardArgs<>& a) {
  MultiplyRows({.a = a.x_RK,
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
  MultiplyRows({.a = a.dy_RN,
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
  MultiplyColumns({.a = a.dy_RN,
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

// A tile of the head is a multiple of every block's side.
void ScoreTiles(const ScoreTilesArgs<>& a) {
  if (a.rows == 0 || a.n == 0) return;
  if (a.rows <= kFewRows) return RunStage<ScoreFewRowsStage>(BlocksFor(a.rows * a.n, kThreads), a);
  const auto launch = [&](auto kernel, size_t side) {
    const size_t of_tile = (a.rows + side - 1) / side * ((a.tile + side - 1) / side);
    const size_t tiles = (a.n + a.tile - 1) / a.tile;
    const Grid grid = {.blocks = static_cast<unsigned>(tiles * of_tile), .threads = kThreads};
    Launch(kernel, grid, a, static_cast<unsigned>(of_tile));
  };
  a.rows > 4 * kSideThreads ? launch(ScoreTile<8>, 8 * kSideThreads) : launch(ScoreTile<4>, 4 * kSideThreads);
}

template <unsigned kSide>
void LaunchRecords(Product p, const RecordWeightGradientsArgs<>& a) {
  constexpr unsigned kTile = kSideThreads * kSide;
  p.tiles_n = (p.n + kTile - 1) / kTile;
  const unsigned tiles = (p.m + kTile - 1) / kTile * p.tiles_n;
  ForRecords(a.records, a.records.rows, [&](const LaunchedRecords& records) {
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
                     .k = 0,  // each record has its own
                     .scale = 1.0f,
                     .store = Store::kAdd};
  a.n* a.k* a.records.num_records >= kLargeOutput ? LaunchRecords<8>(p, a) : LaunchRecords<4>(p, a);
}

}  // namespace

void FillGemm(OpTable& table) {
  table.packed_size = PackedSize;
  table.pack_weights = PackWeights;
  table.linear_forward = LinearForward;
  table.score_tiles = ScoreTiles;
  table.linear_backward_input = LinearBackwardInput;
  table.linear_backward_weight = ForTraining(LinearBackwardWeight);
  table.record_weight_gradients = ForTraining(RecordWeightGradients);
}

}  // namespace wisp::kernels::cuda
