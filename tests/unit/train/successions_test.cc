// Noised counts of pairs of items: what a record adds, what is charged, where noise falls, and how scores follow.
#include "runtime/train/successions.h"

#include <cmath>
#include <map>
#include <random>

#include "runtime/layers/packed_weights.h"
#include "runtime/privacy/noise/discrete_gaussian.h"
#include "runtime/train/count_grid.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::successions_test {
namespace {

using Pair = std::pair<int32_t, int32_t>;
using Counts = std::map<Pair, double>;

class Successions : public test::RingTraining {
 protected:
  static constexpr double kAlmostNone = 1e-3;  // noise that the counts are read through
  Successions() : RingTraining(40) {}

  Result<std::vector<SuccessionCount>> Release(std::span<const Record> records, double noise, uint64_t seed = 1) {
    privacy::RandomStream stream = privacy::RandomStream::Reproducible(seed, privacy::StreamPurpose::kNoise);
    return PrivateSuccessions(records, kItems, {.noise_multiplier = noise, .ledger = &ledger_, .run = "run"}, stream);
  }
  // Returns the counts of records of these items, read through noise that is small beside it.
  Counts Read(const std::vector<std::vector<int32_t>>& sequences) {
    std::vector<Record> records;
    for (const std::vector<int32_t>& s : sequences)
      records.push_back({std::span(s).first(s.size() - 1), std::span(s).subspan(1)});
    const auto released = Release(records, kAlmostNone);
    EXPECT_TRUE(released.ok()) << released.status().message();
    Counts counts;
    for (const SuccessionCount& c : *released) {
      if (c.count > 0.02) counts[{c.from, c.to}] = c.count;  // more than the noise alone makes
    }
    return counts;
  }
  static void ExpectShares(const Counts& counts, const std::vector<Pair>& pairs) {
    EXPECT_EQ(counts.size(), pairs.size());
    for (const Pair& pair : pairs) {
      ASSERT_TRUE(counts.contains(pair)) << pair.first << " to " << pair.second;
      EXPECT_NEAR(counts.at(pair), 1 / std::sqrt(static_cast<double>(pairs.size())), 0.01);
    }
  }

  static constexpr uint32_t kItems = kSmall.num_items;
  privacy::Ledger ledger_ = OpenLedger("l");
};

TEST_F(Successions, ARecordAddsTheSameToEachOfItsPairs) {
  ExpectShares(Read({{3, 4, 9, 7, 1}}), {{3, 4}, {4, 9}, {9, 7}, {7, 1}});
  ExpectShares(Read({{3, 4, 3, 4, 3, 4, 5}}), {{3, 4}, {4, 5}});
  ExpectShares(Read({{6, 6, 6, 8}}), {{6, 8}});
  ExpectShares(Read({{-1, -1, 5, 6, 30, 7, 1000000, -2, 8}}), {{5, 6}});
  EXPECT_TRUE(Read({{-1, 3}, {40, 50}, {2, 2}}).empty());
}

// The sensitivity: a record that joins moves all counts together by at most 1, whatever the other records are.
TEST_F(Successions, ARecordMovesAllCountsByAtMostOne) {
  for (size_t n = 1; n < 3000; ++n) {
    const auto share = static_cast<unsigned __int128>(CountShare(n));
    EXPECT_LE(share * share * n, static_cast<unsigned __int128>(1) << 60) << n;
    EXPECT_GT(static_cast<double>(CountShare(n)) * std::sqrt(static_cast<double>(n)), 0.99999 * kCountSteps) << n;
  }
  std::mt19937 random(5);
  for (int round = 0; round < 40; ++round) {
    std::vector<std::vector<int32_t>> sequences(3);
    for (auto& s : sequences) {
      for (size_t length = 2 + random() % 12; s.size() < length;) s.push_back(static_cast<int32_t>(random() % 8) - 1);
      s.insert(s.end(), 2, 3);
    }
    Counts moved = Read(sequences);
    sequences.pop_back();
    for (const auto& [pair, count] : Read(sequences)) moved[pair] -= count;
    double norm = 0;
    for (const auto& [pair, change] : moved) norm += change * change;
    EXPECT_LE(norm, 1.05) << "round " << round;
  }
}

TEST_F(Successions, ChargeComesFirst) {
  privacy::RandomStream secure = *privacy::RandomStream::Secure(),
                        stream = privacy::RandomStream::Reproducible(1, privacy::StreamPurpose::kNoise),
                        untouched = privacy::RandomStream::Reproducible(1, privacy::StreamPurpose::kNoise);
  SuccessionOptions options{.noise_multiplier = 2, .ledger = nullptr, .run = "run"};
  EXPECT_EQ(PrivateSuccessions(ring_.records, kItems, options, stream).status().code(), StatusCode::kPrivacyRefused);
  ASSERT_TRUE(ledger_.SetLimit(*privacy::EpsilonDelta::Create(1, 1e-5)).ok());
  options.ledger = &ledger_;
  for (privacy::RandomStream* noise : {&secure, &stream})
    EXPECT_EQ(PrivateSuccessions(ring_.records, kItems, options, *noise).status().code(), StatusCode::kPrivacyRefused);
  for (const double noise : {0.0, -1.0, std::nan(""), 1e300}) {
    options.noise_multiplier = noise;
    EXPECT_EQ(PrivateSuccessions(ring_.records, kItems, options, stream).status().code(), StatusCode::kInvalidArgument);
  }
  EXPECT_TRUE(ledger_.Entries()->empty());
  std::vector<int64_t> a(4), b(4);
  privacy::AddDiscreteGaussian(stream, 1 << 20, a);
  privacy::AddDiscreteGaussian(untouched, 1 << 20, b);
  EXPECT_EQ(a, b) << "nothing was counted or noised";

  options.noise_multiplier = 20;
  ASSERT_TRUE(PrivateSuccessions(ring_.records, kItems, options, secure).ok());
  const auto entries = *ledger_.Entries();
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].purpose, kSuccessionsPurpose);
  EXPECT_EQ(entries[0].mechanism, SuccessionCharge(options, kItems, privacy::NoiseKind::kSecure)->mechanism);
  EXPECT_EQ(entries[0].mechanism.steps(), 1u);
}

