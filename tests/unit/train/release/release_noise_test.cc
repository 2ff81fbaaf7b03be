// The noise of releases: it covers every coordinate of every worker, comes from the secure generator, and has the
// charged size.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>

#include "runtime/privacy/noise/discrete_gaussian.h"
#include "runtime/privacy/noise/exact_sum.h"
#include "runtime/train/popularity.h"
#include "runtime/train/run/job.h"
#include "runtime/train/trainer.h"
#include "tests/unit/layers/parameter_names.h"
#include "tests/unit/train/release/release_noise.h"
#include "tests/unit/train/run/ring_job.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::release_noise_test {
namespace {

using test::ExpectStandardNormal;
using test::ReleaseNoise;
using test::Way;

const std::vector<Way> kWays = test::Built<Way>({{"phantom", Method::kPhantom},
                                                 {"rgp", Method::kRgp},
                                                 {"fest", Method::kFest},
                                                 {"adafest", Method::kAdaFest},
                                                 {"adafest+", Method::kAdaFestPlus}});

TEST_F(ReleaseNoise, EveryCoordinateOfEveryMethodHasItsNoise) {
  for (const Way& way : kWays) {
    const std::vector<float> noise = GetNoise(Options(way));
    const double sigma = GradientNoise(Options(way));
    std::vector<double> z;
    for (size_t i : Moved(noise)) z.push_back(noise[i] / sigma);
    EXPECT_GT(z.size(), 14000u) << way.name;
    ExpectStandardNormal(z, way.name);
  }
}

// Two runs of one public seed share nothing: neither the noise of any worker, nor the sampled records. Two of 2e4
// floats of the same distribution are equal with a chance of 3e-8: three or more of them, 4e-11.
TEST_F(ReleaseNoise, NothingOfSecureNoiseFollowsFromTheSeed) {
  for (const Way& way : kWays) {
    const std::vector<float> a = GetNoise(Options(way)), b = GetNoise(Options(way));
    size_t equal = 0, both = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i] == 0 || b[i] == 0) continue;
      ++both;
      equal += a[i] == b[i];
    }
    EXPECT_GT(both, 11000u) << way.name;
    EXPECT_LE(equal, 2u) << way.name;
  }
}

// A batch of 59 people with a coin each: 20 counts in a row repeat with a chance below 1e-20.
TEST_F(ReleaseNoise, NothingOfSecureSamplingFollowsFromTheSeed) {
  std::vector<size_t> counts[2];
  for (auto& run : counts) {
    auto trainer = *Trainer::Create(kSmall, start_, ring_.records, Options(kWays[0]));
    for (int i = 0; i < 20; ++i) run.push_back(trainer->Step()->num_records);
  }
  EXPECT_NE(counts[0], counts[1]);
}

// The noise of one step differs from that of the next.
TEST_F(ReleaseNoise, NoStepRepeatsTheNoiseOfAnother) {
  auto trainer = *Trainer::Create(kSmall, std::vector<float>(start_.size(), 0.0f), {}, Options(kWays[0]));
  ASSERT_TRUE(trainer->Step().ok());
  const std::vector<float> first(trainer->weights().begin(), trainer->weights().end());
  ASSERT_TRUE(trainer->Step().ok());
  size_t equal = 0;
  for (size_t i = 0; i < first.size(); ++i) equal += first[i] != 0 && trainer->weights()[i] == 2 * first[i];
  EXPECT_LE(equal, 2u);
}

// Repeatable noise is charged as such: no ledger states an epsilon for it.
TEST_F(ReleaseNoise, RepeatableNoiseIsChargedAsSuch) {
  for (const Way& way : kWays) {
    TrainingOptions o = Options(way);
    if (!o.sparse.rows.empty()) o.sparse.rows = o.sparse.rows.first(5);  // a small table's
    ASSERT_TRUE((*Trainer::Create(kSmall, start_, {}, o))->Step().ok());
    EXPECT_EQ(ledger_.Entries()->back().noise, privacy::NoiseKind::kSecure) << way.name;
  }
  privacy::Ledger experiments = OpenLedger("experiments");
  TrainingOptions o = Options(kWays[0]);
  o.privacy.ledger = &experiments;
  o.privacy.reproducible_seed = 4;
  ASSERT_TRUE((*Trainer::Create(kSmall, start_, {}, o))->Step().ok());
  EXPECT_EQ(experiments.Entries()->back().noise, privacy::NoiseKind::kReproducible);
}

class HistogramNoise : public test::RingTraining {
 protected:
  HistogramNoise() : RingTraining(40) {}
  Popularity Release(std::span<const Record> records, double sigma) {
    auto noise = *privacy::RandomStream::Secure();
    return *PrivatePopularity(records, kItems, {.noise_multiplier = sigma, .ledger = &ledger_, .run = "h"}, noise);
  }
  static constexpr uint32_t kItems = 3200;
  privacy::Ledger ledger_ = OpenLedger("l");
};

