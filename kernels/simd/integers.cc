// Adds outer products as integers, for SIMD tables.
#include "kernels/simd/fill.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/integers.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/reference/reference.h"
#include "kernels/simd/outer_tile.h"

HWY_BEFORE_NAMESPACE();
namespace wisp::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr bool kManyRegisters = HWY_TARGET == HWY_AVX3 || (HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64);

// ---- Rounding. ------------------------------------------------------------------------------------------------------

using F32 = hn::ScalableTag<float>;
using I32 = hn::ScalableTag<int32_t>;
using U32 = hn::ScalableTag<uint32_t>;
using U64 = hn::ScalableTag<uint64_t>;
using I16Half = hn::Rebind<int16_t, I32>;
constexpr size_t kLanes = HWY_LANES(float);

void QuantiseRow(const QuantiseRowsArgs& a, size_t r) {
  const F32 df;
  const I32 di;
  const U32 du;
  const U64 dw;
  const float* x = a.x_RN + r * a.ldx;
  int16_t* y = a.y_RN + r * a.ldy;
  const auto scale = hn::Set(df, a.scale_R[r]);
  const auto most = hn::Set(df, static_cast<float>(kLargestInteger));
  const auto least = hn::Neg(most);
  const auto m1 = hn::Set(du, 0x7feb352du), m2 = hn::Set(du, 0x846ca68bu);
  const auto step = hn::Set(du, static_cast<uint32_t>(kLanes) * 0x9e3779b9u);
  const auto low = hn::Set(dw, 0xffffffffull);
  auto index = hn::Add(hn::Mul(hn::Iota(du, 0), hn::Set(du, 0x9e3779b9u)), hn::Set(du, a.seed_R[r]));
  auto largest = hn::Zero(di);
  auto even = hn::Zero(dw), odd = even;
  size_t i = 0;
  for (; i + kLanes <= a.n; i += kLanes) {
    auto h = hn::Mul(hn::Xor(index, hn::ShiftRight<16>(index)), m1);
    h = hn::Mul(hn::Xor(h, hn::ShiftRight<15>(h)), m2);
    h = hn::ShiftRight<8>(hn::Xor(h, hn::ShiftRight<16>(h)));
    index = hn::Add(index, step);
    const auto u = hn::Mul(hn::ConvertTo(df, hn::BitCast(di, h)), hn::Set(df, 0x1p-24f));
    const auto v = hn::Floor(hn::Add(hn::Mul(hn::LoadU(df, x + i), scale), u));
    const auto q = hn::ConvertTo(di, hn::Min(hn::Max(v, least), most));
    hn::StoreU(hn::DemoteTo(I16Half(), q), I16Half(), y + i);
    largest = hn::Max(largest, hn::Abs(q));
    const auto square = hn::BitCast(dw, hn::Mul(q, q));
    even = hn::Add(even, hn::And(square, low));
    odd = hn::Add(odd, hn::ShiftRight<32>(square));
  }
  a.largest_R[r] = hn::GetLane(hn::MaxOfLanes(di, largest));
  a.squares_R[r] = static_cast<int64_t>(hn::GetLane(hn::SumOfLanes(dw, hn::Add(even, odd))));
  for (; i < a.n; ++i) {
    const int32_t q = reference::QuantiseOne(x[i], a.scale_R[r], a.seed_R[r], i);
    y[i] = static_cast<int16_t>(q);
    a.largest_R[r] = std::max(a.largest_R[r], std::abs(q));
    a.squares_R[r] += int64_t{q} * q;
  }
}

void QuantiseRows(const QuantiseRowsArgs& a) {
  for (size_t r = 0; r < a.rows; ++r) {
    if (a.scale_R[r] != 0) {
      QuantiseRow(a, r);
      continue;
    }
    std::memset(a.y_RN + r * a.ldy, 0, a.n * sizeof(int16_t));
    a.largest_R[r] = 0;
    a.squares_R[r] = 0;
  }
}

// ---- Products of rows with each other. ------------------------------------------------------------------------------

// The side of a square of products that fits the registers.
constexpr size_t kSide = kManyRegisters ? 4 : 3;

// For floats: one sum for each product.
struct FloatDots {
  using T = float;
  using Total = double;
  using Product = double;
  static constexpr size_t kStep = HWY_LANES(float);
  using V = hn::Vec<F32>;
  struct Sum {
    HWY_INLINE Sum() {}  // explicit, because an implicit one is not compiled for Arm's instruction set
    V s;
  };
  static HWY_INLINE void Start(Sum& sum) { sum.s = hn::Zero(F32()); }
  static HWY_INLINE V Load(const T* x) { return hn::LoadU(F32(), x); }
  static HWY_INLINE void Add(V x, V y, Sum& sum) { sum.s = hn::MulAdd(x, y, sum.s); }
  static HWY_INLINE Product Take(const Sum& sum) { return hn::GetLane(hn::SumOfLanes(F32(), sum.s)); }
};

