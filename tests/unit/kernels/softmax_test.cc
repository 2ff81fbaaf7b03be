// Softmax tiles of every op table against double loops written here, correct and perturbed (see kernel_test_util.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/kernels.h"
#include "tests/unit/kernels/kernel_test_util.h"

namespace wisp::kernels::softmax_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Logits {
  size_t rows, classes, pad;
  float spread;
};

// Checks lse and target logits of `classes` classes, fed in tiles of random width.
double CheckSoftmaxStats(const OpTable& ops, const Logits& s, uint64_t seed) {
  std::mt19937_64 random(seed);
  GuardedMatrix z(s.rows, s.classes, s.classes + s.pad), stats(3, s.rows, s.rows + 3);
  z.Fill(random, std::normal_distribution<float>(0, s.spread));
  if (s.classes > 1) *z.at(0, s.classes - 1) = -kInfinity;  // an excluded class
  std::vector<int32_t> target(s.rows);
  for (int32_t& t : target) t = static_cast<int32_t>(random() % (s.classes + 1)) - 1;
  for (size_t r = 0; r < s.rows; ++r) {
    *stats.at(0, r) = -kInfinity;
    *stats.at(1, r) = 0;
    *stats.at(2, r) = 123;  // must stay if no tile holds the target
  }
  std::vector<double> lse;
  for (size_t r = 0; r < s.rows; ++r) {
    double largest = -kInfinity, sum = 0;
    for (size_t j = 0; j < s.classes; ++j) largest = std::max<double>(largest, *z.at(r, j));
    for (size_t j = 0; j < s.classes; ++j) sum += std::exp(*z.at(r, j) - largest);
    lse.push_back(largest + std::log(sum));
  }
  const auto tolerance = [&](size_t r) { return 2e-6 * std::max(1.0, std::abs(lse[r])); };
  const size_t wrong = random() % s.rows;
  for (size_t first = 0; first < s.classes;) {
    const size_t n = std::min(s.classes - first, 1 + random() % (random() % 2 ? 16 : 100));
    // The error is in the last tile, where an error of max is one of lse.
    PlanPerturbation(first + n == s.classes ? stats.at(0, wrong) : nullptr, 4 * tolerance(wrong));
    ops.softmax_stats({.z_RN = z.at(0, first),
                       .ldz = z.ld(),
                       .target_R = target.data(),
                       .max_R = stats.at(0, 0),
                       .sum_R = stats.at(1, 0),
                       .target_logit_R = stats.at(2, 0),
                       .rows = s.rows,
                       .n = n,
                       .first = static_cast<int32_t>(first)});
    first += n;
  }
  ErrorMeter meter;
  for (size_t r = 0; r < s.rows; ++r) {
    meter.Add(*stats.at(0, r) + std::log(static_cast<double>(*stats.at(1, r))), lse[r], tolerance(r));
    EXPECT_EQ(*stats.at(2, r), target[r] < 0 ? 123 : *z.at(r, target[r])) << "target logit of row " << r;
  }
  EXPECT_TRUE(z.GuardsIntact() && stats.GuardsIntact());
  return meter.worst();
}