TEST_F(HistogramNoise, EveryItemHasTheNoiseThatIsCharged) {
  for (double sigma : {0.5, 5.0}) {
    const Popularity nobody = Release({}, sigma);
    std::vector<double> z;
    for (float h : nobody.histogram) z.push_back(h / sigma);
    ASSERT_EQ(z.size(), kItems);
    ExpectStandardNormal(z, "histogram");
    EXPECT_DOUBLE_EQ(ledger_.Entries()->back().mechanism.noise_multiplier(), sigma);
    EXPECT_EQ(ledger_.Entries()->back().noise, privacy::NoiseKind::kSecure);
    const auto steps = static_cast<uint64_t>(std::ceil(sigma * 0x1p30));
    const double slack =
        privacy::DiscretisationLoss({.sigma_in_steps = steps, .num_coordinates = kItems, .num_steps = 1});
    EXPECT_GT(slack, 0);
    EXPECT_DOUBLE_EQ(ledger_.Entries()->back().loss_slack, slack);
  }
}

TEST_F(HistogramNoise, RepeatableNoiseIsChargedAsSuch) {
  auto noise = privacy::RandomStream::Reproducible(3, privacy::StreamPurpose::kNoise);
  ASSERT_TRUE(
      PrivatePopularity(ring_.records, kItems, {.noise_multiplier = 1, .ledger = &ledger_, .run = "h"}, noise).ok());
  EXPECT_EQ(ledger_.Entries()->back().noise, privacy::NoiseKind::kReproducible);
}

// With people in it, the rest after subtracting their shares is the noise.
TEST_F(HistogramNoise, TheNoiseLiesOnTopOfTheRecords) {
  const Popularity all = Release(ring_.records, 1.0);
  std::vector<double> z(all.histogram.begin(), all.histogram.end());
  std::vector<int32_t> distinct;
  for (const Record& record : ring_.records) {
    DistinctItems(record, distinct);
    for (int32_t item : distinct) z[static_cast<size_t>(item)] -= 1 / std::sqrt(static_cast<double>(distinct.size()));
  }
  ExpectStandardNormal(z, "histogram");
}

// Bias and frequencies are functions of the released histogram, by the formulas of popularity.h, and contain nothing
// else of the records. With this much noise, 40 records order the items differently from their exact counts.
TEST_F(HistogramNoise, AllThatIsReleasedFollowsFromTheNoisedHistogram) {
  constexpr uint32_t kPublic = 40;
  for (double sigma : {0.5, 5.0}) {
    auto noise = *privacy::RandomStream::Secure();
    const Popularity released = *PrivatePopularity(
        ring_.records, kItems,
        {.noise_multiplier = sigma, .ledger = &ledger_, .run = "h", .num_records_public = kPublic}, noise);
    double sum = 0, mean = 0;
    for (float h : released.histogram) {
      sum += h;
      mean += std::log(std::max<double>(h, sigma)) / kItems;
    }
    for (size_t i = 0; i < kItems; ++i) {
      const double h = std::max<double>(released.histogram[i], sigma);
      const double frequency = std::min(1.0, h / kPublic * std::max(1.0, sum / kPublic));
      EXPECT_NEAR(released.frequencies[i], frequency, 1e-5 * frequency) << i;
      EXPECT_NEAR(released.bias[i], std::log(h) - mean, 1e-4) << i;
    }
  }
}

// A whole run's release: the fixed output bias, which nothing trains. Two runs of one seed must not agree on it.
TEST_F(HistogramNoise, ARunsHistogramDoesNotFollowFromItsSeed) {
  const data::Sequences sequences = test::RingSequences(40);
  TrainingJob job = test::RingJob(sequences, ledger_, OutputBias::kFixed);
  job.spec.training.num_steps = 1;
  job.spec.goal = {.epsilon = {}, .noise_multiplier = 2, .delta = 1e-3};
  job.spec.goal.histogram_noise = 1;  // above it an item's share, 5.6 in the mean, shows its own noise
  const auto parameters = ListParameters(job.spec.architecture);
  const ParameterSpec& bias = parameters[test::FindIndex(parameters, "output_bias")];
  std::vector<float> released[2];
  for (auto& b : released) {
    const auto result = RunTrainingJob(job);
    ASSERT_TRUE(result.ok()) << result.status().message();
    b.assign(result->weights.begin() + static_cast<ptrdiff_t>(bias.offset),
             result->weights.begin() + static_cast<ptrdiff_t>(bias.offset + bias.size()));
  }
  size_t equal = 0;  // two numbers at the floor, which share only a common shift, are not equal either
  for (size_t i = 0; i < released[0].size(); ++i) equal += released[0][i] == released[1][i];
  EXPECT_LE(equal, 1u);
}

}  // namespace
}  // namespace wisp::release_noise_test
