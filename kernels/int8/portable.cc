// The int8 kernel for all other processors. It extends weights to int16 as it loads them and sums pairs of products.
//
// Products of many rows by 384 columns, in 10^9 products a second on one thread with AVX2 (Zen 3, November 2026); all
// are exact:
//   floats                                                                              50
//   int16, as here                                                                      81
//   |w| times x with the sign of w as bytes, pairs summed in 16 bits (maddubs, psign)   74
//   the same with all bits of x inverted where w < 0 instead of psign                   77
//   the same, two or four such sums added in 16 bits where norms show that they fit     87, 96
//   int16, (x0 + w1) (x1 + w0) for two products (Winograd 1968)                         82
// The norms decide too often for one sum, with weights as they are initialised, and choosing costs what it gains. All
// others do 16 products in each instruction of the two multipliers, floats 8: so none can be more than twice as fast.
#include "kernels/int8/choose.h"
#include "kernels/int8/kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/int8/portable.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/simd/half-inl.h"
#include "kernels/simd/partial-inl.h"

#include <cstring>

// AVX-512 without VNNI uses the AVX2 kernel: few processors have it, and a kernel of its own would double the code.
// 64-bit Arm has arm.cc.
#if HWY_TARGET == HWY_AVX3 || (HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64)
HWY_BEFORE_NAMESPACE();
namespace wisp::kernels::HWY_NAMESPACE {
const int8::Kernel* Portable() { return nullptr; }
}  // namespace wisp::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#else

#undef WISP_INT8_TARGET
#define WISP_INT8_TARGET

