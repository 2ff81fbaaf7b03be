// Steps and sampling probability follow from the declared number of records, not from the real one. A run on N records
// that declares M looks like a run of M in everything that its ledger and its result show.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "runtime/train/run/job.h"
#include "runtime/train/trainer.h"
#include "tests/unit/layers/classifier_test_util.h"
#include "tests/unit/needs.h"
#include "tests/unit/train/run/ring_job.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::declared_numbers_test {
namespace {

using privacy::Ledger;

class DeclaredNumbers : public ::testing::Test {
 protected:
  Ledger OpenLedger(const std::string& name) { return test::OpenRingLedger(folder_ / name); }
  TrainingJob Job(Method method, uint32_t declared, Ledger& ledger) {
    TrainingJob job = test::RingJob(sequences_, ledger);
    job.spec.training.method = method;
    job.spec.training.num_records_public = declared;
    job.spec.training.sparse = {.map_threshold = 2};
    job.spec.training.privacy.reproducible_seed =
        3;  // no epsilon is computed for the display, which takes longest of all
    job.spec.epochs = 2;
    job.spec.goal = {.epsilon = {}, .noise_multiplier = 2, .delta = 1e-4};
    return job;
  }
  static constexpr size_t kUsers = 80;
  test::TemporaryFolder folder_;
  data::Sequences sequences_ = test::RingSequences(kUsers);
};

TEST_F(DeclaredNumbers, StepsAndProbabilityOfARunAreOfTheDeclaredRecords) {
  for (Method method : {Method::kPhantom, Method::kRgp, Method::kAdaFest}) {
    if (!CheckBuilt(UniformArchitecture{}, {.method = method}).ok()) continue;
    for (uint32_t declared : {40u, 90u, 400u}) {
      Ledger ledger = OpenLedger(std::to_string(declared) + " " + std::to_string(static_cast<int>(method)));
      const auto result = RunTrainingJob(Job(method, declared, ledger));
      ASSERT_TRUE(result.ok()) << result.status().message();
      const auto steps = static_cast<uint64_t>(std::ceil(2.0 * declared / 20));
      EXPECT_EQ(result->num_steps, steps) << declared;
      const auto entries = *ledger.Entries();
      ASSERT_EQ(entries.size(), steps) << declared;
      for (const auto& entry : entries) EXPECT_DOUBLE_EQ(entry.mechanism.sampling_probability(), 20.0 / declared);
      EXPECT_DOUBLE_EQ(result->mechanisms.back().sampling_probability(), 20.0 / declared);
      EXPECT_EQ(result->mechanisms.back().steps(), steps);
    }
  }
}

// Two logs of different size with the same declaration are charged alike, also with noise that is found for a target
// epsilon.
TEST_F(DeclaredNumbers, CalibrationSeesTheDeclaredRecordsOnly) {
  std::string charged[2];
  double noise[2];
  for (size_t half = 0; half < 2; ++half) {
    data::Sequences fewer = sequences_;
    if (half == 1) {
      fewer.offsets.resize(1 + kUsers / 2);
      fewer.user_keys.resize(kUsers / 2);
      fewer.items.resize(fewer.offsets.back());
    }
    Ledger ledger = OpenLedger("half " + std::to_string(half));
    TrainingJob job = Job(Method::kPhantom, 90, ledger);
    job.sequences = &fewer;
    job.spec.goal = {.epsilon = 3.0, .noise_multiplier = {}, .delta = 1e-3};
    const auto result = RunTrainingJob(job);
    ASSERT_TRUE(result.ok()) << result.status().message();
    noise[half] = result->noise_multiplier;
    for (const auto& entry : *ledger.Entries()) charged[half] += entry.mechanism.ToText() + "\n";
  }
  EXPECT_EQ(noise[0], noise[1]);
  EXPECT_EQ(charged[0], charged[1]);
}

// A delta that would allow publishing one of the declared records is refused, however many records there are. A smaller
// delta is accepted.
TEST_F(DeclaredNumbers, DeltaIsHeldAgainstTheDeclaredRecords) {
  Ledger ledger = OpenLedger("delta");
  TrainingJob job = Job(Method::kPhantom, 2000, ledger);
  job.spec.goal.delta = 1.0 / 1000;  // below 1 / 80
  EXPECT_EQ(RunTrainingJob(job).status().code(), StatusCode::kPrivacyRefused);
  job.spec.training.num_records_public = 10;
  job.spec.goal.delta = 2e-5;  // as it may be with 80
  EXPECT_EQ(RunTrainingJob(job).status().code(), StatusCode::kPrivacyRefused);
  job.spec.training.num_records_public = 40;
  EXPECT_TRUE(RunTrainingJob(job).ok());
}

// Batches are also sampled with the declared probability: 80 people with 20 / 400 each are 4 in the mean, not 20. The
// mean of 60 such counts has a deviation of 0.25: five of them, alpha 6e-7.
TEST_F(DeclaredNumbers, BatchesAreDrawnWithTheDeclaredProbability) {
  Ledger ledger = OpenLedger("draws");
  const test::Ring ring(20, kUsers, 7);
  const TrainingJob job = Job(Method::kPhantom, 400, ledger);
  TrainingOptions options = job.spec.training;
  options.num_steps = 60;
  options.privacy.noise_multiplier = 2;
  auto trainer =
      *Trainer::Create(job.spec.architecture, test::StartWeights(job.spec.architecture), ring.records, options);
  double mean = 0;
  for (int i = 0; i < 60; ++i) mean += static_cast<double>(trainer->Step()->num_records) / 60;
  EXPECT_NEAR(mean, 4, 5 * 0.252);
}

class DeclaredTexts : public test::ClassifierTraining {};

TEST_F(DeclaredTexts, StepsAndProbabilityOfAClassifierAreOfTheDeclaredTexts) {
  WISP_NEEDS(kHasDpFp);
  std::vector<std::vector<int32_t>> tokens;
  std::vector<Record> records;
  for (int32_t i = 0; i < 120; ++i) tokens.push_back({0, 1 + i % 8, 9 + i % 3});
  for (int32_t i = 0; i < 120; ++i) records.push_back(test::Labelled(tokens[static_cast<size_t>(i)], i % 2));
  const std::vector<float> weights = test::StartClassifier(test::kTinyClassifier, {.table_deviation = 0.5f});
  for (DpFpMode mode : {DpFpMode::kAggregate, DpFpMode::kClipped}) {
    for (uint32_t declared : {60u, 600u}) {
      privacy::Ledger ledger = OpenLedger(std::to_string(declared) + " " + std::to_string(static_cast<int>(mode)));
      TrainingJob job{.spec = {.architecture = test::kTinyClassifier}, .records = records, .start_weights = weights};
      job.spec.training = {.method = Method::kDpFp,
                           .sampling = Sampling::kPoisson,
                           .expected_batch = 30,
                           .num_records_public = declared,
                           .optimizer = {.kind = OptimizerKind::kAdamW, .learning_rate = 1e-3f},
                           .num_threads = 1,
                           .privacy = {.noise_multiplier = 2,
                                       .clipping_norm = 0.5,
                                       .ledger = &ledger,
                                       .run = "run",
                                       .reproducible_seed = 3},
                           .dp_fp = {.mode = mode, .micro_batches = 2, .noise_multiplier = 1}};
      job.spec.epochs = 1;
      job.spec.goal = {.epsilon = {}, .noise_multiplier = 2, .delta = 1e-4};
      const auto result = RunTrainingJob(job);
      ASSERT_TRUE(result.ok()) << result.status().message();
      EXPECT_EQ(result->num_steps, declared / 30);
      const auto entries = *ledger.Entries();
      ASSERT_EQ(entries.size(), declared / 30 * (mode == DpFpMode::kClipped ? 2 : 1));
      for (const auto& entry : entries) {
        EXPECT_DOUBLE_EQ(entry.mechanism.sampling_probability(),
                         30.0 / declared / (entry.purpose == "encoder training" ? 1 : 2))
            << entry.purpose;
      }
    }
  }
}

}  // namespace
}  // namespace wisp::declared_numbers_test