double CheckCrossEntropyGradient(const OpTable& ops, const Logits& s, uint64_t seed) {
  std::mt19937_64 random(seed);
  const int32_t first = 1000;
  GuardedMatrix z(s.rows, s.classes, s.classes + s.pad), lse(1, s.rows, s.rows), weight(1, s.rows, s.rows);
  z.Fill(random, std::normal_distribution<float>(0, s.spread));
  if (s.classes > 1) *z.at(0, 1) = -kInfinity;
  weight.Fill(random, std::uniform_real_distribution<float>(0.001f, 2));
  if (s.rows > 1) {
    *weight.at(0, 1) = 0;  // padding: zero whatever the row holds
    *z.at(1, s.classes - 1) = kNan;
  }
  std::vector<int32_t> target(s.rows);
  for (int32_t& t : target) t = first - 2 + static_cast<int32_t>(random() % (s.classes + 4));
  std::vector<double> logits;
  for (size_t r = 0; r < s.rows; ++r) {
    double sum = 0;
    for (size_t j = 0; j < s.classes; ++j) {
      logits.push_back(*z.at(r, j));
      sum += std::exp(logits.back());
    }
    *lse.at(0, r) = static_cast<float>(std::log(sum) + (random() % 2 ? 0 : 3));  // other tiles hold the rest
  }
  const size_t row = random() % s.rows;
  PlanPerturbation(z.at(row, random() % s.classes), 4 * 2e-6 * std::max(*weight.at(0, row), 1e-6f));
  ops.cross_entropy_gradient({.z_RN = z.data(),
                              .ldz = z.ld(),
                              .target_R = target.data(),
                              .lse_R = lse.data(),
                              .weight_R = weight.data(),
                              .rows = s.rows,
                              .n = s.classes,
                              .first = first});
  ErrorMeter meter;
  for (size_t r = 0; r < s.rows; ++r) {
    const double w = *weight.at(0, r);
    for (size_t j = 0; j < s.classes; ++j) {
      const double hit = target[r] == first + static_cast<int32_t>(j) ? 1 : 0;
      const double expected = w == 0 ? 0 : (std::exp(logits[r * s.classes + j] - *lse.at(0, r)) - hit) * w;
      meter.Add(*z.at(r, j), expected, 2e-6 * w);
    }
  }
  EXPECT_TRUE(z.GuardsIntact() && lse.GuardsIntact() && weight.GuardsIntact());
  return meter.worst();
}

// Checks the exponentials of a tile in place, after a tile that raised or did not raise the maximum, and the gradient
// made from them.
double CheckCachedExponentials(const OpTable& ops, const Logits& s, uint64_t seed) {
  std::mt19937_64 random(seed);
  GuardedMatrix z(s.rows, s.classes, s.classes + s.pad), stats(3, s.rows, s.rows);
  z.Fill(random, std::normal_distribution<float>(0, s.spread));
  if (s.classes > 1) *z.at(0, 1) = -kInfinity;
  std::vector<float> logits, lse, weight;
  std::vector<int32_t> target;
  for (size_t r = 0; r < s.rows; ++r) {
    for (size_t j = 0; j < s.classes; ++j) logits.push_back(*z.at(r, j));
    *stats.at(0, r) = s.spread * static_cast<float>(static_cast<int>(random() % 5) - 2);
    *stats.at(1, r) = 1;
    target.push_back(static_cast<int32_t>(random() % (s.classes + 1)) - 1);
    weight.push_back(s.rows > 1 && r == 1 ? 0 : 0.5f + static_cast<float>(random() % 8));
  }
  ops.softmax_stats({.z_RN = z.data(),
                     .ldz = z.ld(),
                     .target_R = target.data(),
                     .max_R = stats.at(0, 0),
                     .sum_R = stats.at(1, 0),
                     .target_logit_R = stats.at(2, 0),
                     .rows = s.rows,
                     .n = s.classes,
                     .first = 0,
                     .exp_RN = z.data()});
  ErrorMeter meter;
  for (size_t r = 0; r < s.rows; ++r) {
    lse.push_back(static_cast<float>(*stats.at(0, r) + std::log(*stats.at(1, r))) + 1.5f);  // of the later tiles
    if (target[r] >= 0) {
      EXPECT_EQ(*stats.at(2, r), logits[r * s.classes + static_cast<size_t>(target[r])]);
    }
    for (size_t j = 0; j < s.classes; ++j) {
      const double below = double{logits[r * s.classes + j]} - *stats.at(0, r), expected = std::exp(below);
      meter.Add(*z.at(r, j), expected, expected == 0 ? 1e-37 : 3e-7 * (1 - below) * expected + 2e-35);
    }
  }
  const size_t row = random() % s.rows;
  PlanPerturbation(z.at(row, random() % s.classes), 4 * 2e-6 * std::max(weight[row], 1e-6f));
  ops.cross_entropy_gradient({.z_RN = z.data(),
                              .ldz = z.ld(),
                              .target_R = target.data(),
                              .lse_R = lse.data(),
                              .weight_R = weight.data(),
                              .rows = s.rows,
                              .n = s.classes,
                              .first = 0,
                              .max_R = stats.at(0, 0)});
  for (size_t r = 0; r < s.rows; ++r) {
    for (size_t j = 0; j < s.classes; ++j) {
      const double hit = target[r] == static_cast<int32_t>(j) ? 1 : 0;
      meter.Add(*z.at(r, j),
                weight[r] == 0 ? 0 : (std::exp(double{logits[r * s.classes + j]} - lse[r]) - hit) * weight[r],
                2e-6 * weight[r]);
    }
  }
  EXPECT_TRUE(z.GuardsIntact() && stats.GuardsIntact());
  return meter.worst();
}

