// Activations for SIMD tables, alone and gated.
//
// Each kind has its own loop. With all kinds in one loop, their constants would not fit the registers of SSE4 and AVX2,
// and relu would take two to three times as long.
#include "kernels/simd/fill.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/activation.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/simd/normal-inl.h"
#include "kernels/simd/partial-inl.h"

#include <algorithm>
#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace wisp::kernels::HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr size_t kLanes = HWY_LANES(float);
constexpr size_t kChunk = 256;  // floats; a multiple of kLanes

struct Logistic {
  V s;     // 1 / (1 + exp(-z))
  V rest;  // 1 - s, without cancellation
};

// Computes the exponential of a number <= 0 only, so that nothing overflows. Relative error 4e-7 for |z| <= 80; beyond
// that, the smaller of the two results is 0.
HWY_INLINE Logistic ComputeLogistic(D d, V z) {
  const V one = hn::Set(d, 1.0f);
  const V e = ExpNonPositive(d, hn::Neg(hn::Abs(z)));
  const V large = hn::Div(one, hn::Add(one, e));
  const V small = hn::Mul(e, large);
  const auto negative = hn::Lt(z, hn::Zero(d));
  return {hn::IfThenElse(negative, small, large), hn::IfThenElse(negative, large, small)};
}

// (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u)), and 2 u = x (kGeluLinear + kGeluCubic x^2).
constexpr float kGeluLinear = 1.59576912f, kGeluCubic = 0.0713548163f;

HWY_INLINE V GeluTanhArgument(D d, V x, float cubic) {
  return hn::Mul(x, hn::MulAdd(hn::Mul(x, x), hn::Set(d, cubic), hn::Set(d, kGeluLinear)));
}

// The difference between relu and a GELU: a F(-a) at a = |x|. It is a bump of at most 0.17 that vanishes at `end`. F is
// the normal distribution, or for the tanh form the logistic function in its place.
struct Bump {
  float end;
  float c[9];  // F(-a) = (c0 + c1 a + ... + c8 a^8)^8; fitted to minimise the largest error of a F(-a)
};
// Fitted to 3.2e-9 and 2.4e-7. With float rounding, y is within 2.5e-7 and 4.9e-7.
constexpr Bump kGeluBump = {6.0f,
                            {0.917003989f, -0.0914574116f, -0.0319280773f, -0.000671955757f, 0.00150436244f,
                             3.42950188e-5f, -6.02576329e-5f, 7.47955255e-6f, -2.95881904e-7f}};
constexpr Bump kGeluTanhBump = {5.2f,
                                {0.917006314f, -0.0914860666f, -0.0318183042f, -0.000765041041f, 0.001630996f,
                                 9.97463285e-5f, -0.000178891714f, 4.20676697e-5f, -3.27613475e-6f}};

// The smaller of both, or NaN if x is NaN. For a NaN, Min's instruction returns its second argument on x86 and the
// number on Arm.
HWY_INLINE V MinOrNaN(V limit, V x) {
#if HWY_ARCH_X86
  return hn::Min(limit, x);
#else
  return hn::IfThenElse(hn::Gt(x, limit), limit, x);
#endif
}

// relu(x) - bump: a power of a polynomial in place of an exponential and a division, 14 operations instead of 30. Used
// if the slope is not needed.
HWY_INLINE V ReluWithoutBump(D d, V x, const Bump& bump) {
  const V a = MinOrNaN(hn::Set(d, bump.end), hn::Abs(x));
  V p = hn::Set(d, bump.c[8]);
  for (int i = 7; i >= 0; --i) p = hn::MulAdd(p, a, hn::Set(d, bump.c[i]));
  p = hn::Mul(p, p);
  p = hn::Mul(p, p);
  p = hn::Mul(p, p);
  return hn::NegMulAdd(a, p, hn::Max(hn::Zero(d), x));
}

struct Curve {
  V value, slope;
};

template <Activation kKind>
HWY_INLINE Curve ComputeCurve(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  if constexpr (kKind == Activation::kRelu) {
    const V zero = hn::Zero(d);
    return {hn::Max(x, zero), hn::IfThenElseZero(hn::Gt(x, zero), one)};
  } else if constexpr (kKind == Activation::kGelu) {
    const Normal<V> normal = ComputeNormal(d, x);
    return {hn::Mul(x, normal.cdf), hn::MulAdd(x, normal.density, normal.cdf)};
  } else if constexpr (kKind == Activation::kGeluTanh) {
    const Logistic l = ComputeLogistic(d, GeluTanhArgument(d, x, kGeluCubic));
    // Beyond +-10 the slope is 0 or 1, and the following terms could overflow. So x is limited; NaN stays NaN.
    const V far = hn::Set(d, 10.0f);
    const V held = hn::IfThenElse(hn::Gt(hn::Abs(x), far), hn::CopySign(far, x), x);
    const V inner = GeluTanhArgument(d, held, 3 * kGeluCubic);  // x times the derivative of the argument
    return {hn::Mul(x, l.s), hn::Mul(l.s, hn::MulAdd(inner, l.rest, one))};
  } else {
    const Logistic l = ComputeLogistic(d, x);
    if constexpr (kKind == Activation::kSigmoid) return {l.s, hn::Mul(l.s, l.rest)};
    return {hn::Mul(x, l.s), hn::Mul(l.s, hn::MulAdd(x, l.rest, one))};
  }
}

