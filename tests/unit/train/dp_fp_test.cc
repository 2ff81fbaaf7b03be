// DP-FP: samples are charged first and nothing else moves; the leak of the paper's mode is shown; all modes learn.
// head_releases_test.cc tests the releases for the head.
#include "runtime/train/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "runtime/privacy/accounting/accountant.h"
#include "runtime/methods/dp_fp/dp_fp_report.h"
#include "tests/unit/layers/classifier_test_util.h"

namespace wisp::dp_fp_test {
namespace {

using privacy::Ledger;
using privacy::Mechanism;

constexpr UniformArchitecture kSmall{.num_items = 40,
                                     .max_length = 10,
                                     .width = 16,
                                     .num_heads = 2,
                                     .num_blocks = 1,
                                     .inner_width = 16,
                                     .attend = Attend::kAll,
                                     .num_classes = 2};

// Sequences that start with token 39. Half of the other tokens name the class (0-9: class 0, 10-19: class 1), the rest
// say nothing.
struct Task {
  explicit Task(size_t n, uint32_t seed = 1) {
    std::mt19937 random(seed);
    for (size_t i = 0; i < n; ++i) {
      const int32_t label = static_cast<int32_t>(random() % 2);
      std::vector<int32_t> t = {39};
      for (size_t j = 0, length = 5 + random() % 5; j < length; ++j) {
        t.push_back(static_cast<int32_t>(j % 2 == 0 ? 10 * label + random() % 10 : 20 + random() % 18));
      }
      tokens.push_back(std::move(t));
      labels.push_back(label);
    }
    for (size_t i = 0; i < n; ++i) records.push_back(test::Labelled(tokens[i], labels[i]));
  }
  std::vector<std::vector<int32_t>> tokens;
  std::vector<int32_t> labels;
  std::vector<Record> records;
};

std::vector<float> Start(const Architecture& a = kSmall) {
  return test::StartClassifier(a, {.table_deviation = 0.5f, .position_deviation = 0.05f});
}

TrainingOptions Options(DpFpMode mode, Ledger* ledger) {
  return {.method = Method::kDpFp,
          .sampling = Sampling::kPoisson,
          .num_steps = 30,
          .expected_batch = 200,
          .num_records_public = 2000,
          .optimizer = {.kind = OptimizerKind::kAdamW, .learning_rate = 3e-3f},
          .num_threads = 2,
          .privacy = {.noise_multiplier = 1, .ledger = ledger, .run = "test"},
          .dp_fp = {.mode = mode, .micro_batches = 4, .clipping_norm = 1, .noise_multiplier = 1}};
}

class DpFpTest : public test::ClassifierTraining {
 protected:
  std::unique_ptr<Trainer> Make(const TrainingOptions& options) { return MakeOn(task_.records, options); }
  std::unique_ptr<Trainer> MakeOn(std::span<const Record> records, const TrainingOptions& options) {
    auto trainer = Trainer::Create(kSmall, Start(), records, options);
    EXPECT_TRUE(trainer.ok()) << trainer.status().message();
    return *std::move(trainer);
  }
  double Learn(const TrainingOptions& options, const Architecture& a, std::span<const float> start) {
    const Task test(1000, 77);
    auto trainer = *Trainer::Create(a, start, task_.records, options);
    for (uint64_t i = 0; i < options.num_steps; ++i) EXPECT_TRUE(trainer->Step().ok());
    const Classifier graph(a, kernels::BestOps(), {.use = GraphUse::kInference});
    return Accuracy(graph, trainer->weights().data(), test.records, trainer->inference_input(), trainer->workers());
  }

  const Task task_{2000};
};

// ---- The ledger, and what is frozen
// ------------------------------------------------------------------------------------

TEST_F(DpFpTest, EveryStepIsChargedForAllItsMicroBatches) {
  Ledger ledger = OpenLedger("l");
  auto trainer = Make(Options(DpFpMode::kAggregate, &ledger));
  ASSERT_TRUE(trainer->Step().ok());
  auto entries = *ledger.Entries();
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].mechanism.word(), "poisson_subsampled_gaussian");
  EXPECT_EQ(entries[0].mechanism.steps(), 4u);
  EXPECT_EQ(entries[0].mechanism.sampling_probability(), 200.0 / 2000 / 4);
  EXPECT_EQ(entries[0].mechanism.noise_multiplier(), 1.0);
  EXPECT_GT(entries[0].loss_slack, 0);
  EXPECT_EQ(entries[0].noise, privacy::NoiseKind::kSecure);
}