// For integers whose rows have squares below 2^31. By Cauchy-Schwarz no product of parts of two rows exceeds that, so
// no sum in a lane does.
struct IntegerDots {
  using T = int16_t;
  using Total = reference::Int128;
  using Product = int64_t;
  static constexpr size_t kStep = HWY_LANES(int16_t);
  using D = hn::ScalableTag<int16_t>;
  using V = hn::Vec<D>;
  struct Sum {
    HWY_INLINE Sum() {}
    hn::Vec<I32> s, other;  // x86 does not use `other`
  };
  static HWY_INLINE void Start(Sum& sum) { sum.s = sum.other = hn::Zero(I32()); }
  static HWY_INLINE V Load(const T* x) { return hn::LoadU(D(), x); }
  static HWY_INLINE void Add(V x, V y, Sum& sum) {
    sum.s = hn::ReorderWidenMulAccumulate(I32(), x, y, sum.s, sum.other);
  }
  static HWY_INLINE Product Take(const Sum& sum) {
    return hn::GetLane(hn::SumOfLanes(I32(), hn::Add(sum.s, sum.other)));
  }
};

// product[i][j] = <x_(t+i), x_(u+j)>. The last row stands for rows after it.
template <class Dots>
void DotSquare(const typename Dots::T* x, size_t ld, size_t rows, size_t n, size_t t, size_t u,
               typename Dots::Product (&product)[kSide][kSide]) {
  const typename Dots::T *xt[kSide], *xu[kSide];
  for (size_t i = 0; i < kSide; ++i) {
    xt[i] = x + std::min(t + i, rows - 1) * ld;
    xu[i] = x + std::min(u + i, rows - 1) * ld;
  }
  typename Dots::Sum sums[kSide][kSide];
#pragma GCC unroll 4
  for (size_t i = 0; i < kSide; ++i) {
#pragma GCC unroll 4
    for (size_t j = 0; j < kSide; ++j) Dots::Start(sums[i][j]);
  }
  size_t c = 0;
  for (; c + Dots::kStep <= n; c += Dots::kStep) {
    typename Dots::V right[kSide];
#pragma GCC unroll 4
    for (size_t j = 0; j < kSide; ++j) right[j] = Dots::Load(xu[j] + c);
#pragma GCC unroll 4
    for (size_t i = 0; i < kSide; ++i) {
      const auto left = Dots::Load(xt[i] + c);
#pragma GCC unroll 4
      for (size_t j = 0; j < kSide; ++j) Dots::Add(left, right[j], sums[i][j]);
    }
  }
  for (size_t i = 0; i < kSide; ++i) {
    for (size_t j = 0; j < kSide; ++j) {
      product[i][j] = Dots::Take(sums[i][j]);
      for (size_t rest = c; rest < n; ++rest)
        product[i][j] += static_cast<typename Dots::Product>(xt[i][rest]) * xu[j][rest];
    }
  }
}

template <class Dots>
typename Dots::Total ComputeSquares(const OuterSquaresArgs<typename Dots::T>& a) {
  typename Dots::Total total = 0;
  typename Dots::Product x[kSide][kSide], y[kSide][kSide];
  for (size_t t = 0; t < a.rows; t += kSide) {
    for (size_t u = 0; u <= t; u += kSide) {
      DotSquare<Dots>(a.a_RN, a.lda, a.rows, a.n, t, u, x);
      DotSquare<Dots>(a.b_RK, a.ldb, a.rows, a.k, t, u, y);
      for (size_t i = 0; i < std::min(kSide, a.rows - t); ++i) {
        for (size_t j = 0; j < std::min(kSide, a.rows - u); ++j) {
          if (u + j > t + i) continue;  // its mirror image counts twice
          const auto product = static_cast<typename Dots::Total>(x[i][j]) * y[i][j];
          total += u + j < t + i ? 2 * product : product;
          if (u + j != t + i) continue;
          if (a.a_squares_R != nullptr) a.a_squares_R[t + i] = static_cast<double>(x[i][j]);
          if (a.b_squares_R != nullptr) a.b_squares_R[t + i] = static_cast<double>(y[i][j]);
        }
      }
    }
  }
  return total;
}

double OuterSquares(const OuterSquaresArgs<>& a) {
  const double squares = ComputeSquares<FloatDots>(a);
  return squares < 0 ? 0 : squares;  // NaN stays NaN
}

double IntegerOuterSquares(const OuterSquaresArgs<int16_t>& a) {
  return static_cast<double>(ComputeSquares<IntegerDots>(a));
}

// ---- The sum. -------------------------------------------------------------------------------------------------------

constexpr size_t kTileRows = kManyRegisters ? 6 : 4, kTileVectors = kManyRegisters ? 4 : 2;
constexpr size_t kTileColumns = kTileVectors * kLanes;

