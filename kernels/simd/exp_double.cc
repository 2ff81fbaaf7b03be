// Exponentials in double, for SIMD tables: Highway's own, which states an error of one unit in the last place.
#include "kernels/simd/fill.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/exp_double.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "hwy/contrib/math/math-inl.h"

#include <algorithm>
#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace wisp::kernels::HWY_NAMESPACE {
namespace {
#if HWY_HAVE_FLOAT64

namespace hn = hwy::HWY_NAMESPACE;

// Full vectors; the rest goes through a padded vector, so that an element's result does not depend on its place.
void ExpDouble(const ExpDoubleArgs& a) {
  const hn::ScalableTag<double> d;
  const size_t lanes = hn::Lanes(d);
  const auto limit = hn::Set(d, 700.0);
  const auto exp = [&](auto x) { return hn::Exp(d, hn::Max(hn::Neg(limit), hn::Min(limit, x))); };
  size_t i = 0;
  for (; i + lanes <= a.n; i += lanes) hn::StoreU(exp(hn::LoadU(d, a.x + i)), d, a.y + i);
  if (i == a.n) return;
  HWY_ALIGN double rest[HWY_LANES(double)] = {};
  std::copy(a.x + i, a.x + a.n, rest);
  hn::Store(exp(hn::Load(d, rest)), d, rest);
  std::copy(rest, rest + (a.n - i), a.y + i);
}

#endif  // HWY_HAVE_FLOAT64
}  // namespace

#if HWY_HAVE_FLOAT64
void FillExpDouble(OpTable& table) { table.exp_double = ForTraining(ExpDouble); }
#else  // Highway 1.0.3 has no vectors of doubles for WebAssembly
void FillExpDouble(OpTable&) {}
#endif

}  // namespace wisp::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::kernels {
WISP_EXPORT_FILL(FillExpDouble)
}  // namespace wisp::kernels
#endif