TEST_F(DpFpTest, ClippedChargesBothMechanisms) {
  Ledger ledger = OpenLedger("l");
  TrainingOptions o = Options(DpFpMode::kClipped, &ledger);
  o.privacy.noise_multiplier = 1.5;
  o.privacy.steps_per_charge = 2;
  auto trainer = Make(o);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(trainer->Step().ok());
  auto entries = *ledger.Entries();
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(entries[0].mechanism, (*PrivacyPlan::Create(kSmall, o)->Mechanisms(2))[0]);
  EXPECT_EQ(entries[1].mechanism, (*PrivacyPlan::Create(kSmall, o)->Mechanisms(2))[1]);
  EXPECT_EQ(entries[1].mechanism.sampling_probability(), 0.1);
  EXPECT_EQ(entries[1].mechanism.noise_multiplier(), 1.5);
  EXPECT_EQ(entries[1].mechanism.steps(), 2u);
}

// The ledger is charged for the same noise that calibration used, release for release.
TEST_F(DpFpTest, TheGridsSlackIsThatOfAllReleases) {
  for (DpFpMode mode : {DpFpMode::kAggregate, DpFpMode::kClipped}) {
    Ledger ledger = OpenLedger(mode == DpFpMode::kAggregate ? "a" : "c");
    TrainingOptions o = Options(mode, &ledger);
    o.privacy.steps_per_charge = 3;
    auto trainer = Make(o);
    ASSERT_TRUE(trainer->Step().ok());
    double slack = 0;
    for (const privacy::LedgerEntry& entry : *ledger.Entries()) slack += entry.loss_slack;
    EXPECT_GT(slack, 0);
    EXPECT_NEAR(PrivacyPlan::Create(kSmall, o)->LossSlack(3), slack, 1e-9 * slack);
  }
}

// If the ledger refuses, nothing is sampled, moved or released. The charge for a step that did not happen is used by
// the next try instead of being paid twice.
TEST_F(DpFpTest, RefusedStepChangesNothing) {
  for (DpFpMode mode : {DpFpMode::kAggregate, DpFpMode::kClipped}) {
    Ledger ledger = OpenLedger(mode == DpFpMode::kAggregate ? "a" : "c");
    TrainingOptions o = Options(mode, &ledger);
    // The aggregate's releases alone exceed the limit; those of kClipped do not, but its encoder's gradients do.
    o.dp_fp.noise_multiplier = mode == DpFpMode::kAggregate ? 1 : 50;
    ASSERT_TRUE(ledger.SetLimit(*privacy::EpsilonDelta::Create(0.1, 1e-6)).ok());
    auto trainer = Make(o);
    for (int attempt = 0; attempt < 2; ++attempt) {
      const auto report = trainer->Step();
      ASSERT_FALSE(report.ok());
      EXPECT_EQ(report.status().code(), StatusCode::kPrivacyRefused);
      EXPECT_EQ(trainer->step(), 0u);
      EXPECT_EQ(std::vector<float>(trainer->weights().begin(), trainer->weights().end()), Start());
      EXPECT_EQ(ledger.Entries()->size(), mode == DpFpMode::kAggregate ? 0u : 1u);
    }
  }
}

// Both batches have the size that is charged. The means of 40 Poisson-like counts of 200 lie within 6 deviations (13.4)
// of it, except for a chance of 4e-9.
TEST_F(DpFpTest, DrawsAreAsLargeAsTheProbabilitiesThatAreCharged) {
  Ledger ledger = OpenLedger("l");
  auto trainer = Make(Options(DpFpMode::kClipped, &ledger));
  double records = 0, encoder_records = 0;
  for (int i = 0; i < 40; ++i) {
    const auto report = *trainer->Step();
    records += static_cast<double>(report.num_head_records) / 40;
    encoder_records += static_cast<double>(report.num_records) / 40;
    EXPECT_EQ(report.num_dropped, 0u);
  }
  EXPECT_NEAR(records, 200, 13.4);
  EXPECT_NEAR(encoder_records, 200, 13.4);
}

