// Problems of attention, and comparisons of an op table's results with the reference in double.
#ifndef WISP_TESTS_UNIT_KERNELS_ATTENTION_TEST_UTIL_H_
#define WISP_TESTS_UNIT_KERNELS_ATTENTION_TEST_UTIL_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/reference.h"
#include "tests/unit/kernels/kernel_test_util.h"

namespace wisp::kernels {

struct Shape {
  size_t queries, keys, heads, width;
  size_t first_key = 0;
  AttentionMask mask;
  bool dropped;         // with a keep mask
  bool varied = false;  // Re-Attention: with variances of keys and values
  float enormous = 0;   // the variance of some keys' entries, or of all if there are few
  bool sloped = false;  // ALiBi: with a bias by distance
  size_t kv_heads = 0;  // grouped queries; 0: as many as heads
  size_t window = 0;    // 0: no window

  // Returns this shape with a change.
  Shape From(size_t first) const {
    return Changed([&](Shape& s) { s.first_key = first; });
  }
  Shape Varied(float variance = 0) const {
    return Changed([&](Shape& s) { s.varied = true, s.enormous = variance; });
  }
  Shape Sloped() const {
    return Changed([](Shape& s) { s.sloped = true; });
  }

  Shape Within(size_t size) const {
    return Changed([&](Shape& s) { s.window = size; });
  }

  // Returns the shape with `per_group` query heads for each of `kv` heads of keys and values.
  Shape Grouped(size_t kv, size_t per_group) const {
    return Changed([&](Shape& s) { s.kv_heads = kv, s.heads = kv * per_group; });
  }
  size_t KvWidth() const { return (kv_heads == 0 ? heads : kv_heads) * width; }

