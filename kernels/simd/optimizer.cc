// Optimizer steps for SIMD tables.
#include "kernels/simd/fill.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/optimizer.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/simd/partial-inl.h"

#include <algorithm>
#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace wisp::kernels::HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr size_t kLanes = HWY_LANES(float);

void Adam(const AdamArgs<>& a);
void Sgd(const SgdArgs<>& a);

void ApplyAdam(const AdamArgs<>& a) {
  for (size_t j = 0; j * a.d < a.n; ++j) {
    AdamArgs<> row = a;
    const size_t to = size_t{a.row_J[j]} * a.d;
    row.w += to;
    row.m += to;
    row.v += to;
    row.g += j * a.d;
    row.n = a.d;
    row.row_J = nullptr;
    Adam(row);
  }
}

void ApplySgd(const SgdArgs<>& a) {
  for (size_t j = 0; j * a.d < a.n; ++j) {
    SgdArgs<> row = a;
    const size_t to = size_t{a.row_J[j]} * a.d;
    row.w += to;
    if (a.m != nullptr) row.m += to;
    row.g += j * a.d;
    row.n = a.d;
    row.row_J = nullptr;
    Sgd(row);
  }
}

void Adam(const AdamArgs<>& a) {
  if (a.row_J != nullptr) return ApplyAdam(a);
  const D d;
  const V beta1 = hn::Set(d, a.beta1), beta2 = hn::Set(d, a.beta2);
  const V rest1 = hn::Set(d, 1.0f - a.beta1), rest2 = hn::Set(d, 1.0f - a.beta2);
  const V correction1 = hn::Set(d, a.correction1), correction2 = hn::Set(d, a.correction2);
  const V rate = hn::Set(d, a.rate), epsilon = hn::Set(d, a.epsilon), decay = hn::Set(d, a.decay);
  for (size_t i = 0; i < a.n; i += kLanes) {
    const size_t count = std::min(kLanes, a.n - i);
    const V g = LoadSome(d, a.g + i, count);
    const V w = LoadSome(d, a.w + i, count);
    const V m = hn::MulAdd(rest1, g, hn::Mul(beta1, LoadSome(d, a.m + i, count)));
    const V v = hn::MulAdd(hn::Mul(rest2, g), g, hn::Mul(beta2, LoadSome(d, a.v + i, count)));
    const V step = hn::Div(hn::Mul(m, correction1), hn::Add(hn::Sqrt(hn::Mul(v, correction2)), epsilon));
    StoreSome(hn::NegMulAdd(rate, hn::MulAdd(decay, w, step), w), d, a.w + i, count);
    StoreSome(m, d, a.m + i, count);
    StoreSome(v, d, a.v + i, count);
  }
}

void Sgd(const SgdArgs<>& a) {
  if (a.row_J != nullptr) return ApplySgd(a);
  const D d;
  const V rate = hn::Set(d, a.rate), momentum = hn::Set(d, a.momentum), decay = hn::Set(d, a.decay);
  for (size_t i = 0; i < a.n; i += kLanes) {
    const size_t count = std::min(kLanes, a.n - i);
    V m = LoadSome(d, a.g + i, count);
    if (a.m != nullptr) {
      m = hn::MulAdd(momentum, LoadSome(d, a.m + i, count), m);
      StoreSome(m, d, a.m + i, count);
    }
    const V w = LoadSome(d, a.w + i, count);
    StoreSome(hn::NegMulAdd(rate, hn::MulAdd(decay, w, m), w), d, a.w + i, count);
  }
}

}  // namespace

void FillOptimizer(OpTable& table) {
  table.adam = ForTraining(Adam);
  table.sgd = ForTraining(Sgd);
}

}  // namespace wisp::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::kernels {
WISP_EXPORT_FILL(FillOptimizer)
}  // namespace wisp::kernels
#endif