// The encoder's records are not those of the head: both samplings are charged as mechanisms of their own. Sizes of 150
// steps of 40 records each in the mean, 6 standard deviations.
TEST_F(DpFpTest, TheEncodersDrawDoesNotFollowFromTheHeads) {
  constexpr int kSteps = 150;
  Ledger ledger = OpenLedger("l");
  TrainingOptions o = Options(DpFpMode::kClipped, &ledger);
  o.num_steps = o.privacy.steps_per_charge = kSteps;
  o.expected_batch = 40;
  o.num_records_public = 400;
  auto trainer = MakeOn(std::span(task_.records).first(400), o);
  double head_squares = 0, squares = 0, products = 0;
  for (int i = 0; i < kSteps; ++i) {
    const auto report = *trainer->Step();
    const double head = static_cast<double>(report.num_head_records) - 40,
                 encoder = static_cast<double>(report.num_records) - 40;
    head_squares += head * head / kSteps;
    squares += encoder * encoder / kSteps;
    products += head * encoder / kSteps;
  }
  const double of_head = 40 * (1 - 0.1 / 4), of_encoder = 40 * (1 - 0.1), deviations = 6 * std::sqrt(1.0 / kSteps);
  EXPECT_NEAR(head_squares, of_head, std::sqrt(2) * deviations * of_head);
  EXPECT_NEAR(squares, of_encoder, std::sqrt(2) * deviations * of_encoder);
  EXPECT_NEAR(products, 0, deviations * std::sqrt(of_head * of_encoder));
}

std::vector<double> EncoderChange(const Trainer& trainer, const std::vector<float>& before) {
  std::vector<double> change;
  for (const ParameterSpec& p : trainer.graph().parameters()) {
    for (size_t i = p.offset; !p.name.starts_with("head.") && i < p.offset + p.size(); ++i) {
      change.push_back(static_cast<double>(trainer.weights()[i]) - before[i]);
    }
  }
  return change;
}

double Norm(const std::vector<double>& v) {
  double squares = 0;
  for (double x : v) squares += x * x;
  return std::sqrt(squares);
}

// With a rate of 1 and B = 1 the step is the noisy sum itself. Weights near 1 round it to 6e-8 per coordinate.
TEST_F(DpFpTest, EncoderStepIsBoundedByItsClippingNormAndNoisedByItsMultiplier) {
  Ledger ledger = OpenLedger("l");
  TrainingOptions o = Options(DpFpMode::kClipped, &ledger);
  o.num_records_public = o.expected_batch = o.dp_fp.micro_batches = 1;  // p = q = 1: the record is always sampled
  o.dp_fp.noise_multiplier = 1e-4;
  o.optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 1.0f};
  o.privacy.noise_multiplier = 1e-4;
  o.privacy.clipping_norm = 0.03;
  auto bounded = MakeOn(std::span(task_.records).first(1), o);
  ASSERT_TRUE(bounded->Step().ok());
  const double moved = Norm(EncoderChange(*bounded, Start()));
  EXPECT_LT(moved, 0.03 * 1.001);
  EXPECT_GT(moved, 0.01) << "no gradient came through";
  o.privacy.noise_multiplier = 2.5;
  o.privacy.clipping_norm = 0.03;
  auto noised = MakeOn({}, o);
  ASSERT_TRUE(noised->Step().ok());
  const std::vector<double> noise = EncoderChange(*noised, Start());
  for (double v : noise) EXPECT_NE(v, 0);
  // The deviation of n samples has the relative deviation 1 / sqrt(2 n); the bound is 6 of them.
  const double n = static_cast<double>(noise.size());
  EXPECT_NEAR(Norm(noise) / std::sqrt(n), 2.5 * 0.03, 2.5 * 0.03 * 6 / std::sqrt(2 * n));
}

