// The noise of releases: it covers every coordinate of every worker, comes from the secure generator, and has the
// charged size.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>

#include "runtime/privacy/noise/discrete_gaussian.h"
#include "runtime/privacy/noise/exact_sum.h"
#include "runtime/train/popularity.h"
#include "runtime/methods/sparse/contribution_map.h"
#include "runtime/methods/sparse/step_rows.h"
#include "runtime/train/run/job.h"
#include "runtime/train/trainer.h"
#include "tests/unit/layers/classifier_test_util.h"
#include "tests/unit/layers/parameter_names.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::release_noise_test {
namespace {

// Larger than a worker's piece of an update (4,096 coordinates): a table in three pieces, two matrices in two.
constexpr UniformArchitecture kLarge{.num_items = 700,
                                     .max_length = 12,
                                     .width = 16,
                                     .num_heads = 2,
                                     .num_blocks = 1,
                                     .inner_width = 320,
                                     .embedding_scale = 4.0f};
constexpr size_t kBlock = 32;

// Each 32 neighbours together have the variance 1. The sum of 32 squares lies outside of [4, 110] with a chance of
// 5e-10 below and 2e-10 above; all of these tests have about 1e4 blocks: alpha 1e-5. With half the noise the sum is 8
// in the mean, without noise 0.
void ExpectStandardNormal(const std::vector<double>& z, const std::string& what) {
  ASSERT_GE(z.size(), kBlock) << what;
  for (size_t first = 0; first < z.size(); first += kBlock) {
    const size_t begin = std::min(first, z.size() - kBlock);
    double squares = 0;
    for (size_t i = begin; i < begin + kBlock; ++i) squares += z[i] * z[i];
    ASSERT_TRUE(squares > 4 && squares < 110)
        << what << ": coordinates from " << begin << " have the squares " << squares;
  }
  for (size_t i = 0; i < z.size(); ++i) ASSERT_NE(z[i], 0) << what << ": coordinate " << i;
  const double n = static_cast<double>(z.size());
  const double squares = std::inner_product(z.begin(), z.end(), z.begin(), 0.0);
  EXPECT_NEAR(squares / n, 1, 6 * std::sqrt(2 / n)) << what << ": six standard errors, alpha 2e-9";
}

struct Way {
  const char* name;
  Method method;
};
constexpr Way kWays[] = {{"phantom", Method::kPhantom},
                         {"rgp", Method::kRgp},
                         {"fest", Method::kFest},
                         {"adafest", Method::kAdaFest},
                         {"adafest+", Method::kAdaFestPlus}};

class ReleaseNoise : public test::RingTraining {
 protected:
  ReleaseNoise() : RingTraining(59) {
    for (int32_t row = 0; row < 700; row += 2) rows_.push_back(row);
  }

  TrainingOptions Options(const Way& way) {
    TrainingOptions o{.method = way.method,
                      .sampling = Sampling::kPoisson,
                      .num_steps = 20,
                      .expected_batch = 30,
                      .num_records_public = 60,
                      // 30 / 0.25: in units of the clipping norm.
                      .optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 120.0f},
                      .seed = 5,
                      .num_threads = 3,
                      .privacy = {.noise_multiplier = 2, .clipping_norm = 0.25, .ledger = &ledger_, .run = way.name},
                      .sparse = {.map_threshold = 1e-3}};  // half of the rows are selected
    // Carriers are not used, so each coordinate shows its own noise.
    o.rgp.item_tables = o.rgp.positions = o.rgp.matrices = RgpTrain::kFull;
    if (way.method == Method::kFest || way.method == Method::kAdaFestPlus) o.sparse.rows = rows_;
    return o;
  }
  // Returns the result of a step with an empty batch on weights that are 0: exactly the noise.
  std::vector<float> GetNoise(const TrainingOptions& o) {
    const std::vector<float> zero(FlatSize(ListParameters(kLarge)), 0.0f);
    auto trainer = Trainer::Create(kLarge, zero, {}, o);
    EXPECT_TRUE(trainer.ok()) << trainer.status().message();
    EXPECT_TRUE((*trainer)->Step().ok());
    return {(*trainer)->weights().begin(), (*trainer)->weights().end()};
  }
  // Returns the coordinates that a step moves: all that are trained, and of the table those of selected rows.
  static std::vector<size_t> Moved(const std::vector<float>& noise) {
    std::vector<size_t> moved;
    for (const ParameterSpec& p : ListParameters(kLarge)) {
      if (!p.trained) continue;
      for (size_t row = 0; row < p.size(); row += p.offset == 0 ? kLarge.width : p.size()) {
        const size_t first = p.offset + row, n = p.offset == 0 ? kLarge.width : p.size();
        const bool in = p.offset != 0 ||
                        std::any_of(noise.begin() + static_cast<ptrdiff_t>(first),
                                    noise.begin() + static_cast<ptrdiff_t>(first + n), [](float x) { return x != 0; });
        for (size_t i = first; in && i < first + n; ++i) moved.push_back(i);
      }
    }
    return moved;
  }