// One pair of an item is above the threshold by chance, also where nobody chose it.
TEST_F(Successions, NoiseFallsOnPairsThatNobodyChose) {
  constexpr int kReleases = 40;
  double kept = 0, most = 0;
  std::vector<bool> had(kItems);
  for (uint64_t seed = 0; seed < kReleases; ++seed) {
    for (const SuccessionCount& c : *Release({}, 3, seed)) {
      kept += 1.0 / kReleases;
      most = std::max(most, static_cast<double>(c.count));
      had[static_cast<size_t>(c.from)] = true;
    }
  }
  EXPECT_NEAR(kept, kItems, 4.0) << "five standard deviations are 4.3";
  EXPECT_GT(most, 3.0) << "a standard deviation above the threshold";
  EXPECT_EQ(std::count(had.begin(), had.end(), true), kItems);
}

TEST_F(Successions, CountsAreWhatIsAboveTheThreshold) {
  std::vector<std::vector<int32_t>> sequences(100, {1, 2});
  std::vector<Record> records;
  for (const auto& s : sequences) records.push_back({std::span(s).first(1), std::span(s).last(1)});
  double sum = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<SuccessionCount> counts = *Release(records, 4, seed);
    EXPECT_TRUE(std::is_sorted(counts.begin(), counts.end(),
                               [](const auto& a, const auto& b) { return Pair(a.from, a.to) < Pair(b.from, b.to); }));
    for (const SuccessionCount& c : counts) {
      EXPECT_GT(c.count, 0);
      if (Pair(c.from, c.to) == Pair(1, 2)) sum += static_cast<double>(c.count) / 50;
    }
  }
  // A Gaussian exceeds 1.834 deviations once in 30.
  EXPECT_NEAR(sum, 100 - 1.834 * 4, 3.0);
}

TEST_F(Successions, ScoresRiseByTheModelsOwnProbability) {
  const auto graph = MakeModelView(kSmall, kernels::Device(kernels::BestOps()), {.use = GraphUse::kInference});
  const ParameterSource source(start_.data());
  const PackedWeights weights(*graph, source);
  const std::vector<SuccessionCount> counts = {{2, 5, 3.0f}, {2, 7, 0.5f}, {4, 1, 2.0f}, {9, 1, 1.0f}};
  const std::vector<int32_t> untrained = {4};
  const ModelLists lists{.untrained = untrained};
  const std::vector<Succession> got = ScoreSuccessions(*graph, weights.view(), lists, counts, 2);
  ASSERT_EQ(got.size(), counts.size());
  const Buffers buffers = graph->AllocateForInference();
  const KeyValueCache cache = graph->AllocateCache(CacheBlocks::kInTurn);
  RecordContext context{.weights = weights.view(), .buffers = buffers, .cache = &cache};
  std::vector<float> scores(kItems);
  for (size_t i = 0; i < counts.size(); ++i) {
    const SuccessionCount& c = counts[i];
    if (c.from == 4) {
      graph->ScoreColdStart(context, lists, scores.data(), scores.data());
    } else {
      graph->Score(context, {&c.from, 1}, scores.data());
    }
    double sum = 0;
    for (const float score : scores) sum += std::exp(static_cast<double>(score));
    const double p = std::exp(static_cast<double>(scores[static_cast<size_t>(c.to)])) / sum;
    EXPECT_EQ(Pair(got[i].from, got[i].to), Pair(c.from, c.to));
    EXPECT_NEAR(got[i].score, 0.75 * std::log1p(static_cast<double>(c.count) / (5 * 2 * p)), 1e-4) << i;
  }
}

}  // namespace
}  // namespace wisp::successions_test
