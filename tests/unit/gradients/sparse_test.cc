// DP-FEST and DP-AdaFEST: masked rows on both paths, the contribution map's survivors, sampled softmax.
// sparse_training_test.cc tests training by rows.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "runtime/methods/sparse/sparse_gradients.h"
#include "runtime/layers/packed_weights.h"
#include "runtime/train/negative_sampler.h"
#include "runtime/train/popularity.h"
#include "runtime/train/privacy_plan.h"
#include "runtime/methods/sparse/contribution_map.h"
#include "tests/unit/gradients/gradient_test_util.h"
#include "tests/unit/layers/parameter_names.h"

namespace wisp::sparse_test {
namespace {

using privacy::RandomStream;
using privacy::StreamPurpose;
using test::RandomRecord;
using test::RandomWeights;

// Returns the gradient of the sum at flat coordinates; rows outside the set are zero.
std::vector<double> Flatten(const Architecture& a, const RowSet& rows, std::span<const float> sum) {
  const auto parameters = ListParameters(a);
  const TrainedSet trained = test::AllTrained(parameters);
  const SparseLayout layout(parameters, trained);
  std::vector<double> flat(FlatSize(parameters), 0.0);
  for (uint32_t p : trained.parameters().subspan(1)) {
    for (size_t i = 0; i < parameters[p].size(); ++i) flat[parameters[p].offset + i] = sum[layout.dense(p) + i];
  }
  for (size_t slot = 0; slot < rows.size(); ++slot) {
    for (size_t k = 0; k < a.width; ++k)
      flat[static_cast<size_t>(rows.rows()[slot]) * a.width + k] = sum[layout.slot(slot) + k];
  }
  return flat;
}

void Mask(const Architecture& a, const RowSet& rows, std::vector<double>& gradient) {
  for (size_t i = 0; i < size_t{a.num_items} * a.width; ++i) {
    if (rows.slot(static_cast<int32_t>(i / a.width)) < 0) gradient[i] = 0;
  }
}

double Distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

// A record's norm and gradient, as the sink gives them.
struct Seen {
  double norm;
  std::vector<double> gradient;
};

Seen RunRecord(const Architecture& a, const std::vector<float>& weights, const kernels::OpTable& ops,
               const Record& record, const RowSet& rows, const ClipRule& clip,
               std::span<const int32_t> negatives = {}) {
  const Recommender graph(a, ops, {.num_negatives = negatives.size()});
  Buffers buffers = graph.AllocateForTraining();
  const PackedWeights packed(graph, weights.data());
  std::vector<float> gathered, bias;
  for (int32_t n : negatives) {
    gathered.insert(gathered.end(), weights.begin() + n * a.width, weights.begin() + (n + 1) * a.width);
    const size_t b = test::FindIndex(graph.parameters(), "output_bias");
    const float learned = b == graph.parameters().size() ? 0 : weights[graph.parameters()[b].offset + n];
    bias.push_back(std::log(static_cast<float>(a.num_items) / negatives.size()) + learned);
  }
  AlignedArray<float> packed_negatives(ops.packed_size(negatives.size(), a.width));
  ops.pack_weights({.w_NK = gathered.data(),
                    .ldw = a.width,
                    .packed = packed_negatives.data(),
                    .n = negatives.size(),
                    .k = a.width});
  const Negatives view_negatives{negatives, negatives.data(), gathered.data(), packed_negatives.data(), bias.data()};
  RecordContext context{.weights = packed.view(), .buffers = buffers, .negatives = &view_negatives};
  const TrainedSet trained = test::AllTrained(graph.parameters());
  const SparseLayout layout(graph.parameters(), trained);
  FloatGradientSum sum(ops, layout.size(rows.size()), 1);
  SparseGradients gradients(ops,
                            {.parameters = graph.parameters(),
                             .trained = trained,
                             .max_rows = a.max_length,
                             .worker = 0,
                             .norms_head_rows = a.head.temperature > 0},
                            rows, clip, sum);
  double targets = 0;
  for (int32_t id : record.targets) targets += id >= 0;
  RecordOutcome outcome;
  for (int twice = 0; twice < 2; ++twice) {  // nothing of the first record may remain
    sum.Clear();
    RecordPass pass(graph);
    pass.Push(record, {.target_weight = static_cast<float>(1 / targets)});
    outcome = pass.Run(context, gradients)[0].gradient;
  }
  return {outcome.norm, Flatten(a, rows, sum.sum())};
}

std::vector<Architecture> TiedArchitectures() {
  std::vector<Architecture> tied;
  for (const Architecture& a : test::SmallArchitectures()) {
    if (a.head.output_table == OutputTable::kTied) tied.push_back(a);
  }
  return tied;
}

class Sparse : public ::testing::TestWithParam<size_t> {};

TEST_P(Sparse, MaskedGradientAndNormEqualDualNumbers) {
  const Architecture a = TiedArchitectures()[GetParam()];
  const std::vector<float> weights = RandomWeights(a, 21);
  for (const auto& record : {RandomRecord(a.num_items, a.max_length, 4), RandomRecord(a.num_items, a.max_length, 4, 2),
                             test::EndsRecord(a.num_items)}) {
    const std::vector<double> naive = test::NaiveGradient(a, weights, record.view());
    for (const std::vector<int32_t>& kept :
         {std::vector<int32_t>{0, 2, 5}, std::vector<int32_t>{}, std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}}) {
      RowSet rows(a.num_items);
      for (int32_t row : kept) rows.Insert(row);
      std::vector<double> expected = naive;
      Mask(a, rows, expected);
      const double norm = test::Norm(expected);
      for (const kernels::OpTable* ops : kernels::AllOps()) {
        const Seen none = RunRecord(a, weights, *ops, record.view(), rows, ClipRule::None());
        EXPECT_LT(Distance(none.gradient, expected), 2e-5 * test::Norm(naive)) << ops->name;
        // Clipping comes after masking: the bound is met with equality, not undercut by what the mask removed.
        const Seen clipped = RunRecord(a, weights, *ops, record.view(), rows, ClipRule::Flat(0.1 * norm));
        EXPECT_NEAR(clipped.norm, norm, 1e-5 * norm) << ops->name;
        EXPECT_NEAR(test::Norm(clipped.gradient), 0.1 * norm, 1e-5 * norm) << ops->name;
      }
    }
  }
}

TEST_P(Sparse, SampledSoftmaxEqualsDualNumbers) {
  const Architecture a = TiedArchitectures()[GetParam()];
  if (a.head.temperature > 0) GTEST_SKIP() << "a sampled softmax of cosines is not offered";
  const std::vector<float> weights = RandomWeights(a, 22);
  const std::pair<test::OwnedRecord, std::vector<int32_t>> cases[] = {
      {RandomRecord(a.num_items, a.max_length, 6, 1), {1, 3, 4, 8}}, {test::EndsRecord(a.num_items), {0, 3, 4, 8}}};
  for (const auto& [record, negatives] : cases) {
    const std::vector<double> naive = test::NaiveGradient(a, weights, record.view(), negatives);
    for (const std::vector<int32_t>& kept :
         {std::vector<int32_t>{1, 3, 4, 8}, std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8},
          std::vector<int32_t>{3, 5}}) {
      RowSet rows(a.num_items);
      for (int32_t row : kept) rows.Insert(row);
      std::vector<double> expected = naive;
      Mask(a, rows, expected);
      for (const kernels::OpTable* ops : kernels::AllOps()) {
        const Seen seen = RunRecord(a, weights, *ops, record.view(), rows, ClipRule::Flat(1e9), negatives);
        EXPECT_LT(Distance(seen.gradient, expected), 2e-5 * test::Norm(naive)) << ops->name;
        EXPECT_NEAR(seen.norm, test::Norm(expected), 1e-5 * test::Norm(naive)) << ops->name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryTiedSwitch, Sparse, ::testing::Range<size_t>(0, TiedArchitectures().size()));

// ---- The contribution map ----

// Returns the upper end of chi-square with `n` degrees of freedom at about 1e-6 (Wilson and Hilferty).
double ChiSquareLimit(double n) { return n * std::pow(1 - 2 / (9 * n) + 4.75 * std::sqrt(2 / (9 * n)), 3); }

TEST(GeometricGaps, HaveTheExactDistribution) {
  for (double p : {0.9, 0.3, 0.01}) {
    const privacy::GeometricGaps gaps(p);
    RandomStream random = RandomStream::Reproducible(5, StreamPurpose::kNoise);
    const size_t draws = 40000, cells = 12, width = std::max<size_t>(1, static_cast<size_t>(1 / (3 * p)));
    std::vector<double> seen(cells + 1, 0.0);
    for (size_t i = 0; i < draws; ++i) seen[std::min<size_t>(cells, gaps.Next(random) / width)] += 1;
    double chi = 0;
    int used = 0;
    for (size_t c = 0; c <= cells; ++c) {
      const double share = std::pow(1 - p, c * width) - (c == cells ? 0 : std::pow(1 - p, (c + 1) * width));
      if (share * draws < 1) continue;
      chi += std::pow(seen[c] - share * draws, 2) / (share * draws);
      ++used;
    }
    EXPECT_LT(chi, ChiSquareLimit(used)) << p;
  }
}

TEST(GeometricGaps, TinyChancesAreRareAndEndless) {
  RandomStream random = RandomStream::Reproducible(6, StreamPurpose::kNoise);
  const privacy::GeometricGaps gaps(privacy::kSmallestSuccess);
  for (int i = 0; i < 200; ++i) EXPECT_GT(gaps.Next(random), uint64_t{1} << 50);
}

// Compares the frequencies of every row with those of the dense mechanism, if no record, one or several touch it. Alpha
// 1e-6 each.
TEST(ContributionMap, SurvivorsHaveTheDenseDistribution) {
  const uint32_t num_rows = 40;
  const std::vector<std::vector<int32_t>> items = {{3, 4, 7, 9}, {3, 4}, {3, 20, 21, 22, 23, 24, 25, 26, 27}, {3}};
  std::vector<Record> records;
  for (const auto& i : items) records.push_back({i, i});
  std::vector<const Record*> batch;
  for (const Record& r : records) batch.push_back(&r);
  const double c1 = 1, sigma = 0.7, tau = 0.9;
  std::vector<double> counts(num_rows, 0.0);
  for (const auto& i : items) {
    for (int32_t row : i)
      counts[static_cast<size_t>(row)] += std::min(1.0, c1 / std::sqrt(static_cast<double>(i.size())));
  }
  for (bool masked : {false, true}) {
    RowSet allowed(num_rows);
    for (int32_t row : {1, 3, 7, 8, 30, 31, 39}) allowed.Insert(row);
    std::vector<double> mean = counts;
    if (masked) {  // the norm is that of the rest after masking
      std::fill(mean.begin(), mean.end(), 0.0);
      mean[3] = 1 / std::sqrt(2.0) + 3;
      mean[7] = 1 / std::sqrt(2.0);
    }
    ContributionMap map(num_rows, {.clipping_norm = c1, .threshold = tau, .noise_multiplier = sigma},
                        masked ? &allowed : nullptr);
    RandomStream noise = RandomStream::Reproducible(8, StreamPurpose::kNoise);
    const int runs = 4000;
    std::vector<double> seen(num_rows, 0.0), pairs(num_rows, 0.0);
    std::vector<int32_t> survivors;
    double chi = 0, chi_pairs = 0;
    int used = 0;
    for (int run = 0; run < runs; ++run) {
      map.Select(batch, noise, survivors);
      ASSERT_TRUE(std::is_sorted(survivors.begin(), survivors.end()));
      ASSERT_EQ(std::set<int32_t>(survivors.begin(), survivors.end()).size(), survivors.size());
      for (size_t i = 0; i < survivors.size(); ++i) {
        seen[static_cast<size_t>(survivors[i])] += 1;
        if (i > 0 && survivors[i] == survivors[i - 1] + 1) pairs[static_cast<size_t>(survivors[i])] += 1;
      }
    }
    const auto chance = [&](size_t row) {
      return masked && allowed.slot(static_cast<int32_t>(row)) < 0 ? 0 : privacy::UpperTail((tau - mean[row]) / sigma);
    };
    for (size_t row = 0; row < num_rows; ++row) {
      const double p = chance(row);
      if (p == 0) {
        EXPECT_EQ(seen[row], 0) << "row " << row << " is outside of the mask";
        continue;
      }
      chi += std::pow(seen[row] - p * runs, 2) / (runs * p * (1 - p));
      ++used;
      if (row == 0) continue;
      const double both = p * chance(row - 1);  // neighbours are independent
      if (both > 0) chi_pairs += std::pow(pairs[row] - both * runs, 2) / (runs * both * (1 - both));
    }
    EXPECT_LT(chi, ChiSquareLimit(used)) << (masked ? "masked" : "all rows");
    EXPECT_LT(chi_pairs, ChiSquareLimit(used));
  }
}

// sigma1 = 2, C1 = 5, tau = 20: two deviations. The paper's appendix B.2 prints 0.4207.
TEST(ContributionMap, UntouchedRowsSurviveWithTheTailOfTheNoise) {
  const ContributionMap map(10000, {.clipping_norm = 5, .threshold = 20, .noise_multiplier = 2}, nullptr);
  EXPECT_NEAR(map.expected_false_rows() / 10000, 0.0228, 1e-4);
}

TEST(ContributionMap, OneRecordMovesTheMapByAtMostItsNorm) {
  for (size_t n : {1, 2, 9, 100}) {
    for (double c1 : {0.5, 1.0, 5.0}) {
      std::vector<int32_t> items(n);
      std::iota(items.begin(), items.end(), 0);
      const Record record{items, items};
      const Record* batch[] = {&record};
      // The noise is almost zero, so a row survives exactly if its contribution reaches the threshold.
      const double share = std::min(1.0, c1 / std::sqrt(static_cast<double>(n)));
      RandomStream noise = RandomStream::Reproducible(9, StreamPurpose::kNoise);
      std::vector<int32_t> survivors;
      ContributionMap below(200, {.clipping_norm = c1, .threshold = share * 0.999, .noise_multiplier = 1e-5}, nullptr);
      below.Select(batch, noise, survivors);
      EXPECT_EQ(survivors.size(), n);
      ContributionMap above(200, {.clipping_norm = c1, .threshold = share * 1.001, .noise_multiplier = 1e-5}, nullptr);
      above.Select(batch, noise, survivors);
      EXPECT_TRUE(survivors.empty());
    }
  }
}

TEST(ContributionMap, BadOptionsAreNamed) {
  EXPECT_TRUE(Validate(ContributionMapOptions{}).ok());
  EXPECT_NE(Validate(ContributionMapOptions{.threshold = 10}).message().find("threshold"), std::string::npos);
  EXPECT_FALSE(Validate(ContributionMapOptions{.clipping_norm = 0}).ok());
  EXPECT_FALSE(Validate(ContributionMapOptions{.noise_multiplier = NAN}).ok());
}

TEST(Sparse, NoisesOfThePairHaveTheCostOfOne) {
  for (double ratio : {0.2, 1.0, 5.0}) {
    const NoisePair pair = SplitNoise(1.3, ratio);
    EXPECT_NEAR(pair.map / pair.gradient, ratio, 1e-12);
    EXPECT_NEAR(1 / std::sqrt(1 / (pair.map * pair.map) + 1 / (pair.gradient * pair.gradient)), 1.3, 1e-12);
  }
}

TEST(Sparse, LargestRowsBreakTiesByIndex) {
  const std::vector<float> scores = {1, 5, 3, 5, -2};
  EXPECT_EQ(LargestRows(scores, 2), (std::vector<int32_t>{1, 3}));
  EXPECT_EQ(LargestRows(scores, 3), (std::vector<int32_t>{1, 2, 3}));
  EXPECT_EQ(LargestRows(scores, 99).size(), 5u);
}

TEST(NegativeSampler, DrawsDistinctItemsThatRepeatWithTheStep) {
  const UniformArchitecture a{.num_items = 50, .max_length = 4, .width = 8, .num_blocks = 0, .inner_width = 1};
  const Recommender graph(a, kernels::BestOps(), {.num_negatives = 20});
  const std::vector<float> weights = RandomWeights(a, 3);
  NegativeSampler sampler(graph, 20, 7);
  std::vector<double> seen(50, 0.0);
  std::vector<int32_t> third;
  for (uint64_t step = 0; step < 500; ++step) {
    sampler.Draw(step, weights.data());
    const auto items = sampler.negatives().items;
    ASSERT_EQ(std::set<int32_t>(items.begin(), items.end()).size(), 20u);
    for (int32_t item : items) seen[static_cast<size_t>(item)] += 1;
    if (step == 3) third.assign(items.begin(), items.end());
  }
  for (double s : seen) EXPECT_NEAR(s, 200, 60);
  sampler.Draw(3, weights.data());
  EXPECT_TRUE(std::equal(third.begin(), third.end(), sampler.negatives().items.begin()));
  EXPECT_EQ(sampler.negatives().rows_KD[0], weights[static_cast<size_t>(third[0]) * 8]);
  // Each stands for 50 / 20 items.
  for (size_t i = 0; i < 20; ++i) EXPECT_FLOAT_EQ(sampler.negatives().bias_K[i], std::log(2.5f));
}

// Touched rows get integer noise, which is a rounded Gaussian: an untouched row reaches `t` steps where the Gaussian
// reaches t - 1/2. With 64 steps of noise the half step shows.
TEST(ContributionMapTest, UntouchedRowsSurviveLikeTouchedRowsWithoutACount) {
  const double steps = 0x1p-30;
  const ContributionMap map(1000, {.clipping_norm = 1, .threshold = 64 * steps, .noise_multiplier = 64 * steps},
                            nullptr);
  ASSERT_EQ(map.sigma_in_steps(), 64u);
  double all = 0, survive = 0;
  for (int x = -1000; x <= 1000; ++x) {
    const double weight = std::exp(-x * x / (2.0 * 64 * 64));
    all += weight;
    survive += x >= 64 ? weight : 0;
  }
  EXPECT_NEAR(map.expected_false_rows() / 1000 / (survive / all), 1, 1e-4);
}

}  // namespace
}  // namespace wisp::sparse_test