TEST_F(DpFpTest, EmptyDrawStillReleasesNoise) {
  Ledger a = OpenLedger("a"), b = OpenLedger("b");
  auto first = MakeOn({}, Options(DpFpMode::kAggregate, &a)), second = MakeOn({}, Options(DpFpMode::kAggregate, &b));
  ASSERT_TRUE(first->Step().ok());
  ASSERT_TRUE(second->Step().ok());
  const auto head = [](const Trainer& t) {
    const ParameterSpec& p = t.graph().parameters()[t.graph().head_parameter()];
    const auto first = t.weights().begin() + static_cast<ptrdiff_t>(p.offset);
    return std::vector<float>(first, first + static_cast<ptrdiff_t>(p.size()));
  };
  for (float w : head(*first)) EXPECT_NE(w, 0);
  EXPECT_NE(head(*first), head(*second)) << "secure noise repeated";
  EXPECT_EQ(a.Entries()->size(), 1u);
}

std::set<int32_t> ChangedRows(const Trainer& trainer, const std::vector<float>& before) {
  std::set<int32_t> rows;
  const size_t d = kSmall.width;
  for (size_t i = 0; i < kSmall.num_items * d; ++i) {  // item_embedding is the first parameter
    if (trainer.weights()[i] != before[i]) rows.insert(static_cast<int32_t>(i / d));
  }
  return rows;
}

// The leak: whoever sees the weights after one step of mode paper can read off the batch's tokens.
TEST_F(DpFpTest, PaperModeNamesTheTokensOfItsBatchTheOthersDoNot) {
  const std::vector<int32_t> secret = {39, 3, 17, 3, 22};
  const std::vector<Record> one = {test::Labelled(secret, 1)};
  TrainingOptions o = Options(DpFpMode::kPaper, nullptr);
  o.num_records_public = 1;
  o.expected_batch = o.dp_fp.micro_batches = 1;  // p = 1
  // The head is not 0, because otherwise the first step's gradient would not reach the encoder.
  std::vector<float> start = Start();
  const auto parameters = ListParameters(kSmall);
  const ParameterSpec& head = parameters[RequireParameter(parameters, ParameterRole::kClassWeight)];
  for (size_t i = 0; i < head.size(); ++i) start[head.offset + i] = 0.1f * static_cast<float>(i % 7) - 0.3f;

  auto paper = *Trainer::Create(kSmall, start, one, o);
  ASSERT_TRUE(paper->Step().ok());
  EXPECT_EQ(ChangedRows(*paper, start), std::set<int32_t>(secret.begin(), secret.end()));

  Ledger ledger = OpenLedger("l");
  o.privacy.ledger = &ledger;
  o.dp_fp.mode = DpFpMode::kAggregate;
  auto aggregate = *Trainer::Create(kSmall, start, one, o);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(aggregate->Step().ok());
  EXPECT_TRUE(ChangedRows(*aggregate, start).empty());
  for (size_t i = 0; i < head.offset; ++i)
    ASSERT_EQ(aggregate->weights()[i], start[i]) << "below the noise nothing may move";

  o.dp_fp.mode = DpFpMode::kClipped;
  auto clipped = *Trainer::Create(kSmall, start, one, o);
  ASSERT_TRUE(clipped->Step().ok());
  EXPECT_EQ(ChangedRows(*clipped, start).size(), kSmall.num_items) << "noise must reach every row";
}

TEST_F(DpFpTest, NoGuarantee_IsRefused) {
  Ledger ledger = OpenLedger("l");
  EXPECT_EQ(DpFpOptions{}.mode, DpFpMode::kAggregate);
  const auto code = [&](TrainingOptions o) { return Trainer::Check(kSmall, Start(), task_.records, o).code(); };
  EXPECT_EQ(code(Options(DpFpMode::kAggregate, &ledger)), StatusCode::kOk);
  EXPECT_EQ(code(Options(DpFpMode::kPaper, nullptr)), StatusCode::kOk);
  EXPECT_EQ(code(Options(DpFpMode::kAggregate, nullptr)), StatusCode::kPrivacyRefused);
  EXPECT_EQ(code(Options(DpFpMode::kPaper, &ledger)), StatusCode::kPrivacyRefused)
      << "a ledger cannot cover mode paper";
  TrainingOptions o = Options(DpFpMode::kAggregate, &ledger);
  o.num_records_public = 0;
  EXPECT_EQ(code(o), StatusCode::kPrivacyRefused);
  o = Options(DpFpMode::kAggregate, &ledger);
  o.dp_fp.noise_multiplier = 0;
  EXPECT_NE(code(o), StatusCode::kOk);
  o = Options(DpFpMode::kClipped, &ledger);
  o.privacy.noise_multiplier = 0;
  EXPECT_NE(code(o), StatusCode::kOk);
  o = Options(DpFpMode::kClipped, &ledger);
  o.privacy.clipping = ClipKind::kNone;
  EXPECT_EQ(code(o), StatusCode::kPrivacyRefused);
  o = Options(DpFpMode::kAggregate, &ledger);
  o.dp_fp.class_prior = {0.5, 0.6};
  EXPECT_NE(code(o), StatusCode::kOk);
  o = Options(DpFpMode::kAggregate, &ledger);
  o.dp_fp.effective_dimensions = 0.5;
  EXPECT_NE(code(o), StatusCode::kOk);
  const std::vector<int32_t> tokens = {39, 40};
  const std::vector<Record> bad_token = {test::Labelled(tokens, 0)},
                            bad_label = {test::Labelled(std::span(tokens).first(1), 2)};
  for (const auto& records : {bad_token, bad_label}) {
    EXPECT_FALSE(Trainer::Check(kSmall, Start(), records, Options(DpFpMode::kPaper, nullptr)).ok());
    // A refusal would reveal something about the record.
    EXPECT_TRUE(Trainer::Check(kSmall, Start(), records, Options(DpFpMode::kAggregate, &ledger)).ok());
  }
}