HWY_BEFORE_NAMESPACE();
namespace wisp::kernels::HWY_NAMESPACE {
namespace {

using namespace wisp::kernels::int8;  // NOLINT: tile-inl.h is written inside that namespace

constexpr Format kFormat = Format::kWide;
constexpr size_t kLanes = HWY_LANES(int32_t);

using D32 = hn::ScalableTag<int32_t>;
using D16 = hn::Repartition<int16_t, D32>;
using D8 = hn::Rebind<int8_t, D16>;
using DF = hn::ScalableTag<float>;

using Totals = hn::Vec<D32>;
using Floats = hn::Vec<DF>;

HWY_INLINE Floats ToFloats(Totals s) { return hn::ConvertTo(DF(), s); }
HWY_INLINE Floats SetFloats(float f) { return hn::Set(DF(), f); }
HWY_INLINE Floats LoadFloats(const float* p, size_t count) { return LoadSome(DF(), p, count); }
HWY_INLINE void StoreFloats(Floats v, float* p, size_t count) { StoreSome(v, DF(), p, count); }
HWY_INLINE Floats Multiply(Floats a, Floats b) { return hn::Mul(a, b); }
HWY_INLINE Floats Plus(Floats a, Floats b) { return hn::Add(a, b); }

// Tiles for weights stored in pairs of inner indices. The constructors of structs are explicit, because implicit ones
// are not compiled for the target.
namespace pairs {

// With 16 registers, 6 x 2 sums, 2 vectors of weights, one of x and one of products fill them all.
constexpr size_t kGroup = 2, kTileVectors = 2;

// An int16 vector holds the pairs of kLanes channels. On Arm their sum is spread over two vectors.
struct Sums {
  HWY_INLINE Sums() {}
  hn::Vec<D32> first, second;
};
using Weights = hn::Vec<D16>;
using Inputs = hn::Vec<D16>;

HWY_INLINE Sums Start(const uint8_t*) {  // no offset was added
  Sums s;
  s.first = s.second = hn::Zero(D32());
  return s;
}
HWY_INLINE Weights LoadWeights(const uint8_t* p) {
  return hn::PromoteTo(D16(), hn::LoadU(D8(), reinterpret_cast<const int8_t*>(p)));
}
HWY_INLINE Inputs Broadcast(const uint8_t* p) { return hn::BitCast(D16(), hn::Set(D32(), LoadGroup(p))); }
HWY_INLINE Sums Dot(Sums s, Inputs x, Weights w) {
  s.first = hn::ReorderWidenMulAccumulate(D32(), x, w, s.first, s.second);
  return s;
}
HWY_INLINE Totals Total(const Sums& s) { return hn::RearrangeToOddPlusEven(s.first, s.second); }

#include "kernels/int8/tile-inl.h"

constexpr Tile kTiles[] = {{6, 1, MultiplyTile<6, 1>}, {4, 1, MultiplyTile<4, 1>}, {2, 2, MultiplyTile<2, 2>},
                           {2, 1, MultiplyTile<2, 1>}, {1, 4, MultiplyTile<1, 4>}, {1, 1, MultiplyTile<1, 1>}};

}  // namespace pairs

// Blocks hold groups of 4. An int16 vector holds the 4 products of half as many channels as a panel has. Each channel's
// sum is spread over two neighbouring lanes, and on Arm over two vectors.
struct Sums {
  HWY_INLINE Sums() {}
  hn::Vec<D32> low[2], high[2];
};
struct Weights {
  HWY_INLINE Weights() {}
  hn::Vec<D16> low, high;
};
using Inputs = hn::Vec<D16>;

HWY_INLINE Sums Start(const uint8_t*) {  // no offset was added
  Sums s;
  for (size_t i = 0; i < 2; ++i) s.low[i] = s.high[i] = hn::Zero(D32());
  return s;
}
HWY_INLINE Inputs Broadcast(const uint8_t* p) {
  int64_t group;
  std::memcpy(&group, p, sizeof(group));
  return hn::BitCast(D16(), hn::Set(hn::Repartition<int64_t, D16>(), group));
}
HWY_INLINE Sums Dot(Sums s, Inputs x, const Weights& w) {
  s.low[0] = hn::ReorderWidenMulAccumulate(D32(), x, w.low, s.low[0], s.low[1]);
  s.high[0] = hn::ReorderWidenMulAccumulate(D32(), x, w.high, s.high[0], s.high[1]);
  return s;
}
HWY_INLINE Totals Total(const Sums& s) {
  const auto low = hn::RearrangeToOddPlusEven(s.low[0], s.low[1]),
             high = hn::RearrangeToOddPlusEven(s.high[0], s.high[1]);
  return hn::Add(hn::ConcatEven(D32(), high, low), hn::ConcatOdd(D32(), high, low));
}
constexpr Format kBlockFormat = Format::kWide;

using OffsetWeights = Weights;
using DU8 = hn::Rebind<uint8_t, D16>;

template <PanelBits kBits, bool kHigh>
HWY_INLINE hn::Vec<D16> Widen(const uint8_t* p) {
  const auto bytes = hn::LoadU(DU8(), p);
  if constexpr (kBits == PanelBits::kEight) return hn::PromoteTo(D16(), bytes);
  const auto pairs = hn::PromoteTo(D16(), bytes);
  return hn::And(kHigh ? hn::ShiftRight<4>(pairs) : pairs, hn::Set(D16(), 15));
}
template <PanelBits kBits, bool kHigh>
HWY_INLINE OffsetWeights Offset(const uint8_t* p) {
  Weights weights;
  weights.low = Widen<kBits, kHigh>(p);
  weights.high = Widen<kBits, kHigh>(p + 2 * kLanes);
  return weights;
}
// A channel's sum is spread over lanes, so the start is added last.
template <PanelBits>
HWY_INLINE Sums StartAt(int32_t) {
  return Start(nullptr);
}
HWY_INLINE Totals TotalFrom(const Sums& s, int32_t start) { return hn::Add(Total(s), hn::Set(D32(), start)); }
HWY_INLINE Sums DotOffset(Sums s, Inputs x, const Weights& w) { return Dot(s, x, w); }
HWY_INLINE Floats LoadScales(const Half* p) { return ConvertFloat16(DF(), p); }
HWY_INLINE Floats Fuse(Floats a, Floats b, Floats c) { return hn::MulAdd(a, b, c); }

#include "kernels/int8/blocks-inl.h"

template <PanelBits kBits>
constexpr BlockTile kBlockTiles[] = {{2, MultiplyBlockTile<kBits, 2, 1>}, {1, MultiplyBlockTile<kBits, 1, 1>}};

}  // namespace

const int8::Kernel* Portable() {
  static constexpr Kernel kKernel = {
      .name = HWY_TARGET == HWY_AVX2   ? "int8 AVX2"
              : HWY_TARGET == HWY_SSE4 ? "int8 SSE4"
              : HWY_TARGET == HWY_NEON ? "int8 NEON"
                                       : "int8 portable",
      .format = kFormat,
      .panel_width = pairs::kPanelWidth,
      .group = pairs::kGroup,
      .tiles = pairs::kTiles,
      .blocks = {.format = kBlockFormat, .of_bits = {kBlockTiles<PanelBits::kEight>, kBlockTiles<PanelBits::kFour>}}};
  return &kKernel;
}

}  // namespace wisp::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace wisp::kernels::int8 {

const Kernel* PortableKernel(int64_t target) {
  const Kernel* (*const choice)() = WISP_INT8_CHOOSE(target, Portable);
  return choice != nullptr ? choice() : nullptr;
}

}  // namespace wisp::kernels::int8
#endif
