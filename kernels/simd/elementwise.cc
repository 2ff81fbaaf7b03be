// Scaling and dropout masks for SIMD tables.
#include "kernels/simd/fill.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/elementwise.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/simd/partial-inl.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/reference/reference.h"

HWY_BEFORE_NAMESPACE();
namespace wisp::kernels::HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr size_t kLanes = HWY_LANES(float);

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

void TargetGradient(const TargetGradientArgs<>& a) { reference::TargetGradientWith(a, Scale); }

void ApplyKeep(const ApplyKeepArgs<>& a) {
  const D d;
  const hn::Rebind<int32_t, D> di;
  const hn::Rebind<uint8_t, D> du;
  const V scale = hn::Set(d, a.scale);
  size_t i = 0;
  for (; i + kLanes <= a.n; i += kLanes) {
    const V keep = hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(du, a.keep + i)));
    const V x = hn::LoadU(d, a.x + i);
    // A mask, not a product: a dropped number becomes zero even if x is not finite.
    hn::StoreU(hn::IfThenElseZero(hn::Gt(keep, hn::Zero(d)), hn::Mul(x, scale)), d, a.y + i);
  }
  for (; i < a.n; ++i) a.y[i] = a.keep[i] != 0 ? a.x[i] * a.scale : 0.0f;
}

}  // namespace

void FillElementwise(OpTable& table) {
  table.scale = Scale;
  table.apply_keep = ApplyKeep;
  table.target_gradient = ForTraining(TargetGradient);
}

}  // namespace wisp::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::kernels {
WISP_EXPORT_FILL(FillElementwise)
}  // namespace wisp::kernels
#endif
