// The ops of scoring on a device, for every table that has them: scores of packed tiles, and the best of many.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "tests/unit/kernels/kernel_test_util.h"

namespace wisp::kernels::scoring_test {
namespace {

constexpr size_t kTile = 256;

// Compares scores of n items in tiles with linear_forward of each tile alone.
double CheckScores(const OpTable& ops, size_t rows, size_t n, size_t k, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  Row x(rows * k, random, 1.0f), w(n * k, random, 1.0f), bias(n, random, 1.0f);
  const bool has_bias = seed % 2 == 0;
  const size_t stride = ops.packed_size(kTile, k), tiles = (n + kTile - 1) / kTile;
  std::vector<float> packed(tiles * stride + 1, NAN), expected((rows + 1) * n);
  GuardedMatrix y(rows, n, std::max<size_t>(n, 1));
  y.Fill(NAN);
  for (size_t tile = 0; tile < tiles; ++tile) {
    const size_t first = tile * kTile, count = std::min(kTile, n - first);
    ops.pack_weights(
        {.w_NK = w.data() + first * k, .ldw = k, .packed = packed.data() + tile * stride, .n = count, .k = k});
    ops.linear_forward({.x_RK = x.data(),
                        .ldx = k,
                        .packed = packed.data() + tile * stride,
                        .bias_N = has_bias ? bias.data() + first : nullptr,
                        .y_RN = expected.data() + first,
                        .ldy = n,
                        .rows = rows,
                        .n = count,
                        .k = k,
                        .store = Store::kAssign});
  }
  if (rows * n > 0) PlanPerturbation(y.at(rows - 1, n - 1), 1e-3);
  ops.score_tiles({.x_RK = x.data(),
                   .packed = packed.data(),
                   .tile = kTile,
                   .tile_stride = stride,
                   .bias_N = has_bias ? bias.data() : nullptr,
                   .y_RN = y.data(),
                   .rows = rows,
                   .n = n,
                   .k = k});
  ErrorMeter meter;
  for (size_t i = 0; i < rows * n; ++i) meter.Add(y.data()[i], expected[i], 1e-30);  // the same bits
  EXPECT_TRUE(y.GuardsIntact());
  return meter.worst();
}

TEST(ScoreTiles, AreTheProductsOfEachTile) {
  uint64_t seed = TestSeed(51);
  for (const OpTable* ops : TestedOps()) {
    if (ops->score_tiles == nullptr) continue;
    const OpTable perturbed = PerturbedTable<&OpTable::score_tiles>(*ops);
    for (const size_t n : {1, 255, 256, 257, 600}) {
      for (const size_t rows : {0, 1, 3, 8, 9, 40, 70}) {
        SCOPED_TRACE(::testing::Message() << ops->name << ", n " << n << ", rows " << rows);
        PlanNoPerturbation();
        EXPECT_LE(CheckScores(*ops, rows, n, 5 + seed % 40, seed), 1);
        if (rows > 0) {
          EXPECT_GT(CheckScores(perturbed, rows, n, 9, seed), 1) << "a wrong element went unnoticed";
        }
        ++seed;
      }
    }
  }
}

// Finds the expected best by sorting.
std::vector<Scored> Best(const float* scores, const std::vector<bool>& excluded, size_t k, bool& not_finite) {
  std::vector<Scored> all;
  not_finite = false;
  for (size_t j = 0; j < excluded.size(); ++j) {
    if (excluded[j]) continue;
    if (std::isfinite(scores[j])) {
      all.push_back({static_cast<int32_t>(j), scores[j]});
    } else {
      not_finite = true;
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Scored& a, const Scored& b) { return a.score > b.score; });
  all.resize(std::min(k, all.size()));
  return all;
}

// Variants: 0 scores that all differ; 1 few different ones, with zeros of both signs; 2 some that are not finite,
// excluded or not; 3 almost all excluded.
double CheckTopK(const OpTable& ops, size_t rows, size_t n, size_t k, int variant, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  const size_t words = (n + 31) / 32;
  Row scores(rows * n);
  BasicGuardedMatrix<Scored> best(rows, k, std::max<size_t>(k, 1));
  BasicGuardedMatrix<TopKSummary> summary(1, rows, std::max<size_t>(rows, 1));
  std::vector<uint32_t> excluded(rows * words + 1, 0);
  std::vector<std::vector<bool>> is_excluded(rows, std::vector<bool>(n));
  std::vector<uint64_t> scratch(ops.top_k_scratch_size(rows, n, k) + 1, ~uint64_t{0});
  constexpr float kFew[] = {0.0f, -0.0f, 1.5f, -2.0f};
  for (size_t r = 0; r < rows; ++r) {
    for (size_t j = 0; j < n; ++j) {
      float& score = scores.data()[r * n + j];
      score = variant == 1 ? kFew[random() % 4] : normal(random);
      if (variant == 2 && random() % (n + 1) == 0)
        score = random() % 2 == 0 ? NAN : std::numeric_limits<float>::infinity();
      is_excluded[r][j] = random() % (variant == 3 ? 10 : 4) != 0 ? variant == 3 : true;
      if (is_excluded[r][j]) excluded[r * words + j / 32] |= uint32_t{1} << (j % 32);
    }
  }
  if (rows > 0) PlanPerturbation(&summary.data()[rows - 1].count, 1);
  ops.top_k({.score_RN = scores.data(),
             .excluded_RW = excluded.data(),
             .best_RK = best.data(),
             .summary_R = summary.data(),
             .scratch = scratch.data(),
             .rows = rows,
             .n = n,
             .k = k});
  ErrorMeter meter;
  for (size_t r = 0; r < rows; ++r) {
    bool not_finite = false;
    const std::vector<Scored> expected = Best(scores.data() + r * n, is_excluded[r], k, not_finite);
    meter.Add(summary.data()[r].count, static_cast<double>(expected.size()), 1e-30);
    meter.Add(summary.data()[r].not_finite, not_finite ? 1 : 0, 1e-30);
    for (size_t i = 0; i < k; ++i) {
      const Scored wanted = i < expected.size() ? expected[i] : Scored{-1, 0};
      meter.Add(best.at(r, i)->item, wanted.item, 1e-30);
      meter.Add(best.at(r, i)->score, wanted.score, 1e-30);
    }
  }
  EXPECT_TRUE(scores.GuardsIntact() && best.GuardsIntact() && summary.GuardsIntact());
  return meter.worst();
}

TEST(TopK, KeepsTheBestThatAreNotExcluded) {
  Hold<&OpTable::top_k>(52, [](const OpTable& ops, size_t n, int variant, uint64_t seed) {
    if (ops.top_k == nullptr) return 0.0;
    return CheckTopK(ops, 1 + seed % 3, n, seed % 12, variant, seed);
  });
}

// Lists of several steps, and k as large as it may be.
TEST(TopK, ManyScores) {
  uint64_t seed = TestSeed(53);
  PlanNoPerturbation();
  for (const OpTable* ops : TestedOps()) {
    for (const size_t n : {511, 512, 513, 1100, 5000}) {
      for (const size_t k : {size_t{1}, size_t{10}, size_t{200}, kMostTopK}) {
        for (int variant = 0; variant < 4; ++variant) {
          SCOPED_TRACE(::testing::Message() << ops->name << ", n " << n << ", k " << k << ", variant " << variant);
          EXPECT_LE(CheckTopK(*ops, n < 1000 ? 2 : 1, n, k, variant, ++seed), 1);
        }
      }
    }
  }
}

}  // namespace
}  // namespace wisp::kernels::scoring_test
