// Products for SIMD tables: packing, blocking and edges around the register tile of gemm_tile-inl.h.
//
// All three orientations use one loop nest over C = A B. Forward reads B = W^T from packed panels, K-major and
// kPanelWidth columns wide; or from a model file's panels, kFloatPanelRows wide. The two backward products read B's
// rows (of W, of x) in place, and A by rows (dy) or by columns (dy^T). Ragged columns go through a tile on the stack,
// so that nothing outside is touched.
#include "kernels/simd/fill.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/gemm.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/simd/gemm_tile-inl.h"
#include "kernels/simd/partial-inl.h"

#include <algorithm>
#include <cstddef>

#include "kernels/int8/kernel.h"
#include "kernels/reference/by_record.h"

HWY_BEFORE_NAMESPACE();
namespace wisp::kernels::HWY_NAMESPACE {
namespace {

// A block of B has kInnerBlock rows of a few panels, 64 KiB in all. It stays in the cache while all rows of A pass. It
// has several panels because a pass over a tall, wide C touches a page in each row: with half as many, 200 x 3416 x 64
// took 5 % longer (Sapphire Rapids, November 2026).
constexpr size_t kInnerBlock = 256;
constexpr size_t kBlockFloats = 16384;

// A transposed A and an unpacked B are read across their rows; with long rows, every step is on another page. In that
// case a few tiles' columns of A are copied first, and so is the block of B if enough rows of A pass.
constexpr size_t kCopyTiles = 2;
constexpr size_t kCopyStride = 512;
constexpr size_t kCopyRowBlocks = 3;
// Both copies are on the stack and take 60 KB together; threads may have only 128 KB (musl).
constexpr size_t kCopiedFloats = kInnerBlock * kPanelWidth;

// The number of our panels in one panel of a model file.
constexpr size_t kSubPanels = kFloatPanelRows / kPanelWidth;
static_assert(kFloatPanelRows % kPanelWidth == 0);
// With four of them, a few rows would wait for the lines of a panel, which arrive one by one.
constexpr bool kPrefetchesStored = kSubPanels == 4 && !kFewTiles;

// Only the gradient of weights reads A by columns.
#ifdef WISP_INFERENCE_ONLY
constexpr bool kTransposes = false;
#else
constexpr bool kTransposes = true;
#endif

struct Product {
  const float* a;
  size_t lda;
  bool transposed_a;
  const float* b;  // packed panels, or rows
  size_t ldb;      // of rows; ignored if packed
  bool packed_b;
  bool stored_b;  // packed_b is true too; the panels are those of a model file
  float* c;
  size_t ldc;
  const float* bias;
  float scale;
  size_t rows, cols, inner;
  Store store;
};

// One block of the inner size, common to the tiles of all rows and panels.
struct Block {
  size_t first, size;  // of the inner index
  bool add;
  const float* bias;
};

// The stride between B's packed panels. If a stored panel holds just one of ours, it is handled like our own packing.
size_t PanelStride(const Product& p) { return p.stored_b ? kFloatPanelRows : kPanelWidth; }
bool IsDivided(const Product& p) { return kSubPanels > 1 && p.stored_b; }

// Writes C's ragged right edge: `cols` < kPanelWidth columns from a whole tile of products. `t` describes the target.
void MergeEdge(const float* tile, size_t rows, size_t cols, const GemmTileArgs& t) {
  const hn::ScalableTag<float> d;
  const auto scale = hn::Set(d, t.scale);
  for (size_t j = 0; j < cols; j += kTileLanes) {
    const size_t count = std::min(kTileLanes, cols - j);
    const auto bias = t.bias != nullptr ? LoadPartial(d, t.bias + j, count) : hn::Zero(d);
    for (size_t r = 0; r < rows; ++r) {
      float* c = t.c + r * t.ldc + j;
      const auto base = t.add ? hn::Add(LoadPartial(d, c, count), bias) : bias;
      StorePartial(hn::MulAdd(hn::Load(d, tile + r * kPanelWidth + j), scale, base), d, c, count);
    }
  }
}

// Computes two panels of a few rows.
template <bool kAsks>
constexpr std::array<TileFunction, 3> kWideTiles = {MultiplyTile<1, 2, false, kAsks>, MultiplyTile<2, 2, false, kAsks>,
                                                    MultiplyTile<3, 2, false, kAsks>};

// A strip of C: rows [row, row + rows) by `num_panels` panels. `a` points to A's first element for it. Panels of an
// unpacked B from `first_copied` on lie in `copied_b`, one after another.
struct Strip {
  const float* a;
  size_t lda;
  size_t row, rows, first_panel, num_panels;
  const float* copied_b;
  size_t first_copied;
  Prefetch prefetch;
};

void MultiplyStrip(const Product& p, const Block& block, const Strip& strip) {
  const auto& tiles = kTransposes && p.transposed_a ? kTiles<true> : kTiles<false>;
  GemmTileArgs t;
  t.a = strip.a;
  t.lda = strip.lda;
  t.ldc = p.ldc;
  t.scale = p.scale;
  t.inner = block.size;
  t.add = block.add;
  t.prefetch = strip.prefetch;
  const bool divided = IsDivided(p);
  if (p.packed_b) {
    t.ldb = PanelStride(p);
    t.b_panel = divided ? kPanelWidth : p.inner * kPanelWidth;
    t.b_pair = divided && kSubPanels == 2 ? p.inner * kFloatPanelRows : 2 * t.b_panel;
  }
  const size_t rows = strip.rows;
  const size_t from_tallest = kTileRows - rows;
  const bool asks = strip.prefetch.step != 0;
  const TileFunction tile = asks && from_tallest < kTallestBoth ? kPrefetchingTiles[from_tallest] : tiles[rows - 1];
  const size_t end = strip.first_panel + strip.num_panels;
  const size_t whole = std::min(end, p.cols / kPanelWidth);
  const auto move_to = [&](size_t panel) {
    const size_t col = panel * kPanelWidth;
    if (divided) {
      const size_t part = panel % kSubPanels;
      t.b = p.b + (panel - part) * p.inner * kPanelWidth + block.first * kFloatPanelRows + part * kPanelWidth;
      // Each part prefetches its share of the next panels.
      t.prefetch.ahead = strip.prefetch.ahead + static_cast<ptrdiff_t>(part * (block.size - 1) * kPanelWidth);
    } else if (p.packed_b) {
      t.b = p.b + panel * t.b_panel + block.first * kPanelWidth;
    } else {
      const bool copied = panel >= strip.first_copied;
      t.ldb = copied ? kPanelWidth : p.ldb;
      t.b_panel = copied ? block.size * kPanelWidth : kPanelWidth;
      t.b_pair = 2 * t.b_panel;
      t.b = copied ? strip.copied_b + (panel - strip.first_copied) * t.b_panel : p.b + block.first * p.ldb + col;
    }
    t.c = p.c + strip.row * p.ldc + col;
    t.bias = block.bias != nullptr ? block.bias + col : nullptr;
  };
  size_t panel = strip.first_panel;
  while (panel < whole) {
    move_to(panel);
    const size_t left = whole - panel;
    // With few rows several panels are computed at once; otherwise the additions of one accumulator would wait for each
    // other. Three rows that prefetch use one panel, because they wait for memory anyway. A strip begins at the
    // start of a stored panel. So two or four panels lie within one stored panel or, if it has two parts, fill two.
    if (rows == 1 && left >= 4 && !p.transposed_a) {
      if constexpr (kPrefetchesStored) t.prefetch.step = 4 * strip.prefetch.step;
      asks ? MultiplyTile<1, 4, false, kPrefetchesStored>(t) : MultiplyTile<1, 4, false>(t);
      panel += 4;
    } else if (rows <= (asks && kPrefetches ? kLowestPrefetching - 1 : 3) && left >= 2 && !p.transposed_a) {
      if constexpr (kPrefetchesStored) t.prefetch.step = 2 * strip.prefetch.step;
      (asks ? kWideTiles<kPrefetchesStored> : kWideTiles<false>)[rows - 1](t);
      panel += 2;
    } else {
      tile(t);
      panel += 1;
    }
  }
  if (panel < end) {
    move_to(panel);
    HWY_ALIGN float tile[kTileRows * kPanelWidth];
    GemmTileArgs edge = t;
    edge.c = tile;
    edge.ldc = kPanelWidth;
    edge.bias = nullptr;
    edge.scale = 1;
    edge.add = false;
    tiles[rows - 1](edge);
    MergeEdge(tile, rows, p.cols - panel * kPanelWidth, t);
  }
}

// Copies a panel of a block of B's rows. A ragged one is filled up with zeros.
void CopyPanel(const Product& p, const Block& block, size_t panel, float* to) {
  const hn::ScalableTag<float> d;
  const size_t count = std::min(kPanelWidth, p.cols - panel * kPanelWidth);
  const float* from = p.b + block.first * p.ldb + panel * kPanelWidth;
  for (size_t k = 0; k < block.size; ++k, from += p.ldb, to += kPanelWidth) {
    for (size_t j = 0; j < kPanelWidth; j += kTileLanes) {
      hn::Store(j + kTileLanes <= count ? hn::LoadU(d, from + j)
                : j < count             ? LoadPartial(d, from + j, count - j)
                                        : hn::Zero(d),
                d, to + j);
    }
  }
}

// Copies columns [first, first + count) of a transposed A, row by row.
void CopyColumns(const Product& p, const Block& block, size_t first, size_t count, float* copy) {
  const hn::ScalableTag<float> d;
  for (size_t k = 0; k < block.size; ++k) {
    const float* from = p.a + (block.first + k) * p.lda + first;
    float* to = copy + k * kCopyTiles * kTileRows;
    size_t j = 0;
    for (; j + kTileLanes <= count; j += kTileLanes) hn::StoreU(hn::LoadU(d, from + j), d, to + j);
    if (j < count) StorePartial(LoadPartial(d, from + j, count - j), d, to + j, count - j);
  }
}

// The prefetches of row of tiles `i` of `row_blocks` over panels [first, first + count): a share of the following
// panels, so that all rows together prefetch all of them. A step prefetches at least kLeastAsked floats, so there are
// at most eight shares; further rows of tiles find everything in the cache. Prefetches must not come faster than memory
// delivers the lines, or they would wait for each other.
constexpr size_t kLeastAsked = 4;
Prefetch MakePrefetch(const Product& p, const Block& block, size_t first, size_t count, size_t i, size_t row_blocks) {
  const size_t shares = std::min(row_blocks, kPanelWidth / kLeastAsked);
  if (!(kPrefetches || (kPrefetchesStored && p.stored_b)) || !p.packed_b || i >= shares) return {};
  const size_t panels = (p.cols + kPanelWidth - 1) / kPanelWidth, panel = p.inner * kPanelWidth;
  const size_t step = (kPanelWidth / kLeastAsked + shares - 1) / shares * kLeastAsked;
  const size_t share = i * block.size * step;
  if (first + count < panels) return {.ahead = static_cast<ptrdiff_t>(count * panel + share), .step = step};
  if (block.first + block.size >= p.inner) return {};
  // After the last panel, prefetch for panel 0 again.
  const auto to_end = static_cast<ptrdiff_t>(block.size * PanelStride(p) + share);
  return {.ahead = to_end - static_cast<ptrdiff_t>(first * panel), .step = step};
}

// Computes all of C for one block of the inner size.
void MultiplyBlock(const Product& p, const Block& block) {
  HWY_ALIGN float copied_b[kCopiedFloats];
  HWY_ALIGN float copy[kInnerBlock * kCopyTiles * kTileRows];
  const size_t panels = (p.cols + kPanelWidth - 1) / kPanelWidth;
  const size_t row_blocks = (p.rows + kTileRows - 1) / kTileRows;
  const bool copies = !p.packed_b && p.ldb >= kCopyStride && row_blocks >= kCopyRowBlocks;
  const size_t at_once = IsDivided(p) ? kSubPanels : 1;
  const size_t fit = (copies ? kCopiedFloats : kBlockFloats) / (std::max<size_t>(1, block.size) * kPanelWidth);
  const size_t group = std::max(at_once, fit / at_once * at_once);
  for (size_t first = 0; first < panels; first += group) {
    const size_t count = std::min(group, panels - first);
    const size_t first_copied = std::max(first, copies ? 0 : p.cols / kPanelWidth);  // a ragged panel is always copied
    for (size_t panel = first_copied; !p.packed_b && panel < first + count; ++panel) {
      CopyPanel(p, block, panel, copied_b + (panel - first_copied) * block.size * kPanelWidth);
    }
    // Row blocks are as equal as possible: 15 rows are 8 + 7, not 14 + 1. With few tile heights the tallest are best.
    const auto row_at = [&](size_t i) { return kFewTiles ? std::min(i * kTileRows, p.rows) : p.rows * i / row_blocks; };
    for (size_t i = 0; i < row_blocks; ++i) {
      const size_t row = row_at(i);
      const float* a = p.transposed_a ? p.a + block.first * p.lda + row : p.a + row * p.lda + block.first;
      size_t lda = p.lda;
      if (p.transposed_a && p.lda >= kCopyStride) {
        const size_t start = row_at(i / kCopyTiles * kCopyTiles);
        if (i % kCopyTiles == 0) CopyColumns(p, block, row, row_at(std::min(row_blocks, i + kCopyTiles)) - row, copy);
        a = copy + (row - start);
        lda = kCopyTiles * kTileRows;
      }
      MultiplyStrip(p, block,
                    {.a = a,
                     .lda = lda,
                     .row = row,
                     .rows = row_at(i + 1) - row,
                     .first_panel = first,
                     .num_panels = count,
                     .copied_b = copied_b,
                     .first_copied = first_copied,
                     .prefetch = MakePrefetch(p, block, first, count, i, row_blocks)});
    }
  }
}

void Multiply(const Product& p) {
  Block block{.first = 0, .size = 0, .add = p.store == Store::kAdd, .bias = p.bias};
  do {
    block.size = std::min(kInnerBlock, p.inner - block.first);
    MultiplyBlock(p, block);
    block.first += block.size;
    block.add = true;
    block.bias = nullptr;
  } while (block.first < p.inner);
}

size_t PackedSize(size_t n, size_t k) { return (n + kPanelWidth - 1) / kPanelWidth * kPanelWidth * k; }

// Blocks of four floats, one at every `stride`.
template <class D>
HWY_INLINE hn::Vec<D> LoadBlocks(D d, const float* from, size_t stride) {
  constexpr size_t kBlocks = hn::MaxLanes(D()) / 4;
  if constexpr (kBlocks <= 1) {
    return hn::LoadU(d, from);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, LoadBlocks(half, from + kBlocks / 2 * stride, stride), LoadBlocks(half, from, stride));
  }
}

// to[k * kPanelWidth + j] = from[j * ld + k] for four k and one j for each lane, by interleaving twice.
template <class D>
HWY_INLINE void TransposeBlock(D d, const float* from, size_t ld, float* to) {
  const auto a = LoadBlocks(d, from, 4 * ld), b = LoadBlocks(d, from + ld, 4 * ld),
             c = LoadBlocks(d, from + 2 * ld, 4 * ld), e = LoadBlocks(d, from + 3 * ld, 4 * ld);
  const auto ac_low = hn::InterleaveLower(d, a, c), ac_high = hn::InterleaveUpper(d, a, c);
  const auto be_low = hn::InterleaveLower(d, b, e), be_high = hn::InterleaveUpper(d, b, e);
  hn::StoreU(hn::InterleaveLower(d, ac_low, be_low), d, to);
  hn::StoreU(hn::InterleaveUpper(d, ac_low, be_low), d, to + kPanelWidth);
  hn::StoreU(hn::InterleaveLower(d, ac_high, be_high), d, to + 2 * kPanelWidth);
  hn::StoreU(hn::InterleaveUpper(d, ac_high, be_high), d, to + 3 * kPanelWidth);
}

// Packs a panel of `count` rows of W, with zeros after them.
void PackPanel(const PackWeightsArgs<>& a, const float* from, size_t count, float* to) {
  const size_t wide_j = count / kTileLanes * kTileLanes, whole_j = count / 4 * 4, whole_k = a.k / 4 * 4;
  for (size_t k = 0; k < whole_k; k += 4) {
    const float* at = from + k;
    float* rows = to + k * kPanelWidth;
    for (size_t j = 0; j < wide_j; j += kTileLanes)
      TransposeBlock(hn::ScalableTag<float>(), at + j * a.ldw, a.ldw, rows + j);
    for (size_t j = wide_j; j < whole_j; j += 4)
      TransposeBlock(hn::FixedTag<float, 4>(), at + j * a.ldw, a.ldw, rows + j);
  }
  for (size_t k = 0; k < a.k; ++k) {
    for (size_t j = k < whole_k ? whole_j : 0; j < count; ++j) to[k * kPanelWidth + j] = from[j * a.ldw + k];
    std::fill(to + k * kPanelWidth + count, to + (k + 1) * kPanelWidth, 0.0f);
  }
}

void PackWeights(const PackWeightsArgs<>& a) {
  for (size_t first = 0; first < a.n; first += kPanelWidth) {
    PackPanel(a, a.w_NK + first * a.ldw, std::min(kPanelWidth, a.n - first), a.packed + first * a.k);
  }
}

// For LinearForwardArgs or MultiplyPanelsArgs. `panels` points to the first requested row.
template <class Args>
Product ForwardProduct(const Args& a, const float* panels, bool stored) {
  return {.a = a.x_RK,
          .lda = a.ldx,
          .transposed_a = false,
          .b = panels,
          .ldb = 0,
          .packed_b = true,
          .stored_b = stored,
          .c = a.y_RN,
          .ldc = a.ldy,
          .bias = a.bias_N,
          .scale = 1,
          .rows = a.rows,
          .cols = a.n,
          .inner = a.k,
          .store = a.store};
}

void LinearForward(const LinearForwardArgs<>& a) { Multiply(ForwardProduct(a, a.packed, /*stored=*/false)); }

// For panels of floats, beginning at the first row of one.
void MultiplyWholePanels(const MultiplyPanelsArgs& a) {
  Multiply(ForwardProduct(a, reinterpret_cast<const float*>(a.w.data) + a.first * a.k, /*stored=*/true));
}

// For rows inside one panel of floats. The product of the whole panel goes to the stack, so that each number is
// computed as it is when the whole panel is requested.
void MultiplyPanelPart(const MultiplyPanelsArgs& a) {
  const size_t skipped = a.first % kFloatPanelRows;
  HWY_ALIGN float bias[kFloatPanelRows] = {};
  HWY_ALIGN float y[kTileRows * kFloatPanelRows] = {};
  if (a.bias_N != nullptr) std::copy_n(a.bias_N, a.n, bias + skipped);
  for (size_t row = 0; row < a.rows; row += kTileRows) {
    MultiplyPanelsArgs whole = a;
    whole.first = a.first - skipped;
    whole.x_RK = a.x_RK + row * a.ldx;
    whole.bias_N = a.bias_N == nullptr ? nullptr : bias;
    whole.y_RN = y;
    whole.ldy = whole.n = kFloatPanelRows;
    whole.rows = std::min(kTileRows, a.rows - row);
    for (size_t r = 0; a.store == Store::kAdd && r < whole.rows; ++r)
      std::copy_n(a.y_RN + (row + r) * a.ldy, a.n, y + r * kFloatPanelRows + skipped);
    MultiplyWholePanels(whole);
    for (size_t r = 0; r < whole.rows; ++r)
      std::copy_n(y + r * kFloatPanelRows + skipped, a.n, a.y_RN + (row + r) * a.ldy);
  }
}

void MultiplyPanels(const MultiplyPanelsArgs& a) {
  if (a.w.bits != PanelBits::kThirtyTwo) return int8::MultiplyBlocksOnBest(a);
  MultiplyPanelsArgs begin = a, rest = a;
  begin.n = std::min(a.n, (kFloatPanelRows - a.first % kFloatPanelRows) % kFloatPanelRows);
  if (begin.n > 0) MultiplyPanelPart(begin);
  rest.first += begin.n;
  rest.n -= begin.n;
  rest.y_RN += begin.n;
  if (rest.bias_N != nullptr) rest.bias_N += begin.n;
  if (rest.n > 0) MultiplyWholePanels(rest);
}

void LinearBackwardInput(const LinearBackwardInputArgs<>& a) {
  Multiply({.a = a.dy_RN,
            .lda = a.lddy,
            .transposed_a = false,
            .b = a.w_NK,
            .ldb = a.ldw,
            .packed_b = false,
            .stored_b = false,
            .c = a.dx_RK,
            .ldc = a.lddx,
            .bias = nullptr,
            .scale = 1,
            .rows = a.rows,
            .cols = a.k,
            .inner = a.n,
            .store = a.store});
}

void LinearBackwardWeight(const LinearBackwardWeightArgs<>& a) {
  Multiply({.a = a.dy_RN,
            .lda = a.lddy,
            .transposed_a = true,
            .b = a.x_RK,
            .ldb = a.ldx,
            .packed_b = false,
            .stored_b = false,
            .c = a.dw_NK,
            .ldc = a.lddw,
            .bias = nullptr,
            .scale = a.scale,
            .rows = a.n,
            .cols = a.k,
            .inner = a.rows,
            .store = a.store});
}

// Sums four vectors of columns at a time, so that four additions run in parallel.
void ColumnSumOneRecord(const ColumnSumArgs<>& a) {
  const hn::ScalableTag<float> d;
  const auto scale = hn::Set(d, a.scale);
  const bool add = a.store == Store::kAdd;
  size_t j = 0;
  for (; j + 4 * kTileLanes <= a.n; j += 4 * kTileLanes) {
    hn::Vec<decltype(d)> sum[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
    const float* x = a.x_RN + j;
    for (size_t r = 0; r < a.rows; ++r, x += a.ldx) {
      for (size_t v = 0; v < 4; ++v) sum[v] = hn::Add(sum[v], hn::LoadU(d, x + v * kTileLanes));
    }
    for (size_t v = 0; v < 4; ++v) {
      float* out = a.out_N + j + v * kTileLanes;
      hn::StoreU(hn::MulAdd(sum[v], scale, add ? hn::LoadU(d, out) : hn::Zero(d)), d, out);
    }
  }
  for (; j < a.n; j += kTileLanes) {
    const size_t count = std::min(kTileLanes, a.n - j);
    auto sum = hn::Zero(d);
    for (size_t r = 0; r < a.rows; ++r) sum = hn::Add(sum, LoadPartial(d, a.x_RN + r * a.ldx + j, count));
    const auto old = add ? LoadPartial(d, a.out_N + j, count) : hn::Zero(d);
    StorePartial(hn::MulAdd(sum, scale, old), d, a.out_N + j, count);
  }
}

void ColumnSum(const ColumnSumArgs<>& a) { reference::RecordByRecord(a, ColumnSumOneRecord); }

}  // namespace

void FillGemm(OpTable& table) {
  table.packed_size = PackedSize;
  table.pack_weights = PackWeights;
  table.linear_forward = LinearForward;
  table.multiply_panels = MultiplyPanels;
  table.linear_backward_input = LinearBackwardInput;
  table.linear_backward_weight = ForTraining(LinearBackwardWeight);
  table.column_sum = ForTraining(ColumnSum);
}

}  // namespace wisp::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::kernels {
WISP_EXPORT_FILL(FillGemm)
}  // namespace wisp::kernels
#endif