// Only the value, without the slope.
template <Activation kKind>
HWY_INLINE V ComputeValue(D d, V x) {
  if constexpr (kKind == Activation::kGelu) return ReluWithoutBump(d, x, kGeluBump);
  if constexpr (kKind == Activation::kGeluTanh) return ReluWithoutBump(d, x, kGeluTanhBump);
  return ComputeCurve<kKind>(d, x).value;
}

// Calls f.operator()<kind>().
template <class F>
HWY_INLINE void WithKind(Activation kind, F&& f) {
  switch (kind) {
    case Activation::kRelu:
      return f.template operator()<Activation::kRelu>();
    case Activation::kGelu:
      return f.template operator()<Activation::kGelu>();
    case Activation::kGeluTanh:
      return f.template operator()<Activation::kGeluTanh>();
    case Activation::kSilu:
      return f.template operator()<Activation::kSilu>();
    case Activation::kSigmoid:
      return f.template operator()<Activation::kSigmoid>();
  }
}

template <Activation kKind>
HWY_NOINLINE void ComputeValues(const ActivationForwardArgs<>& a) {
  const D d;
  for (size_t i = 0; i < a.n; i += kLanes) {
    StoreSome(ComputeValue<kKind>(d, LoadSome(d, a.x + i, a.n - i)), d, a.y + i, a.n - i);
  }
}

void Forward(const ActivationForwardArgs<>& a) {
  WithKind(a.kind, [&]<Activation kKind>() { ComputeValues<kKind>(a); });
}

template <Activation kKind>
HWY_NOINLINE void ComputeGradients(const ActivationBackwardArgs<>& a) {
  const D d;
  for (size_t i = 0; i < a.n; i += kLanes) {
    const V x = LoadSome(d, a.x + i, a.n - i), dy = LoadSome(d, a.dy + i, a.n - i);
    // A mask, not a product: where relu is flat the gradient is zero, whatever dy is.
    const V dx = kKind == Activation::kRelu ? hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), dy)
                                            : hn::Mul(dy, ComputeCurve<kKind>(d, x).slope);
    StoreSome(dx, d, a.dx + i, a.n - i);
  }
}

void Backward(const ActivationBackwardArgs<>& a) {
  WithKind(a.kind, [&]<Activation kKind>() { ComputeGradients<kKind>(a); });
}

// f(gate) is computed in chunks by the loops above, in a buffer that stays in the first-level cache.
void GatedForward(const GatedActivationForwardArgs<>& a) {
  const D d;
  HWY_ALIGN float value[kChunk];
  for (size_t r = 0; r < a.rows; ++r) {
    for (size_t first = 0; first < a.n; first += kChunk) {
      const size_t count = std::min(kChunk, a.n - first);
      Forward({.x = a.gate_RF + r * a.ldgate + first, .y = value, .n = count, .kind = a.kind});
      const float* up = a.up_RF + r * a.ldup + first;
      float* y = a.y_RF + r * a.ldy + first;
      for (size_t i = 0; i < count; i += kLanes) {
        StoreSome(hn::Mul(LoadSome(d, value + i, count - i), LoadSome(d, up + i, count - i)), d, y + i, count - i);
      }
    }
  }
}

// One row. Every input of an element is read before either output is written, so outputs may share memory with inputs.
template <Activation kKind>
HWY_NOINLINE void ComputeGatedGradients(const GatedActivationBackwardArgs<>& a, size_t r) {
  const D d;
  const float *dy = a.dy_RF + r * a.lddy, *gate = a.gate_RF + r * a.ldgate, *up = a.up_RF + r * a.ldup;
  float *dgate = a.dgate_RF + r * a.lddgate, *dup = a.dup_RF + r * a.lddup;
  for (size_t i = 0; i < a.n; i += kLanes) {
    const size_t left = a.n - i;
    const V dy_v = LoadSome(d, dy + i, left), up_v = LoadSome(d, up + i, left);
    const Curve curve = ComputeCurve<kKind>(d, LoadSome(d, gate + i, left));
    StoreSome(hn::Mul(hn::Mul(dy_v, up_v), curve.slope), d, dgate + i, left);
    StoreSome(hn::Mul(dy_v, curve.value), d, dup + i, left);
  }
}

void GatedBackward(const GatedActivationBackwardArgs<>& a) {
  WithKind(a.kind, [&]<Activation kKind>() {
    for (size_t r = 0; r < a.rows; ++r) ComputeGatedGradients<kKind>(a, r);
  });
}

}  // namespace

void FillActivation(OpTable& table) {
  table.activation_forward = Forward;
  table.activation_backward = ForTraining(Backward);
  table.gated_activation_forward = GatedForward;
  table.gated_activation_backward = ForTraining(GatedBackward);
}

}  // namespace wisp::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::kernels {
WISP_EXPORT_FILL(FillActivation)
}  // namespace wisp::kernels
#endif