TEST_F(DpFpTest, PaperModeHasNoMechanismAndItsReportNoEpsilon) {
  const TrainingOptions paper = Options(DpFpMode::kPaper, nullptr);
  EXPECT_EQ(PrivacyPlan::Create(kSmall, paper).status().code(), StatusCode::kPrivacyRefused);
  const std::string text = DescribeDpFp(kSmall, paper, 10);
  EXPECT_EQ(text.find("epsilon"), std::string::npos);
  EXPECT_EQ(text.find_first_of("0123456789"), std::string::npos)
      << "a figure in a report that can promise none: " << text;
  for (const char* claim : {"encoder", "labels are not protected", "amplification"})
    EXPECT_NE(text.find(claim), std::string::npos) << claim;
  const std::string aggregate = DescribeDpFp(kSmall, Options(DpFpMode::kAggregate, nullptr), 10);
  EXPECT_NE(aggregate.find("40 steps"), std::string::npos) << aggregate;
}

// ---- The paper's figures
// ------------------------------------------------------------------------------------------------

// SST-2 in the paper: D = 67,349, B = M = 32, three epochs, delta = 1 / 2D; sigma is calibrated for 1.73 by the limit
// theorem.
TEST(PaperFigures, LimitTheoremSays173WhereThePldSays590) {
  constexpr double kD = 67349;
  const PaperRun run{
      .sampling_probability = 32 / (32 * kD), .steps = static_cast<uint64_t>(3 * kD / 32), .micro_batches = 32};
  const auto delta = *privacy::Delta::Create(1 / (2 * kD));
  // mu_tot from delta(1.73; mu) = delta, by bisection on equation 3.
  const auto phi = [](double t) { return 0.5 * std::erfc(-t / std::sqrt(2.0)); };
  const auto delta_of = [&](double mu) { return phi(-1.73 / mu + mu / 2) - std::exp(1.73) * phi(-1.73 / mu - mu / 2); };
  double low = 0.01, high = 10;
  for (int i = 0; i < 200; ++i) (delta_of((low + high) / 2) > delta.value() ? high : low) = (low + high) / 2;
  const double sigma = PaperNoiseMultiplier(run, low);
  EXPECT_NEAR(PaperMuTotNoGuarantee(run, sigma), low, 1e-12);
  const Mechanism mechanism = *Mechanism::PoissonSubsampledGaussian({.noise_multiplier = sigma,
                                                                     .sampling_probability = run.sampling_probability,
                                                                     .steps = run.steps * run.micro_batches});
  const double clt = *privacy::GdpCltEpsilon({&mechanism, 1}, delta),
               pld = *privacy::PldEpsilon({&mechanism, 1}, delta);
  std::printf("sigma / C = %.5f, mu_tot = %.5f: limit theorem %.4f, PLD %.4f\n", sigma, low, clt, pld);
  EXPECT_NEAR(clt, 1.73, 0.005);
  EXPECT_NEAR(pld, 5.90, 0.01);
}

// ---- Learning
// -----------------------------------------------------------------------------------------------------------