// Checks the gradient of rows that are one tile, and the numbers from which the loss is made.
double CheckSoftmaxGradient(const OpTable& ops, const Logits& s, uint64_t seed) {
  std::mt19937_64 random(seed);
  GuardedMatrix z(s.rows, s.classes, s.classes + s.pad), stats(3, s.rows, s.rows);
  z.Fill(random, std::normal_distribution<float>(0, s.spread));
  stats.Fill(123);
  if (s.classes > 1) *z.at(0, 1) = -kInfinity;
  std::vector<float> weight;
  std::vector<int32_t> target;
  for (size_t r = 0; r < s.rows; ++r) {
    const bool counts = s.rows == 1 || r != 1;
    target.push_back(counts ? static_cast<int32_t>(random() % s.classes) : -1);
    weight.push_back(counts ? 0.5f + static_cast<float>(random() % 8) : 0.0f);
  }
  if (s.rows > 1) *z.at(1, 0) = kNan;
  std::vector<double> logits, lse;
  for (size_t r = 0; r < s.rows; ++r) {
    double largest = -kInfinity, sum = 0;
    for (size_t j = 0; j < s.classes; ++j) {
      logits.push_back(*z.at(r, j));
      largest = std::max(largest, logits.back());
    }
    for (size_t j = 0; j < s.classes; ++j) sum += std::exp(logits[r * s.classes + j] - largest);
    lse.push_back(largest + std::log(sum));
  }
  const auto tolerance = [&](size_t r) {
    return weight[r] == 0 ? 1e-12 : 2e-6 * std::max(1.0, std::abs(lse[r])) * weight[r];
  };
  const size_t row = random() % s.rows;
  PlanPerturbation(z.at(row, random() % s.classes), 4 * tolerance(row));
  ops.softmax_gradient({.z_RN = z.data(),
                        .ldz = z.ld(),
                        .target_R = target.data(),
                        .weight_R = weight.data(),
                        .max_R = stats.at(0, 0),
                        .sum_R = stats.at(1, 0),
                        .target_logit_R = stats.at(2, 0),
                        .rows = s.rows,
                        .n = s.classes});
  ErrorMeter meter;
  for (size_t r = 0; r < s.rows; ++r) {
    const double* of_row = logits.data() + r * s.classes;
    for (size_t j = 0; j < s.classes; ++j) {
      const double hit = target[r] == static_cast<int32_t>(j) ? 1 : 0;
      meter.Add(*z.at(r, j), weight[r] == 0 ? 0 : (std::exp(of_row[j] - lse[r]) - hit) * weight[r], tolerance(r));
    }
    if (weight[r] == 0) {
      EXPECT_TRUE(*stats.at(0, r) == 123 && *stats.at(1, r) == 123 && *stats.at(2, r) == 123);
      continue;
    }
    EXPECT_NEAR(*stats.at(0, r) + std::log(static_cast<double>(*stats.at(1, r))), lse[r],
                2e-6 * std::max(1.0, std::abs(lse[r])));
    EXPECT_EQ(*stats.at(2, r), static_cast<float>(of_row[target[r]]));
  }
  EXPECT_TRUE(z.GuardsIntact() && stats.GuardsIntact());
  return meter.worst();
}

template <auto kEntry, class Check>
void HoldSoftmaxToContract(uint64_t usual_seed, Check check) {
  std::mt19937_64 random(TestSeed(usual_seed));
  for (const OpTable* ops : TestedOps()) {
    if (ops->*kEntry == nullptr) continue;  // the host's tables lack some
    const OpTable perturbed = PerturbedTable<kEntry>(*ops);
    double worst = 0;
    for (size_t classes : {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 100, 256, 777}) {
      for (float spread : {0.1f, 1.0f, 10.0f, 60.0f}) {
        const Logits s{1 + random() % 9, classes, random() % 4, spread};
        const uint64_t seed = random();
        SCOPED_TRACE(testing::Message() << ops->name << ": rows " << s.rows << ", classes " << classes << ", spread "
                                        << spread);
        const double error = check(*ops, s, seed);
        EXPECT_LE(error, 1);
        worst = std::max(worst, error);
        EXPECT_GT(check(perturbed, s, seed), 1) << "a wrong element went unnoticed";
      }
    }
    std::cout << ops->name << ": largest error " << worst << " of the tolerance\n";
  }
}

