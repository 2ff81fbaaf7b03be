// DP-FP's releases for its head: one record moves them by at most the clipping norm, every coordinate is noised, and
// the head that is fitted to them is the posterior.
#include "runtime/methods/dp_fp/head_releases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace wisp::head_releases_test {
namespace {

using privacy::RandomStream;
using privacy::StreamPurpose;

HeadReleaseOptions Releases(double c) {
  return {.num_classes = 3,
          .width = 5,
          .micro_batches = 2,
          .clipping_norm = c,
          .noise_multiplier = 1,
          .sampling_probability = 0.1,
          .num_records_public = 100};
}

TEST(HeadReleases, RecordMovesTheSumByAtMostTheClippingNormAfterRounding) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (double c : {0.01, 1.0, 30.0}) {
    HeadReleases releases(kernels::BestOps(), Releases(c));
    for (float size : {1e-6f, 0.3f, 1.0f, 1e3f, 1e18f}) {
      releases.Clear();
      float h[5];
      double norm = 0;
      for (float& v : h) {
        v = size * normal(random);
        norm += static_cast<double>(v) * v;
      }
      norm = std::sqrt(norm);
      ASSERT_TRUE(releases.Add(0, 1, h, 2));
      double squares = 0;
      for (size_t i = 0; i < releases.matrices().size(); ++i) {
        const double v = static_cast<double>(releases.matrices()[i]) * releases.grid().grid();
        squares += v * v;
        if (i < 25) {
          EXPECT_EQ(v, 0) << "outside of its micro-batch's and its label's row";
        }
      }
      EXPECT_LE(std::sqrt(squares), c * (1 + 1e-6));
      EXPECT_NEAR(std::sqrt(squares), std::min(norm, c), 3e-5 * std::min(norm, c) + 1e-7 * c);
    }
  }
}

TEST(HeadReleases, RepresentationThatIsNotFiniteContributesNothing) {
  HeadReleases releases(kernels::BestOps(), Releases(1));
  for (float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const float h[5] = {1, bad, 0, 0, 0};
    EXPECT_FALSE(releases.Add(0, 0, h, 0));
  }
  for (int64_t v : releases.matrices()) EXPECT_EQ(v, 0);
}

// The sample deviation of 4000 samples lies within 6 of its own deviations (1.1 %), except for a chance of 2e-9.
TEST(HeadReleases, EveryCoordinateIsNoisedAlsoWhereNothingWasDrawn) {
  HeadReleaseOptions o = Releases(2.0);
  o.noise_multiplier = 1.7;
  HeadReleases releases(kernels::BestOps(), o);
  auto noise = RandomStream::Reproducible(8, StreamPurpose::kNoise);
  double squares = 0;
  size_t n = 0;
  for (int step = 0; step < 134; ++step) {
    releases.Clear();
    releases.Release(noise);
    for (int64_t v : releases.matrices()) {
      ASSERT_NE(v, 0);
      squares += std::pow(static_cast<double>(v) * releases.grid().grid(), 2);
      ++n;
    }
  }
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(n)), 1.7 * 2.0, 3.4 * 0.068);
}

// With almost no noise the head is the posterior of Gaussian classes around the records' means. This holds whatever the
// means share and however rare a class is, as long as the public prior is right.
TEST(HeadReleases, HeadIsThePosteriorOfSphericalClasses) {
  const float means[3][5] = {{5, 1, 0, 0, 0}, {4, 0, 1, 0, 0}, {6.5f, -1, -1, 0, 0.5f}};
  // n = R p N = 20 records are expected, and that many come.
  for (const std::vector<int>& counts : {std::vector<int>{7, 7, 6}, std::vector<int>{14, 4, 2}}) {
    HeadReleaseOptions o = Releases(10);
    o.noise_multiplier = 1e-5;
    o.effective_dimensions = 5;
    for (int n : counts) o.class_prior.push_back(n / 20.0);
    HeadReleases releases(kernels::BestOps(), o);
    auto noise = RandomStream::Reproducible(8, StreamPurpose::kNoise);
    releases.Clear();
    for (uint32_t c = 0; c < 3; ++c) {
      for (int i = 0; i < counts[c]; ++i) ASSERT_TRUE(releases.Add(0, static_cast<size_t>(i % 2), means[c], c));
    }
    releases.Release(noise);
    float w[15], b[3];
    releases.FitHead(w, b);
    // Logits are log posteriors up to a constant: log prior - |x - mean|^2 / (2 s^2), at any x.
    double s2 = 100;
    for (uint32_t c = 0; c < 3; ++c) {
      for (float v : means[c]) s2 -= o.class_prior[c] * v * v;
    }
    s2 /= o.effective_dimensions;
    const float points[4][5] = {{5, 1, 0, 0, 0}, {4, 0, 1, 0, 0}, {6.5f, -1, -1, 0, 0.5f}, {-3, 2, 0.5f, -1, 4}};
    for (const auto& x : points) {
      double logit[3], expected[3];
      for (uint32_t c = 0; c < 3; ++c) {
        logit[c] = b[c];
        expected[c] = std::log(o.class_prior[c]);
        for (size_t k = 0; k < 5; ++k) {
          logit[c] += static_cast<double>(w[c * 5 + k]) * x[k];
          expected[c] -= std::pow(x[k] - means[c][k], 2) / (2 * s2);
        }
      }
      for (uint32_t c = 1; c < 3; ++c) EXPECT_NEAR(logit[c] - logit[0], expected[c] - expected[0], 2e-4);
    }
  }
}

// If means differ little compared with the assumed spread, the prior decides, and the releases show that.
TEST(HeadReleases, SaysWhereThePriorAloneDecides) {
  const float means[3][5] = {{5, 1, 0, 0, 0}, {5, 0, 1, 0, 0}, {5, 0, 0, 1, 0}};
  const auto named = [&](double effective_dimensions, std::vector<double> prior) {
    HeadReleaseOptions o = Releases(10);
    o.noise_multiplier = 1e-5;
    o.effective_dimensions = effective_dimensions;
    o.class_prior = std::move(prior);
    HeadReleases releases(kernels::BestOps(), o);
    auto noise = RandomStream::Reproducible(8, StreamPurpose::kNoise);
    releases.Clear();
    EXPECT_FALSE(releases.class_of_all_means().has_value());
    for (uint32_t c = 0; c < 3; ++c) {
      for (int i = 0; i < 20 * o.class_prior[c]; ++i)
        EXPECT_TRUE(releases.Add(0, static_cast<size_t>(i % 2), means[c], c));
    }
    releases.Release(noise);
    float w[15], b[3];
    releases.FitHead(w, b);
    return releases.class_of_all_means();
  };
  EXPECT_EQ(named(1, {0.2, 0.6, 0.2}), std::optional<uint32_t>(1));
  EXPECT_EQ(named(1, {0.2, 0.2, 0.6}), std::optional<uint32_t>(2));
  EXPECT_FALSE(named(1000, {0.2, 0.6, 0.2}).has_value());
}

}  // namespace
}  // namespace wisp::head_releases_test
