// Rotary positions for SIMD tables: rotates pairs of a head's entries by the angles of the row's position.
#include "kernels/simd/fill.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/rotary.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/simd/partial-inl.h"

#include <cstddef>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace wisp::kernels::HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr size_t kLanes = HWY_LANES(float);

struct Angles {
  V c, s;
};

HWY_INLINE void Rotate(const Angles& angles, V& a, V& b) {
  const V first = hn::MulSub(a, angles.c, hn::Mul(b, angles.s));
  b = hn::MulAdd(a, angles.s, hn::Mul(b, angles.c));
  a = first;
}

HWY_INLINE void RotateHalves(D d, const Angles& angles, float* first, float* second, size_t count) {
  V a = LoadSome(d, first, count), b = LoadSome(d, second, count);
  Rotate(angles, a, b);
  StoreSome(a, d, first, count);
  StoreSome(b, d, second, count);
}

HWY_INLINE void RotateInterleaved(D d, const Angles& angles, float* x, size_t count) {
  HWY_ALIGN float buffer[2 * kLanes] = {};
  float* at = x;
  if (count < kLanes) {
    std::memcpy(buffer, x, 2 * count * sizeof(float));
    at = buffer;
  }
  V a, b;
  hn::LoadInterleaved2(d, at, a, b);
  Rotate(angles, a, b);
  hn::StoreInterleaved2(a, b, d, at);
  if (count < kLanes) std::memcpy(x, buffer, 2 * count * sizeof(float));
}

void Rotary(const RotaryArgs<>& a) {
  const D d;
  const size_t num_pairs = a.rotated / 2;
  for (size_t r = 0; r < a.rows; ++r) {
    const float* cos = a.cos_TP + (a.first_position + r) * num_pairs;
    const float* sin = a.sin_TP + (a.first_position + r) * num_pairs;
    for (size_t p = 0; p < num_pairs; p += kLanes) {
      const size_t left = num_pairs - p;
      Angles angles{LoadSome(d, cos + p, left), LoadSome(d, sin + p, left)};
      if (a.rotation == Rotation::kInverse) angles.s = hn::Neg(angles.s);
      float* x = a.x_RD + r * a.ldx;
      for (size_t h = 0; h < a.heads; ++h, x += a.head_width) {
        if (a.pairs == RotaryPairs::kHalves) {
          RotateHalves(d, angles, x + p, x + p + num_pairs, left);
        } else {
          RotateInterleaved(d, angles, x + 2 * p, left);
        }
      }
    }
  }
}

}  // namespace

void FillRotary(OpTable& table) { table.rotary = Rotary; }

}  // namespace wisp::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::kernels {
WISP_EXPORT_FILL(FillRotary)
}  // namespace wisp::kernels
#endif