TEST(SoftmaxStats, EveryTableStaysWithinContract) {
  HoldSoftmaxToContract<&OpTable::softmax_stats>(6, CheckSoftmaxStats);
}

TEST(CrossEntropyGradient, EveryTableStaysWithinContract) {
  HoldSoftmaxToContract<&OpTable::cross_entropy_gradient>(7, CheckCrossEntropyGradient);
}

TEST(CrossEntropyGradient, KeptExponentialsGiveItToo) {
  HoldSoftmaxToContract<&OpTable::cross_entropy_gradient>(8, CheckCachedExponentials);
}

TEST(SoftmaxGradient, EveryTableStaysWithinContract) {
  HoldSoftmaxToContract<&OpTable::softmax_gradient>(9, CheckSoftmaxGradient);
}

// Numbers below 1.2e-38 would make the products after it a hundred times slower.
TEST(CrossEntropyGradient, KeptExponentialsGiveNoSubnormalNumbers) {
  for (const OpTable* ops : TestedOps()) {
    if (ops == &ReferenceOps()) continue;
    std::vector<float> z;
    for (size_t j = 0; j < 100; ++j) z.push_back(-static_cast<float>(j));
    const std::vector<int32_t> target = {-1};
    std::vector<float> max = {-kInfinity}, sum = {0}, target_logit = {0};
    ops->softmax_stats({.z_RN = z.data(),
                        .ldz = 100,
                        .target_R = target.data(),
                        .max_R = max.data(),
                        .sum_R = sum.data(),
                        .target_logit_R = target_logit.data(),
                        .rows = 1,
                        .n = 100,
                        .first = 0,
                        .exp_RN = z.data()});
    for (const float later : {0.0f, 20.0f, 79.0f, 100.0f, 300.0f}) {
      std::vector<float> gradient = z;
      const std::vector<float> lse = {max[0] + std::log(sum[0]) + later}, weight = {0.5f};
      ops->cross_entropy_gradient({.z_RN = gradient.data(),
                                   .ldz = 100,
                                   .target_R = target.data(),
                                   .lse_R = lse.data(),
                                   .weight_R = weight.data(),
                                   .rows = 1,
                                   .n = 100,
                                   .first = 0,
                                   .max_R = max.data()});
      for (size_t j = 0; j < 100; ++j) {
        const double expected = 0.5 * std::exp(-static_cast<double>(j) - lse[0]);
        EXPECT_NE(std::fpclassify(gradient[j]), FP_SUBNORMAL) << ops->name << ", " << j << " below, lse " << lse[0];
        EXPECT_NEAR(gradient[j], expected, 1e-5 * expected + 2e-35)
            << ops->name << ", " << j << " below, lse " << lse[0];
      }
    }
  }
}

TEST(Softmax, NoRowsAndNoClassesTouchNothing) {
  for (const OpTable* ops : TestedOps()) {
    GuardedMatrix z(3, 0, 4), stats(3, 3, 3);
    const int32_t target[] = {0, 1, 2};
    stats.Fill(7);
    for (size_t rows : {0, 3}) {
      const size_t n = rows == 0 ? 5 : 0;
      ops->softmax_stats({.z_RN = z.data(),
                          .ldz = 4,
                          .target_R = target,
                          .max_R = stats.at(0, 0),
                          .sum_R = stats.at(1, 0),
                          .target_logit_R = stats.at(2, 0),
                          .rows = rows,
                          .n = n,
                          .first = 0});
      ops->cross_entropy_gradient({.z_RN = z.data(),
                                   .ldz = 4,
                                   .target_R = target,
                                   .lse_R = stats.at(0, 0),
                                   .weight_R = stats.at(1, 0),
                                   .rows = rows,
                                   .n = n,
                                   .first = 0});
    }
    EXPECT_TRUE(z.GuardsIntact());
    for (size_t i = 0; i < 9; ++i) EXPECT_EQ(*stats.at(i / 3, i % 3), 7);
  }
}