  template <class Change>
  Shape Changed(Change change) const {
    Shape s = *this;
    change(s);
    return s;
  }
};

// Fills the arguments of a call from the shape, in any number type, forward or backward.
template <class Args>
Args Shaped(const Shape& s, Args args) {
  args.keep_scale = static_cast<decltype(args.keep_scale)>(4.0 / 3);
  args.num_queries = s.queries, args.num_keys = s.keys;
  args.heads = s.heads, args.kv_heads = s.kv_heads, args.head_width = s.width;
  args.first_key = s.first_key, args.mask = s.mask, args.window = s.window;
  return args;
}

inline std::vector<double> ToDouble(const GuardedMatrix& m) {
  std::vector<double> out;
  for (size_t r = 0; r < m.rows(); ++r) {
    for (size_t c = 0; c < m.cols(); ++c) out.push_back(*m.at(r, c));
  }
  return out;
}

inline double Largest(const std::vector<double>& v) {
  double largest = 1e-30;
  for (double x : v) largest = std::max(largest, std::abs(x));
  return largest;
}

// All data of one call, in float with guards and in double.
struct Problem {
  Problem(const Shape& s, uint64_t seed)
      : d(s.heads * s.width),
        kv_width(s.KvWidth()),
        q(s.queries, d, 3 * d + 1),
        k(s.keys, kv_width, 2 * kv_width + 3),
        v(s.keys, kv_width, 2 * kv_width + 3),
        dout(s.queries, d, d + 2),
        key_variance(s.keys, kv_width, 2 * kv_width + 1),
        value_variance(s.keys, kv_width, 2 * kv_width + 1),
        scale(static_cast<float>(1 / std::sqrt(static_cast<double>(s.width)))) {
    std::mt19937_64 random(seed);
    for (GuardedMatrix* m : {&q, &k, &v, &dout}) m->Fill(random, std::normal_distribution<float>(0, 1.5f));
    for (GuardedMatrix* m : {&key_variance, &value_variance})
      m->Fill(random, std::uniform_real_distribution<float>(0, 2));
    // Corrected and uncorrected logits must lie far apart: near the edge a float could not tell them apart.
    for (size_t j = 0; s.enormous > 0 && j < s.keys; ++j) {
      for (size_t c = 0; c < kv_width && (s.keys < 8 || j % 3 != 2); ++c) *key_variance.at(j, c) = s.enormous;
    }
    keep.resize(s.heads * s.queries * s.keys);
    for (uint8_t& bit : keep) bit = random() % 4 != 0;
    const std::vector<double> kvd = ToDouble(key_variance), vvd = ToDouble(value_variance);
    const double* kv = s.varied ? kvd.data() : nullptr;
    for (size_t h = 0; h < s.heads; ++h) slopes.push_back(0.05f * static_cast<float>(h + 1));
    const std::vector<double> sd(slopes.begin(), slopes.end());
    const double* slope = s.sloped ? sd.data() : nullptr;
    out.assign(s.queries * d, 0);
    out_variance.assign(s.queries * d, 0);
    lse.assign(s.heads * s.queries, 0);
    const std::vector<double> qd = ToDouble(q), kd = ToDouble(k), vd = ToDouble(v), doutd = ToDouble(dout);
    reference::AttentionForward<double>(
        Shaped<AttentionForwardArgs<double>>(s, {.q = qd.data(),
                                                 .k = kd.data(),
                                                 .v = vd.data(),
                                                 .ldq = d,
                                                 .ldkv = kv_width,
                                                 .out = out.data(),
                                                 .ldout = d,
                                                 .lse_HQ = lse.data(),
                                                 .keep_HQT = s.dropped ? keep.data() : nullptr,
                                                 .scratch = nullptr,
                                                 .scale = scale,
                                                 .key_variance = kv,
                                                 .value_variance = s.varied ? vvd.data() : nullptr,
                                                 .ldvariance = kv_width,
                                                 .out_variance = out_variance.data(),
                                                 .ldout_variance = d,
                                                 .slope_H = slope}));
    dq.assign(s.queries * d, 0);
    dk.assign(s.keys * kv_width, 0);
    dv.assign(s.keys * kv_width, 0);
    reference::AttentionBackward<double>(
        Shaped<AttentionBackwardArgs<double>>(s, {.q = qd.data(),
                                                  .k = kd.data(),
                                                  .v = vd.data(),
                                                  .ldq = d,
                                                  .ldkv = kv_width,
                                                  .out = out.data(),
                                                  .dout = doutd.data(),
                                                  .ldout = d,
                                                  .lse_HQ = lse.data(),
                                                  .keep_HQT = s.dropped ? keep.data() : nullptr,
                                                  .dq = dq.data(),
                                                  .dk = dk.data(),
                                                  .dv = dv.data(),
                                                  .scratch = nullptr,
                                                  .scale = scale,
                                                  .key_variance = kv,
                                                  .ldvariance = kv_width,
                                                  .slope_H = slope}));
  }
  size_t d, kv_width;
  GuardedMatrix q, k, v, dout, key_variance, value_variance;
  float scale;
  std::vector<uint8_t> keep;
  std::vector<float> slopes;
  std::vector<double> out, out_variance, lse, dq, dk, dv;
};

inline void Compare(const GuardedMatrix& actual, const std::vector<double>& expected, double tolerance,
                    ErrorMeter& meter) {
  for (size_t r = 0; r < actual.rows(); ++r) {
    for (size_t c = 0; c < actual.cols(); ++c) meter.Add(*actual.at(r, c), expected[r * actual.cols() + c], tolerance);
  }
}

inline constexpr float kScratchGuard = 12345;

// The scratch memory of a pass, with a guard after it.
inline std::vector<float> Scratch(const OpTable& ops, const Shape& s, AttentionPass pass = AttentionPass::kBackward) {
  std::vector<float> scratch(ops.attention_scratch_size(pass, s.keys, s.width), NAN);
  scratch.push_back(kScratchGuard);
  return scratch;
}

// The outputs of a forward pass.
struct Outputs {
  Outputs(const OpTable& ops, const Shape& s, const Problem& p, AttentionPass pass = AttentionPass::kForward)
      : out(s.queries, p.d, p.dout.ld()),
        variance(s.queries, p.d, p.d + 1),
        lse(1, s.heads * s.queries, s.heads * s.queries),
        scratch(Scratch(ops, s, pass)) {}
  GuardedMatrix out, variance, lse;
  std::vector<float> scratch;
};

inline AttentionForwardArgs<> ForwardArgs(const Shape& s, const Problem& p, Outputs& to) {
  return Shaped<AttentionForwardArgs<>>(s, {.q = p.q.data(),
                                            .k = p.k.data(),
                                            .v = p.v.data(),
                                            .ldq = p.q.ld(),
                                            .ldkv = p.k.ld(),
                                            .out = to.out.data(),
                                            .ldout = to.out.ld(),
                                            .lse_HQ = to.lse.data(),
                                            .keep_HQT = s.dropped ? p.keep.data() : nullptr,
                                            .scratch = to.scratch.data(),
                                            .scale = p.scale,
                                            .key_variance = s.varied ? p.key_variance.data() : nullptr,
                                            .value_variance = s.varied ? p.value_variance.data() : nullptr,
                                            .ldvariance = p.key_variance.ld(),
                                            .out_variance = to.variance.data(),
                                            .ldout_variance = to.variance.ld(),
                                            .slope_H = s.sloped ? p.slopes.data() : nullptr});
}

inline double CheckForward(const OpTable& ops, const Shape& s, uint64_t seed) {
  const Problem p(s, seed);
  Outputs to(ops, s, p);
  to.out.Fill(NAN);
  if (s.varied) to.variance.Fill(NAN);
  const double tolerance = 2e-5 * Largest(ToDouble(p.v));
  PlanPerturbation(to.out.at(s.queries - 1, 0), 4 * tolerance);
  ops.attention_forward(ForwardArgs(s, p, to));
  ErrorMeter meter;
  Compare(to.out, p.out, tolerance, meter);
  Compare(to.variance, p.out_variance, 2e-5 * Largest(ToDouble(p.value_variance)), meter);
  Compare(to.lse, p.lse, 2e-5 * (1 + Largest(p.lse)), meter);
  EXPECT_TRUE(to.out.GuardsIntact() && to.variance.GuardsIntact() && to.lse.GuardsIntact());
  EXPECT_EQ(to.scratch.back(), kScratchGuard);
  return meter.worst();
}

inline double CheckBackward(const OpTable& ops, const Shape& s, uint64_t seed) {
  const Problem p(s, seed);
  Outputs to(ops, s, p, AttentionPass::kBackward);
  PlanNoPerturbation();
  ops.attention_forward(ForwardArgs(s, p, to));
  GuardedMatrix dq(s.queries, p.d, p.q.ld()), dk(s.keys, p.kv_width, p.k.ld()), dv(s.keys, p.kv_width, p.k.ld());
  for (GuardedMatrix* m : {&dq, &dk, &dv}) m->Fill(NAN);
  // If terms cancel, the gradient is smaller than its terms, so the tolerance is relative to these.
  const double made_of = Largest(ToDouble(p.dout)) * Largest(ToDouble(p.v)) * p.scale *
                         std::max(Largest(ToDouble(p.q)), Largest(ToDouble(p.k)));
  const double relative = 2e-5 + std::ldexp(Largest(p.lse), -23);
  const auto tolerance = [&](const std::vector<double>& gradient) {
    return relative * std::max(Largest(gradient), made_of);
  };
  PlanPerturbation(dk.at(s.keys - 1, p.kv_width - 1), 4 * tolerance(p.dk));
  ops.attention_backward(Shaped<AttentionBackwardArgs<>>(s, {.q = p.q.data(),
                                                             .k = p.k.data(),
                                                             .v = p.v.data(),
                                                             .ldq = p.q.ld(),
                                                             .ldkv = p.k.ld(),
                                                             .out = to.out.data(),
                                                             .dout = p.dout.data(),
                                                             .ldout = p.dout.ld(),
                                                             .lse_HQ = to.lse.data(),
                                                             .keep_HQT = s.dropped ? p.keep.data() : nullptr,
                                                             .dq = dq.data(),
                                                             .dk = dk.data(),
                                                             .dv = dv.data(),
                                                             .scratch = to.scratch.data(),
                                                             .scale = p.scale,
                                                             .key_variance = s.varied ? p.key_variance.data() : nullptr,
                                                             .ldvariance = p.key_variance.ld(),
                                                             .slope_H = s.sloped ? p.slopes.data() : nullptr}));
  ErrorMeter meter;
  Compare(dq, p.dq, tolerance(p.dq), meter);
  Compare(dk, p.dk, tolerance(p.dk), meter);
  Compare(dv, p.dv, relative * Largest(p.dv), meter);
  EXPECT_TRUE(dq.GuardsIntact() && dk.GuardsIntact() && dv.GuardsIntact());
  EXPECT_EQ(to.scratch.back(), kScratchGuard);
  return meter.worst();
}

}  // namespace wisp::kernels

#endif  // WISP_TESTS_UNIT_KERNELS_ATTENTION_TEST_UTIL_H_