  privacy::Ledger ledger_ = OpenLedger("l");
  std::vector<int32_t> rows_;
};

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

// The noise of the map selects rows. With a ratio of 1/2 it is half the gradient's, with which 0.26 of the rows would
// be selected. 4,200 trials of 0.1: six standard errors, alpha 2e-9.
TEST_F(ReleaseNoise, TheMapHasItsOwnNoiseNotTheGradients) {
  TrainingOptions o = Options({"adafest", Method::kAdaFest});
  o.privacy.noise_multiplier = 1;
  o.sparse.map_noise_ratio = 0.5;
  const double of_map = std::sqrt(1.25), of_gradient = 2 * of_map;
  EXPECT_DOUBLE_EQ(GradientNoise(o), of_gradient);
  EXPECT_DOUBLE_EQ(MapOptions(o).noise_multiplier, of_map);
  EXPECT_DOUBLE_EQ(1 / (of_map * of_map) + 1 / (of_gradient * of_gradient), 1) << "together they are what is charged";
  o.sparse.map_threshold = 1.2815515655 * of_map;
  double rows = 0, trials = 0;
  for (int i = 0; i < 6; ++i) {
    const std::vector<float> noise = GetNoise(o);
    for (size_t row = 0; row < kLarge.num_items; ++row) {
      rows +=
          std::any_of(noise.begin() + static_cast<ptrdiff_t>(row * kLarge.width),
                      noise.begin() + static_cast<ptrdiff_t>((row + 1) * kLarge.width), [](float x) { return x != 0; });
      trials += 1;
    }
  }
  EXPECT_NEAR(rows / trials, 0.1, 6 * std::sqrt(0.1 * 0.9 / trials));
}