TEST(Softmax, NothingIsReadOrWrittenPastTheEndOfABuffer) {
  for (const OpTable* ops : TestedOps()) {
    for (size_t rows : {1, 3, 17}) {
      for (size_t n : kTestSizes) {
        for (bool kept : {false, true}) {
          PageEndFloats z(rows * n), max(rows), sum(rows), target_logit(rows);
          const std::vector<int32_t> target(rows, 0);
          ops->softmax_stats({.z_RN = z.data(),
                              .ldz = n,
                              .target_R = target.data(),
                              .max_R = max.data(),
                              .sum_R = sum.data(),
                              .target_logit_R = target_logit.data(),
                              .rows = rows,
                              .n = n,
                              .first = 0,
                              .exp_RN = kept ? z.data() : nullptr});
          ops->cross_entropy_gradient({.z_RN = z.data(),
                                       .ldz = n,
                                       .target_R = target.data(),
                                       .lse_R = max.data(),
                                       .weight_R = sum.data(),
                                       .rows = rows,
                                       .n = n,
                                       .first = 0,
                                       .max_R = kept ? max.data() : nullptr});
        }
      }
    }
  }
}

// Small probabilities are as exact as large ones, although the contract only asks for an absolute bound.
TEST(CrossEntropyGradient, ProbabilitiesKeepTheirRelativePrecision) {
  for (const OpTable* ops : TestedOps()) {
    constexpr size_t kCount = 400000;
    std::vector<float> x(kCount), z;
    for (size_t i = 0; i < kCount; ++i) x[i] = -80.0f * static_cast<float>(i) / kCount;
    z = x;
    const std::vector<int32_t> target = {-1};
    const std::vector<float> lse = {0}, weight = {1};
    ops->cross_entropy_gradient({.z_RN = z.data(),
                                 .ldz = kCount,
                                 .target_R = target.data(),
                                 .lse_R = lse.data(),
                                 .weight_R = weight.data(),
                                 .rows = 1,
                                 .n = kCount,
                                 .first = 0});
    ErrorMeter meter;
    for (size_t i = 0; i < kCount; ++i) meter.Add(z[i], std::exp(static_cast<double>(x[i])), 1e-7 * std::exp(x[i]));
    EXPECT_LE(meter.worst(), 1) << ops->name;
    std::cout << ops->name << ": largest relative error of exp " << meter.worst() * 1e-7 << "\n";
  }
}

// A diverged record must be recognisable: later code tests its norm.
TEST(Softmax, NanLogitsReachTheSumAndTheGradient) {
  for (const OpTable* ops : TestedOps()) {
    for (size_t n : {5, 16, 70}) {
      for (size_t i = 0; i < 6; ++i) {
        const size_t at = std::array{size_t{0}, n / 2, n - 1}[i / 2];
        const bool kept = i % 2 == 1;
        std::vector<float> z(n, 0.5f);
        z[at] = kNan;
        std::vector<float> max = {-kInfinity}, sum = {0}, target_logit = {0};
        const std::vector<int32_t> target = {0};
        ops->softmax_stats({.z_RN = z.data(),
                            .ldz = n,
                            .target_R = target.data(),
                            .max_R = max.data(),
                            .sum_R = sum.data(),
                            .target_logit_R = target_logit.data(),
                            .rows = 1,
                            .n = n,
                            .first = 0,
                            .exp_RN = kept ? z.data() : nullptr});
        EXPECT_TRUE(std::isnan(max[0] + std::log(sum[0]))) << ops->name << ", " << at << " of " << n;
        const std::vector<float> lse = {2}, weight = {1};
        ops->cross_entropy_gradient({.z_RN = z.data(),
                                     .ldz = n,
                                     .target_R = target.data(),
                                     .lse_R = lse.data(),
                                     .weight_R = weight.data(),
                                     .rows = 1,
                                     .n = n,
                                     .first = 0,
                                     .max_R = kept ? max.data() : nullptr});
        EXPECT_TRUE(std::isnan(z[at])) << ops->name << ", " << at << " of " << n;
      }
    }
  }
}

}  // namespace
}  // namespace wisp::kernels::softmax_test