// Each lane has two 16-bit integers: rows p and p + 1 of a column.
HWY_INLINE hn::Vec<I32> AddPairs(hn::Vec<I32> a, hn::Vec<I32> b, hn::Vec<I32> sum) {
#if HWY_ARCH_X86
  const I32 d;
  const hn::ScalableTag<int16_t> dh;
  auto unused = hn::Zero(d);
  return hn::ReorderWidenMulAccumulate(d, hn::BitCast(dh, a), hn::BitCast(dh, b), sum, unused);
#else
  const auto low = hn::Mul(hn::ShiftRight<16>(hn::ShiftLeft<16>(a)), hn::ShiftRight<16>(hn::ShiftLeft<16>(b)));
  return hn::Add(sum, hn::Add(low, hn::Mul(hn::ShiftRight<16>(a), hn::ShiftRight<16>(b))));
#endif
}

void MultiplyTile(const OuterTileArgs& t) {
  const I32 d;
  hn::Vec<I32> sums[kTileRows][kTileVectors];
#pragma GCC unroll 8
  for (size_t i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 4
    for (size_t v = 0; v < kTileVectors; ++v) sums[i][v] = hn::Zero(d);
  }
  const int32_t *HWY_RESTRICT a = t.a, *HWY_RESTRICT b = t.b;
  for (size_t p = 0; p < t.pairs; ++p, a += kTileRows, b += kTileColumns) {
    hn::Vec<I32> columns[kTileVectors];
#pragma GCC unroll 4
    for (size_t v = 0; v < kTileVectors; ++v) columns[v] = hn::LoadU(d, b + v * kLanes);
#pragma GCC unroll 8
    for (size_t i = 0; i < kTileRows; ++i) {
      const auto row = hn::Set(d, a[i]);
#pragma GCC unroll 4
      for (size_t v = 0; v < kTileVectors; ++v) sums[i][v] = AddPairs(row, columns[v], sums[i][v]);
    }
  }
#pragma GCC unroll 8
  for (size_t i = 0; i < kTileRows; ++i) {
#pragma GCC unroll 4
    for (size_t v = 0; v < kTileVectors; ++v) hn::StoreU(sums[i][v], d, t.product + i * kTileColumns + v * kLanes);
  }
}

constexpr OuterTile kTile = {kTileRows, kTileColumns, MultiplyTile};

void AddProduct(const int32_t* product, size_t n, int64_t* sum) {
  const hn::ScalableTag<int64_t> d;
  const hn::Rebind<int32_t, decltype(d)> narrow;
  size_t j = 0;
  for (; j + HWY_LANES(int64_t) <= n; j += HWY_LANES(int64_t)) {
    hn::StoreU(hn::Add(hn::LoadU(d, sum + j), hn::PromoteTo(d, hn::LoadU(narrow, product + j))), d, sum + j);
  }
  for (; j < n; ++j) sum[j] += product[j];
}

// to[j / width][pair][j % width] = rows 2 pair and 2 pair + 1 of column j, for j < n rounded up to whole panels.
void PackPairs(const int16_t* x, size_t ld, size_t rows, size_t n, size_t width, int32_t* to) {
  const I32 d;
  const I16Half half;
  const size_t pairs = (rows + 1) / 2;
  for (size_t p = 0; p < pairs; ++p) {
    const int16_t* first = x + 2 * p * ld;
    const int16_t* second = 2 * p + 1 < rows ? first + ld : nullptr;
    for (size_t panel = 0; panel * width < n; ++panel) {
      int32_t* out = to + (panel * pairs + p) * width;
      const size_t begin = panel * width, count = std::min(width, n - begin);
      size_t j = 0;
      if (second != nullptr) {
        for (; j + kLanes <= count; j += kLanes) {
          const auto low = hn::PromoteTo(d, hn::LoadU(half, first + begin + j));
          const auto high = hn::PromoteTo(d, hn::LoadU(half, second + begin + j));
          hn::StoreU(hn::Or(hn::And(low, hn::Set(d, 0xffff)), hn::ShiftLeft<16>(high)), d, out + j);
        }
      }
      for (; j < count; ++j) {
        const uint32_t low = static_cast<uint16_t>(first[begin + j]);
        const uint32_t high = second == nullptr ? 0 : static_cast<uint16_t>(second[begin + j]);
        out[j] = static_cast<int32_t>(low | high << 16);
      }
      for (; j < width; ++j) out[j] = 0;
    }
  }
}

void AccumulateOuter(const AccumulateOuterArgs& a) {
  AccumulateOuterBy(a, {FastestOuterTile(kTile), PackPairs, AddProduct});
}

}  // namespace

void FillIntegers(OpTable& table) {
  table.quantise_rows = ForTraining(QuantiseRows);
  table.outer_squares = ForTraining(OuterSquares);
  table.integer_outer_squares = ForTraining(IntegerOuterSquares);
  table.accumulate_outer = ForTraining(AccumulateOuter);
}

}  // namespace wisp::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::kernels {
WISP_EXPORT_FILL(FillIntegers)
}  // namespace wisp::kernels
#endif
