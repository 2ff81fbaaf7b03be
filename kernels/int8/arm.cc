// The int8 kernels for 64-bit Arm: with dot product instructions, which most phones since 2018 have, and without.
#include "kernels/int8/kernel.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif

#define WISP_INT8_INLINE inline __attribute__((always_inline))

namespace wisp::kernels::int8 {
namespace {

constexpr Format kFormat = Format::kSigned, kBlockFormat = Format::kSigned;
constexpr size_t kLanes = 4;

using Sums = int32x4_t;
using Totals = int32x4_t;
using Floats = float32x4_t;

WISP_INT8_INLINE Sums Start(const uint8_t*) { return vdupq_n_s32(0); }  // no offset was added
WISP_INT8_INLINE Totals Total(Sums s) { return s; }
WISP_INT8_INLINE Floats ToFloats(Totals s) { return vcvtq_f32_s32(s); }
WISP_INT8_INLINE Floats SetFloats(float f) { return vdupq_n_f32(f); }
WISP_INT8_INLINE Floats LoadFloats(const float* p, size_t count) {
  if (count == kLanes) return vld1q_f32(p);
  float some[kLanes] = {};
  for (size_t i = 0; i < count; ++i) some[i] = p[i];
  return vld1q_f32(some);
}
WISP_INT8_INLINE void StoreFloats(Floats v, float* p, size_t count) {
  if (count == kLanes) return vst1q_f32(p, v);
  float some[kLanes];
  vst1q_f32(some, v);
  for (size_t i = 0; i < count; ++i) p[i] = some[i];
}
WISP_INT8_INLINE Floats Multiply(Floats a, Floats b) { return vmulq_f32(a, b); }
WISP_INT8_INLINE Floats Plus(Floats a, Floats b) { return vaddq_f32(a, b); }

// For blocks.
template <PanelBits kBits>
WISP_INT8_INLINE Sums StartAt(int32_t start) {
  return vdupq_n_s32(kBits == PanelBits::kEight ? 0 : start);
}
WISP_INT8_INLINE Totals TotalFrom(Sums s, int32_t) { return s; }
WISP_INT8_INLINE Floats LoadScales(const Half* p) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(reinterpret_cast<const uint16_t*>(p))));
}
WISP_INT8_INLINE Floats Fuse(Floats a, Floats b, Floats c) { return vfmaq_f32(c, a, b); }

namespace plain {

#define WISP_INT8_TARGET

constexpr size_t kTileVectors = 2;  // 8 x 2 sums, 4 halves of weights, 2 of x and products leave 8 of 32 registers

// Four inner indices of four channels: the first two of each channel, and the other two.
using Weights = int16x4x2_t;
using OffsetWeights = Weights;
using Inputs = int16x4x2_t;

WISP_INT8_INLINE Weights LoadWeights(const uint8_t* p) { return vld2_s16(reinterpret_cast<const int16_t*>(p)); }
WISP_INT8_INLINE Inputs Broadcast(const uint8_t* p) { return vld2_dup_s16(reinterpret_cast<const int16_t*>(p)); }
// Two products fit 16 bits: 2 * 127 * 128 < 2^15.
WISP_INT8_INLINE Sums Dot(Sums s, const Inputs& x, const Weights& w) {
  const int16x8_t first = vmull_s8(vreinterpret_s8_s16(w.val[0]), vreinterpret_s8_s16(x.val[0]));
  return vpadalq_s16(s, vmlal_s8(first, vreinterpret_s8_s16(w.val[1]), vreinterpret_s8_s16(x.val[1])));
}
WISP_INT8_INLINE Sums DotOffset(Sums s, const Inputs& x, const OffsetWeights& w) { return Dot(s, x, w); }
// 8-bit weights without their offset, because numbers are multiplied with their signs.
template <PanelBits kBits, bool kHigh>
WISP_INT8_INLINE OffsetWeights Offset(const uint8_t* p) {
  Weights weights = LoadWeights(p);
  for (int16x4_t& half : weights.val) {
    const uint8x8_t bytes = vreinterpret_u8_s16(half);
    half = vreinterpret_s16_u8(kBits == PanelBits::kEight ? veor_u8(bytes, vdup_n_u8(128))
                               : kHigh                    ? vshr_n_u8(bytes, 4)
                                                          : vand_u8(bytes, vdup_n_u8(15)));
  }
  return weights;
}

#include "kernels/int8/tile-inl.h"

#include "kernels/int8/blocks-inl.h"

template <PanelBits kBits>
constexpr BlockTile kBlockTiles[] = {{4, MultiplyBlockTile<kBits, 4, 2>}, {1, MultiplyBlockTile<kBits, 1, 4>}};

constexpr Tile kTiles[] = {{8, 1, MultiplyTile<8, 1>}, {4, 1, MultiplyTile<4, 1>}, {2, 2, MultiplyTile<2, 2>},
                           {2, 1, MultiplyTile<2, 1>}, {1, 4, MultiplyTile<1, 4>}, {1, 1, MultiplyTile<1, 1>}};
constexpr Kernel kKernel = {
    .name = "int8 NEON",
    .format = kFormat,
    .panel_width = kPanelWidth,
    .tiles = kTiles,
    .blocks = {.format = kBlockFormat, .of_bits = {kBlockTiles<PanelBits::kEight>, kBlockTiles<PanelBits::kFour>}}};

}  // namespace plain

