// Activations, scaling, dropout masks for SIMD tables.
#include "kernels/simd/fill.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/elementwise.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/simd/normal-inl.h"
#include "kernels/simd/partial-inl.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace wisp::kernels::HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr size_t kLanes = HWY_LANES(float);

void ActivationForward(const ActivationForwardArgs<>& a) {
  const D d;
  ForEachVector(a.n, [&](size_t i, size_t count) {
    const V x = LoadSome(d, a.x + i, count);
    const V y = a.kind == Activation::kRelu ? hn::Max(x, hn::Zero(d)) : hn::Mul(x, NormalOf(d, x).cdf);
    StoreSome(y, d, a.y + i, count);
  });
}

void ActivationBackward(const ActivationBackwardArgs<>& a) {
  const D d;
  ForEachVector(a.n, [&](size_t i, size_t count) {
    const V x = LoadSome(d, a.x + i, count);
    const V dy = LoadSome(d, a.dy + i, count);
    V dx;
    if (a.kind == Activation::kRelu) {
      dx = hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), dy);
    } else {
      const Normal<V> normal = NormalOf(d, x);
      dx = hn::Mul(dy, hn::MulAdd(x, normal.density, normal.cdf));
    }
    StoreSome(dx, d, a.dx + i, count);
  });
}

void Scale(const ScaleArgs<>& a) {
  const D d;
  const V factor = hn::Set(d, a.a);
  if (a.store == Store::kAssign) {
    ForEachVector(a.n, [&](size_t i, size_t count) {
      StoreSome(hn::Mul(factor, LoadSome(d, a.x + i, count)), d, a.y + i, count);
    });
  } else {
    ForEachVector(a.n, [&](size_t i, size_t count) {
      StoreSome(hn::MulAdd(factor, LoadSome(d, a.x + i, count), LoadSome(d, a.y + i, count)), d, a.y + i, count);
    });
  }
}

void ApplyKeep(const ApplyKeepArgs<>& a) {
  const D d;
  const hn::Rebind<int32_t, D> di;
  const hn::Rebind<uint8_t, D> du;
  const V scale = hn::Set(d, a.scale);
  size_t i = 0;
  for (; i + kLanes <= a.n; i += kLanes) {
    const V keep = hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(du, a.keep + i)));
    const V x = hn::LoadU(d, a.x + i);
    // A mask, not a product: what is dropped is zero even where x is not finite.
    hn::StoreU(hn::IfThenElseZero(hn::Gt(keep, hn::Zero(d)), hn::Mul(x, scale)), d, a.y + i);
  }
  for (; i < a.n; ++i) a.y[i] = a.keep[i] != 0 ? a.x[i] * a.scale : 0.0f;
}

}  // namespace

void FillElementwise(OpTable& table) {
  table.activation_forward = ActivationForward;
  table.activation_backward = ForTraining(ActivationBackward);
  table.scale = Scale;
  table.apply_keep = ApplyKeep;
}

}  // namespace wisp::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::kernels {
WISP_EXPORT_FILL(FillElementwise)
}  // namespace wisp::kernels
#endif
