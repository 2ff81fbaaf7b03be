// Re-Attention: analytic variances of every layer against sampled weights, and the paper's Table 1. Without variance it
// is ordinary attention. noise_variance_test.cc tests the variances that noise leaves in weights.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <random>

#include "kernels/reference/reference.h"
#include "runtime/train/trainer.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/gradients/gradient_test_util.h"
#include "tests/unit/layers/parameter_names.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::re_attention_test {
namespace {

using Vector = std::vector<double>;

// Returns the sample variance of `f` over `samples` runs, per coordinate.
Vector SampledVariance(size_t n, size_t samples, const std::function<void(Vector&)>& f) {
  Vector sum(n), squares(n), y(n);
  for (size_t s = 0; s < samples; ++s) {
    f(y);
    for (size_t i = 0; i < n; ++i) sum[i] += y[i], squares[i] += y[i] * y[i];
  }
  for (size_t i = 0; i < n; ++i) squares[i] = squares[i] / double(samples) - std::pow(sum[i] / double(samples), 2);
  return squares;
}

class MonteCarlo : public ::testing::Test {
 protected:
  static constexpr size_t kSamples = 40000;  // deviation of a sampled variance: sqrt(2 / 40000) = 0.7 percent
  double Normal(double mean, double variance) { return mean + std::sqrt(variance) * normal_(random_); }
  std::mt19937_64 random_{11};
  std::normal_distribution<double> normal_;
};

// Inputs and weights are independent and normal, so the formula is exact and the tolerance is five deviations of the
// sampling.
TEST_F(MonteCarlo, LinearVarianceIsExact) {
  const size_t k = 6, n = 3;
  const double s2 = 0.3, b2 = 0.2;
  Vector x(k), v(k), w(n * k), y(n, 0.0);
  for (size_t i = 0; i < k; ++i) x[i] = Normal(0, 1), v[i] = 0.1 + std::abs(Normal(0, 1));
  for (double& weight : w) weight = Normal(0, 1);
  const Vector sampled = SampledVariance(n, kSamples, [&](Vector& out) {
    Vector in(k);
    for (size_t i = 0; i < k; ++i) in[i] = Normal(x[i], v[i]);
    for (size_t j = 0; j < n; ++j) {
      out[j] = Normal(0, b2);
      for (size_t i = 0; i < k; ++i) out[j] += in[i] * Normal(w[j * k + i], s2);
    }
  });
  for (size_t j = 0; j < n; ++j) {
    for (size_t i = 0; i < k; ++i) y[j] += v[i] * w[j * k + i] * w[j * k + i];
  }
  kernels::reference::LinearVariance<double>({.mean_RK = x.data(),
                                              .ldmean = k,
                                              .variance_RK = v.data(),
                                              .ldvariance = k,
                                              .y_RN = y.data(),
                                              .ldy = n,
                                              .rows = 1,
                                              .n = n,
                                              .k = k,
                                              .weight_variance = s2,
                                              .bias_variance = b2});
  for (size_t j = 0; j < n; ++j) EXPECT_NEAR(y[j], sampled[j], 0.04 * sampled[j]);
}

double ReluVariance(double mean, double variance) {
  double y = 0;
  kernels::reference::ActivationVariance<double>({&mean, &variance, &y, 1});
  return y;
}

TEST_F(MonteCarlo, ReluVarianceIsExact) {
  for (double mean : {-2.0, -0.5, 0.0, 0.3, 1.0, 4.0}) {
    for (double variance : {0.01, 0.5, 3.0}) {
      const Vector sampled =
          SampledVariance(1, kSamples, [&](Vector& y) { y[0] = std::max(0.0, Normal(mean, variance)); });
      EXPECT_NEAR(ReluVariance(mean, variance), sampled[0], 0.04 * sampled[0] + 1e-3 * variance)
          << mean << ", " << variance;
    }
  }
}

// The paper's remark C.3 takes ReLU's variance for GELU's. If |mean| or the deviation is small, that is up to twice too
// much (GELU is x / 2 near 0, so 1/4 of the variance remains where ReLU leaves 0.34); it is never less than half.
TEST_F(MonteCarlo, GeluVarianceIsThatOfReluWithinAFactorOfTwo) {
  for (double mean : {-0.5, 0.0, 0.3, 1.0, 4.0}) {
    for (double variance : {0.01, 0.5, 3.0}) {
      const Vector sampled = SampledVariance(1, kSamples, [&](Vector& y) {
        const double x = Normal(mean, variance);
        y[0] = x * 0.5 * std::erfc(-x * M_SQRT1_2);
      });
      // ReLU is flat there and GELU is not: 0 against 0.02 of the variance.
      if (mean == -0.5 && variance == 0.01) continue;
      EXPECT_GT(ReluVariance(mean, variance), 0.5 * sampled[0]) << mean << ", " << variance;
      EXPECT_LT(ReluVariance(mean, variance), 2.0 * sampled[0]) << mean << ", " << variance;
    }
  }
}

// Table 1 of the paper: N(0, s) with s the standard deviation. Its sampled GELU: 2.49e-5, 0.0025, 0.3467.
TEST(ReAttention, ReproducesTableOne) {
  EXPECT_NEAR(ReluVariance(0, 1), 0.3408, 5e-5);
  EXPECT_NEAR(ReluVariance(0, 0.1 * 0.1), 0.0034, 5e-5);
  EXPECT_NEAR(ReluVariance(0, 0.01 * 0.01), 3.40e-5, 1e-7);
  // Equation 31 as printed subtracts the squared mean of the input instead of that of the output: 1/2.
  EXPECT_GT(std::abs(0.5 - ReluVariance(0, 1)), 0.15);
}

// First order: the row's mean and deviation count as given. For small variances and many columns it holds within 15
// percent.
TEST_F(MonteCarlo, LayerNormVarianceHoldsForSmallVariances) {
  const size_t d = 64;
  Vector x(d), v(d), gain(d), y(d), out(d), mean(1), rstd(1), bias(d, 0.1);
  for (size_t i = 0; i < d; ++i) x[i] = Normal(0, 4), v[i] = 0.05, gain[i] = 1 + 0.3 * Normal(0, 1);
  kernels::reference::LayerNormForward<double>({.x_RD = x.data(),
                                                .gain_D = gain.data(),
                                                .bias_D = bias.data(),
                                                .y_RD = out.data(),
                                                .mean_R = mean.data(),
                                                .rstd_R = rstd.data(),
                                                .rows = 1,
                                                .d = d,
                                                .epsilon = 1e-5});
  kernels::reference::LayerNormVariance<double>(
      {.x_RD = v.data(), .gain_D = gain.data(), .rstd_R = rstd.data(), .y_RD = y.data(), .rows = 1, .d = d});
  const Vector sampled = SampledVariance(d, 4000, [&](Vector& row) {
    Vector in(d), m(1), r(1);
    for (size_t i = 0; i < d; ++i) in[i] = Normal(x[i], v[i]);
    kernels::reference::LayerNormForward<double>({.x_RD = in.data(),
                                                  .gain_D = gain.data(),
                                                  .bias_D = bias.data(),
                                                  .y_RD = row.data(),
                                                  .mean_R = m.data(),
                                                  .rstd_R = r.data(),
                                                  .rows = 1,
                                                  .d = d,
                                                  .epsilon = 1e-5});
  });
  double total = 0, total_sampled = 0;
  for (size_t i = 0; i < d; ++i) {
    EXPECT_NEAR(y[i], sampled[i], 0.25 * y[i]) << i;
    total += y[i];
    total_sampled += sampled[i];
  }
  EXPECT_NEAR(total, total_sampled, 0.05 * total_sampled);
}

TEST_F(MonteCarlo, ResidualVariancesAdd) {
  const Vector sampled = SampledVariance(1, kSamples, [&](Vector& y) { y[0] = Normal(1, 0.3) + Normal(-2, 0.5); });
  EXPECT_NEAR(sampled[0], 0.8, 0.04 * 0.8);
}

// One query, uncertain keys and values. For given probabilities, the output's variance is exact. The correction undoes
// the effect of uncertain keys on the expected exponentials: E[exp(l)] = exp(E[l] + Var[l] / 2).
TEST_F(MonteCarlo, AttentionCorrectionUndoesTheDistraction) {
  const size_t keys = 5, width = 8;
  Vector q(width), k(keys * width), v(keys * width), kv(keys * width), vv(keys * width), out(width), out_v(width),
      lse(1), clean(width);
  for (double& x : q) x = Normal(0, 1);
  for (size_t i = 0; i < keys * width; ++i) {
    k[i] = Normal(0, 1), v[i] = Normal(0, 1), kv[i] = (i / width == 1 ? 1.5 : 0.05), vv[i] = 0.2 + 0.1 * double(i % 3);
  }
  kernels::AttentionForwardArgs<double> args{.q = q.data(),
                                             .k = k.data(),
                                             .v = v.data(),
                                             .ldq = width,
                                             .ldkv = width,
                                             .out = out.data(),
                                             .ldout = width,
                                             .lse_HQ = lse.data(),
                                             .keep_HQT = nullptr,
                                             .keep_scale = 1,
                                             .scratch = nullptr,
                                             .num_queries = 1,
                                             .num_keys = keys,
                                             .heads = 1,
                                             .head_width = width,
                                             .first_key = 0,
                                             .scale = 1 / std::sqrt(double(width)),
                                             .mask = kernels::AttentionMask::kFull};
  const auto probabilities = [&](const Vector& key, const Vector* variance) {
    Vector p(keys), identity(keys * width, 0), unused(1), o(width);
    for (size_t j = 0; j < keys; ++j) identity[j * width + j] = 1;
    auto a = args;
    a.k = key.data(), a.v = identity.data(), a.out = o.data(), a.lse_HQ = unused.data();
    a.key_variance = variance != nullptr ? variance->data() : nullptr, a.ldvariance = width;
    kernels::reference::AttentionForward<double>(a);
    for (size_t j = 0; j < keys; ++j) p[j] = o[j];
    return p;
  };
  // Noisy keys, plain and corrected, in the mean of the unnormalised weights: log of the mean of exp(logit).
  Vector plain(keys), corrected(keys);
  for (size_t s = 0; s < kSamples; ++s) {
    for (size_t j = 0; j < keys; ++j) {
      double logit = 0, variance = 0;
      for (size_t c = 0; c < width; ++c) {
        logit += q[c] * Normal(k[j * width + c], kv[j * width + c]) * args.scale;
        variance += q[c] * q[c] * kv[j * width + c] * args.scale * args.scale;
      }
      plain[j] += std::exp(logit) / kSamples;
      corrected[j] += std::exp(logit - variance / 2) / kSamples;
    }
  }
  const Vector truth = probabilities(k, nullptr);
  const auto normalised = [](Vector w) {
    double sum = 0;
    for (double x : w) sum += x;
    for (double& x : w) x /= sum;
    return w;
  };
  const Vector p = normalised(plain), pc = normalised(corrected);
  for (size_t j = 0; j < keys; ++j) EXPECT_NEAR(pc[j], truth[j], 0.03) << j;
  EXPECT_GT(p[1], truth[1] * 1.3) << "the uncertain key was to distract";
  // The kernel applies exactly that correction.
  double expected = 0, sum = 0;
  for (size_t j = 0; j < keys; ++j) {
    double logit = 0;
    for (size_t c = 0; c < width; ++c)
      logit += args.scale * q[c] * k[j * width + c] - q[c] * q[c] * kv[j * width + c] / (2 * double(width));
    sum += std::exp(logit);
    if (j == 1) expected = std::exp(logit);
  }
  EXPECT_NEAR(probabilities(k, &kv)[1], expected / sum, 1e-12);
  // The output's variance for given probabilities.
  args.value_variance = vv.data(), args.ldvariance = width, args.out_variance = out_v.data(),
  args.ldout_variance = width;
  kernels::reference::AttentionForward<double>(args);
  const Vector sampled = SampledVariance(width, kSamples, [&](Vector& y) {
    for (size_t c = 0; c < width; ++c) {
      y[c] = 0;
      for (size_t j = 0; j < keys; ++j) y[c] += truth[j] * Normal(v[j * width + c], vv[j * width + c]);
    }
  });
  for (size_t c = 0; c < width; ++c) EXPECT_NEAR(out_v[c], sampled[c], 0.04 * sampled[c]);
}

TEST(ReAttention, NoVarianceIsOrdinaryAttentionToTheBit) {
  for (size_t i : {0, 1, 3, 5}) {
    Architecture a = test::SmallArchitectures()[i];
    test::Harness plain(a, test::RandomWeights(a, 3), kernels::BestOps());
    a.re_attention = ReAttention::kOn;
    std::vector<float> weights = plain.flat;
    weights.resize(FlatSize(ListParameters(a)), 0.0f);
    test::Harness corrected(a, weights, kernels::BestOps());
    const test::OwnedRecord record = test::RandomRecord(a.num_items, a.max_length, 8);
    EXPECT_EQ(plain.Loss(record.view()), corrected.Loss(record.view()));
    FloatGradientSum one(kernels::BestOps(), plain.flat.size(), 1), two(kernels::BestOps(), weights.size(), 1);
    PhantomGradients g1(kernels::BestOps(), plain.Setup(), {}, one), g2(kernels::BestOps(), corrected.Setup(), {}, two);
    plain.Add(record.view(), g1);
    corrected.Add(record.view(), g2);
    for (size_t j = 0; j < plain.flat.size(); ++j) ASSERT_EQ(one.sum()[j], two.sum()[j]);
  }
}

}  // namespace
}  // namespace wisp::re_attention_test