namespace dot {

#undef WISP_INT8_TARGET
#if defined(__clang__)
#define WISP_INT8_TARGET __attribute__((target("dotprod")))
#else
#define WISP_INT8_TARGET __attribute__((target("arch=armv8.2-a+dotprod")))
#endif

// 6 x 4 sums and 4 vectors of weights leave 4 of 32 registers for x. With 8 x 3 the top 10 after a history of 200 took
// 4 % more instructions, because 64 channels are no whole number of panels.
constexpr size_t kTileVectors = 4;

using Weights = int8x16_t;
using OffsetWeights = int8x16_t;
using Inputs = int8x16_t;

WISP_INT8_INLINE Weights LoadWeights(const uint8_t* p) { return vreinterpretq_s8_u8(vld1q_u8(p)); }
WISP_INT8_INLINE Inputs Broadcast(const uint8_t* p) { return vreinterpretq_s8_s32(vdupq_n_s32(LoadGroup(p))); }
WISP_INT8_TARGET WISP_INT8_INLINE Sums Dot(Sums s, Inputs x, Weights w) { return vdotq_s32(s, x, w); }
WISP_INT8_TARGET WISP_INT8_INLINE Sums DotOffset(Sums s, Inputs x, OffsetWeights w) { return vdotq_s32(s, x, w); }
template <PanelBits kBits, bool kHigh>
WISP_INT8_INLINE OffsetWeights Offset(const uint8_t* p) {
  const uint8x16_t bytes = vld1q_u8(p);
  if constexpr (kBits == PanelBits::kEight) return vreinterpretq_s8_u8(veorq_u8(bytes, vdupq_n_u8(128)));
  return vreinterpretq_s8_u8(kHigh ? vshrq_n_u8(bytes, 4) : vandq_u8(bytes, vdupq_n_u8(15)));
}

#include "kernels/int8/tile-inl.h"

#include "kernels/int8/blocks-inl.h"

template <PanelBits kBits>
constexpr BlockTile kBlockTiles[] = {{4, MultiplyBlockTile<kBits, 4, 2>}, {1, MultiplyBlockTile<kBits, 1, 4>}};

constexpr Tile kTiles[] = {{6, 1, MultiplyTile<6, 1>}, {4, 1, MultiplyTile<4, 1>}, {2, 2, MultiplyTile<2, 2>},
                           {2, 1, MultiplyTile<2, 1>}, {1, 2, MultiplyTile<1, 2>}, {1, 1, MultiplyTile<1, 1>}};
constexpr Kernel kKernel = {
    .name = "int8 Arm dot product",
    .format = kFormat,
    .panel_width = kPanelWidth,
    .tiles = kTiles,
    .blocks = {.format = kBlockFormat, .of_bits = {kBlockTiles<PanelBits::kEight>, kBlockTiles<PanelBits::kFour>}}};

// True if the build requires the instruction or the system reports it.
bool HasDotProduct() {
#if defined(__ARM_FEATURE_DOTPROD)
  return true;
#elif defined(__linux__) && defined(HWCAP_ASIMDDP)
  return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#else
  return false;
#endif
}

}  // namespace dot
}  // namespace

const Kernel* ArmDotKernel() { return dot::HasDotProduct() ? &dot::kKernel : nullptr; }
const Kernel* ArmKernel() { return &plain::kKernel; }

}  // namespace wisp::kernels::int8

#else

namespace wisp::kernels::int8 {
const Kernel* ArmDotKernel() { return nullptr; }
const Kernel* ArmKernel() { return nullptr; }
}  // namespace wisp::kernels::int8

#endif
