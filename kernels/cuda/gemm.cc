// Matrix products in float, for one matrix or for many records (stages/products.h explains how an element is computed).
//
// Packed weights are W^T [k, n]: the threads of a warp read 32 columns side by side.
#include "kernels/cuda/fill.h"
#include "kernels/cuda/for_each.h"
#include "kernels/cuda/records.h"
#include "kernels/cuda/shares.h"
#include "kernels/cuda/stages/products.h"

namespace wisp::kernels::cuda {
namespace {

constexpr unsigned kThreads = kStageThreads;

template <unsigned kSide>
__global__ void __launch_bounds__(kThreads, 2) MultiplyTiles(Product p) {
  MultiplyTile<Along::kOuter, Along::kOuter, kSide>(p, blockIdx.x);
}

// Each row of blocks handles one share of the inner dimension.
__global__ void __launch_bounds__(kThreads) MultiplyShares(Product p, unsigned rows_of_share) {
  MultiplyTile<Along::kOuter, Along::kOuter, 4>(TakeShare(p, rows_of_share, blockIdx.y), blockIdx.x);
}

// Each row of blocks handles one record. Its rows are the inner dimension, and its product lies `stride` after the
// previous one.
template <unsigned kSide>
__global__ void __launch_bounds__(kThreads, 2) MultiplyRecords(Product p, LaunchedRecords records, size_t stride) {
  const uint32_t begin = records.begin[blockIdx.y];
  p.a += begin * p.lda;
  p.b += begin * p.ldb;
  p.c += size_t{records.first + blockIdx.y} * stride;
  p.k = records.begin[blockIdx.y + 1] - begin;
  MultiplyTile<Along::kOuter, Along::kOuter, kSide>(p, blockIdx.x);
}

// Computes a tile of scores, all of whose columns are in one packed tile.
template <unsigned kSide>
__global__ void __launch_bounds__(kThreads, 2) ScoreTile(ScoreTilesArgs<> a, unsigned blocks_of_tile) {
  constexpr unsigned kTile = kSideThreads * kSide;
  Product p = MakeTileProduct(a, blockIdx.x / blocks_of_tile);
  p.tiles_n = (p.n + kTile - 1) / kTile;
  const unsigned block = blockIdx.x % blocks_of_tile, tiles_m = (p.m + kTile - 1) / kTile;
  if (block < tiles_m * p.tiles_n) MultiplyTile<Along::kInner, Along::kOuter, kSide>(p, block);
}

constexpr size_t kFewRows = 8;

unsigned CountTiles(size_t m, size_t n, unsigned side) {
  const size_t tile = size_t{kSideThreads} * side;
  return static_cast<unsigned>((m + tile - 1) / tile * ((n + tile - 1) / tile));
}

// Calls f.operator()<side>(p with tiles_n set, tiles of p) for `copies` products of this size. Large tiles read less
// memory, and small ones leave fewer processors idle.
template <class F>
void WithSide(Product p, size_t copies, const F& f) {
  const auto fills = [&](unsigned side) { return CountTiles(p.m, p.n, side) * copies >= CountProcessors(); };
  const auto call = [&]<unsigned kSide>() {
    constexpr unsigned kTile = kSideThreads * kSide;
    p.tiles_n = (p.n + kTile - 1) / kTile;
    f.template operator()<kSide>(p, CountTiles(p.m, p.n, kSide));
  };
  if (fills(8)) return call.template operator()<8>();
  if (fills(4)) return call.template operator()<4>();
  call.template operator()<2>();
}

// Multiplies rows by a matrix in the layout of packed weights.
void MultiplyRows(const Product& p) {
  if (p.m == 0 || p.n == 0) return;
  const size_t work = size_t{p.m} * p.n * p.k;
  if (p.m <= kFewRows) return RunStage<FewRowsStage>(BlocksFor(size_t{p.m} * p.n, kThreads), p, work);
  WithSide(p, 1, [&]<unsigned kSide>(const Product& tiled, unsigned blocks) {
    RunStage<TilesStage<kSide>>(blocks, tiled, work);
  });
}

// Multiplies columns by rows: the inner index is contiguous in neither operand.
void MultiplyColumns(Product p) {
  if (p.m == 0 || p.n == 0) return;
  const unsigned tiles = CountTiles(p.m, p.n, 4);
  if (const unsigned shares = CountShares(tiles, p.k); shares > 1) {
    p.tiles_n = (p.n + 4 * kSideThreads - 1) / (4 * kSideThreads);
    return MultiplyInShares(p, shares, [&](const Product& of_shares, unsigned rows_of_share) {
      Launch<MultiplyShares>({.blocks = tiles, .blocks_y = shares, .threads = kThreads}, of_shares, rows_of_share);
    });
  }
  WithSide(p, 1, [&]<unsigned kSide>(const Product& tiled, unsigned blocks) {
    Launch<MultiplyTiles<kSide>>({.blocks = blocks, .threads = kThreads}, tiled);
  });
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
  if (a.rows <= kFewRows) return RunStage<ScoreFewRowsStage>(BlocksFor(a.rows * a.n, kThreads), a, a.rows * a.n * a.k);
  const size_t tiles = (a.n + a.tile - 1) / a.tile;
  const Product of_tile = {.m = static_cast<unsigned>(a.rows), .n = static_cast<unsigned>(std::min(a.tile, a.n))};
  WithSide(of_tile, tiles, [&]<unsigned kSide>(const Product&, unsigned blocks) {
    const Grid grid = {.blocks = static_cast<unsigned>(tiles * blocks), .threads = kThreads};
    Launch<ScoreTile<kSide>>(grid, a, blocks);
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
  WithSide(p, a.records.num_records, [&]<unsigned kSide>(const Product& tiled, unsigned blocks) {
    ForRecords(a.records, a.records.rows, [&](const LaunchedRecords& records) {
      const Grid grid = {.blocks = blocks, .blocks_y = records.count, .threads = kThreads};
      Launch<MultiplyRecords<kSide>>(grid, tiled, records, a.stride);
    });
  });
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