// The map's noise deviates from a Gaussian, and that slack is paid for in addition to the gradient's.
TEST_F(ReleaseNoise, TheMapsSlackIsCharged) {
  TrainingOptions o = Options({"adafest", Method::kAdaFest});
  for (double ratio : {0.25, 1.0, 4.0}) {
    o.sparse.map_noise_ratio = ratio;
    const NoisePair pair = SplitNoise(2, ratio);
    TrainingOptions alone = Options({"phantom", Method::kPhantom});
    const double gradient = StepLossSlack(kLarge, alone, pair.gradient, 3);
    const ContributionMap map(kLarge.num_items, MapOptions(o), nullptr);
    const double of_map = privacy::DiscretisationLoss(
        {.sigma_in_steps = map.sigma_in_steps(), .num_coordinates = kLarge.num_items, .num_steps = 3});
    EXPECT_GT(of_map, 0);
    EXPECT_NEAR(StepLossSlack(kLarge, o, 2, 3) / (gradient + of_map), 1, 1e-4) << ratio;
  }
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
  data::Sequences sequences;
  for (size_t u = 0; u < 40; ++u) {
    for (size_t t = 0; t < 8; ++t) sequences.items.push_back(static_cast<int32_t>((u * 7 + t) % 20));
    sequences.offsets.push_back(sequences.items.size());
    sequences.user_keys.push_back(std::to_string(u));
  }
  for (int i = 0; i < 20; ++i) sequences.item_keys.push_back(std::to_string(i));
  TrainingJob job{.sequences = &sequences};
  job.spec.architecture = UniformArchitecture{.num_items = 20,
                                              .max_length = 8,
                                              .width = 8,
                                              .num_heads = 1,
                                              .num_blocks = 1,
                                              .inner_width = 8,
                                              .output_bias = OutputBias::kFixed};
  job.spec.training = {.method = Method::kPhantom,
                       .sampling = Sampling::kPoisson,
                       .num_steps = 1,
                       .expected_batch = 20,
                       .num_records_public = 40,
                       .num_threads = 1};
  job.spec.training.privacy.ledger = &ledger_;
  job.spec.training.privacy.run = "run";
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

// DP-FP: the encoder's step and the releases that the head is made from.
class DpFpNoise : public test::ClassifierTraining {
 protected:
  static constexpr UniformArchitecture kWide{.num_items = 700,
                                             .max_length = 10,
                                             .width = 16,
                                             .num_heads = 2,
                                             .num_blocks = 1,
                                             .inner_width = 320,
                                             .attend = Attend::kAll,
                                             .num_classes = 2};
  // The weights are 0, and nobody is sampled.
  std::unique_ptr<Trainer> Step() {
    const TrainingOptions o{
        .method = Method::kDpFp,
        .sampling = Sampling::kPoisson,
        .num_steps = 3,
        .expected_batch = 8,
        .num_records_public = 80,
        .optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 32.0f},
        .num_threads = 3,
        .privacy = {.noise_multiplier = 2.5, .clipping_norm = 0.25, .ledger = &ledger_, .run = "test"},
        .dp_fp = {.mode = DpFpMode::kClipped, .micro_batches = 4, .clipping_norm = 1, .noise_multiplier = 1}};
    auto trainer = Trainer::Create(kWide, std::vector<float>(FlatSize(ListParameters(kWide)), 0.0f), {}, o);
    EXPECT_TRUE(trainer.ok()) << trainer.status().message();
    EXPECT_TRUE((*trainer)->Step().ok());
    return *std::move(trainer);
  }
  privacy::Ledger ledger_ = OpenLedger("l");
};

TEST_F(DpFpNoise, EveryCoordinateOfTheEncoder_HasIndependentNoise) {
  const auto a = Step(), b = Step();
  std::vector<double> z;
  size_t equal = 0;
  for (const ParameterSpec& p : a->graph().parameters()) {
    for (size_t i = p.offset; i < p.offset + p.size(); ++i) {
      equal += a->weights()[i] == b->weights()[i];
      if (!p.name.starts_with("head.")) z.push_back(a->weights()[i] / 2.5);
    }
  }
  EXPECT_GT(z.size(), 20000u);
  ExpectStandardNormal(z, "encoder");
  EXPECT_LE(equal, 2u) << "the head included: as above";
}

TEST_F(DpFpNoise, EveryCoordinateOfAHeadReleaseHasItsNoise) {
  // There are more coordinates than in a piece of an update. The sum itself shows the release.
  HeadReleases releases(kernels::BestOps(), {.num_classes = 4,
                                             .width = 1200,
                                             .micro_batches = 2,
                                             .clipping_norm = 0.5,
                                             .noise_multiplier = 3,
                                             .sampling_probability = 0.1,
                                             .num_records_public = 100});
  auto noise = *privacy::RandomStream::Secure();
  releases.Clear();
  releases.Release(noise);
  std::vector<double> z;
  for (int64_t a : releases.matrices()) z.push_back(static_cast<double>(a) * releases.grid().grid() / (3 * 0.5));
  ASSERT_EQ(z.size(), 2u * 4 * 1200);
  ExpectStandardNormal(z, "head");
}

}  // namespace
}  // namespace wisp::release_noise_test
