// Built for speed: its loop is what is measured.
// Measures the most fused multiply-adds that one thread of this processor does in a second, with the widest vectors
// that the kernels use. Figures are compared with this roofline.
#include "tools/lab/bench/fma_peak.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tools/lab/bench/fma_peak.cc"
#include "kernels/simd/targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include <chrono>

HWY_BEFORE_NAMESPACE();
namespace wisp::tools::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Twelve chains cover the latency of a fused multiply-add on two ports.
double Probe() {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int kRounds = 4000, kChains = 12;
  V acc[kChains];
  for (V& a : acc) a = hn::Set(d, 1.0f);
  const V b = hn::Set(d, 0.999f), c = hn::Set(d, 0.001f);
  const auto start = std::chrono::steady_clock::now();
  for (int r = 0; r < kRounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) acc[i] = hn::MulAdd(acc[i], b, c);
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  V sum = acc[0];
  for (int i = 1; i < kChains; ++i) sum = hn::Add(sum, acc[i]);
  // keeps the compiler from dropping the loop
  const double kept = static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
  return kept < 0 ? 0 : 2.0 * kRounds * kChains * static_cast<double>(hn::Lanes(d)) / seconds / 1e9;
}

}  // namespace wisp::tools::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wisp::tools {
HWY_EXPORT(Probe);
double FmaProbe() { return HWY_DYNAMIC_DISPATCH(Probe)(); }
}  // namespace wisp::tools
#endif