// Nothing below the head was ever trained: the features are random, and wider here for that reason.
TEST_F(DpFpTest, AggregateLearnsTheTaskOnARandomEncoder) {
  Ledger ledger = OpenLedger("l");
  UniformArchitecture wide = kSmall;
  wide.width = wide.inner_width = 64;
  wide.norm = NormPlacement::kPost;
  const double accuracy = Learn(Options(DpFpMode::kAggregate, &ledger), wide, Start(wide));
  std::printf("aggregate, random encoder: accuracy %.3f, epsilon %.2f at 1e-5\n", accuracy,
              *ledger.Spent(*privacy::Delta::Create(1e-5)));
  EXPECT_GT(accuracy, 0.85);
}

// The intended use: the encoder comes from public data (here: trained without any guarantee on another sample).
TEST_F(DpFpTest, AggregateLearnsTheTaskOnAPublicEncoder) {
  const Task open(500, 5);
  TrainingOptions o = Options(DpFpMode::kPaper, nullptr);
  o.dp_fp.noise_multiplier = 0.1;
  o.num_steps = 60;
  o.num_records_public = 500;
  auto pretraining = MakeOn(open.records, o);
  for (uint64_t i = 0; i < o.num_steps; ++i) ASSERT_TRUE(pretraining->Step().ok());
  Ledger ledger = OpenLedger("l");
  const double accuracy = Learn(Options(DpFpMode::kAggregate, &ledger), kSmall, pretraining->weights());
  std::printf("aggregate, public encoder: accuracy %.3f, epsilon %.2f at 1e-5\n", accuracy,
              *ledger.Spent(*privacy::Delta::Create(1e-5)));
  EXPECT_GT(accuracy, 0.95);
}

TEST_F(DpFpTest, ClippedLearnsTheTask) {
  Ledger ledger = OpenLedger("l");
  TrainingOptions o = Options(DpFpMode::kClipped, &ledger);
  o.dp_fp.release_decay = 0.9;
  const double accuracy = Learn(o, kSmall, Start());
  std::printf("clipped: accuracy %.3f, epsilon %.2f at 1e-5\n", accuracy, *ledger.Spent(*privacy::Delta::Create(1e-5)));
  EXPECT_GT(accuracy, 0.9);
}

TEST_F(DpFpTest, PaperModeLearnsTheTask) {
  TrainingOptions o = Options(DpFpMode::kPaper, nullptr);
  o.dp_fp.noise_multiplier = 0.5;
  o.num_steps = 100;
  const double accuracy = Learn(o, kSmall, Start());
  std::printf("paper (no guarantee): accuracy %.3f\n", accuracy);
  EXPECT_GT(accuracy, 0.95);
}

TEST_F(DpFpTest, RefusesMoreThreadsThanAllowed) {
  Ledger ledger = OpenLedger("l");
  TrainingOptions o = Options(DpFpMode::kAggregate, &ledger);
  o.num_threads = kMaxThreads;
  EXPECT_TRUE(PlanTrainingMemory(kSmall, task_.records.size(), o).ok());
  EXPECT_TRUE(Trainer::Check(kSmall, Start(), task_.records, o).ok());
  o.num_threads = kMaxThreads + 1;
  EXPECT_EQ(PlanTrainingMemory(kSmall, task_.records.size(), o).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Trainer::Check(kSmall, Start(), task_.records, o).code(), StatusCode::kInvalidArgument);
}

// Integer sums do not depend on who adds, so the released matrices are the same for any number of threads.
TEST_F(DpFpTest, AggregateRepeatsWithReproducibleNoiseOnAnyNumberOfThreads) {
  std::vector<std::vector<float>> results;
  for (size_t threads : {1, 2, 3}) {
    Ledger ledger = OpenLedger(std::to_string(threads).c_str());
    TrainingOptions o = Options(DpFpMode::kAggregate, &ledger);
    o.privacy.reproducible_seed = 4;
    o.num_threads = threads;
    auto trainer = Make(o);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(trainer->Step().ok());
    results.emplace_back(trainer->weights().begin(), trainer->weights().end());
    EXPECT_EQ(ledger.Entries()->front().noise, privacy::NoiseKind::kReproducible);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

}  // namespace
}  // namespace wisp::dp_fp_test
