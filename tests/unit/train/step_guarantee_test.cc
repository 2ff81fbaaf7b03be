// The promises of a step, for every method. One more record moves the release by at most the clipping norm, dropout
// included. Non-finite gradients stay out. The charge covers the samples. Runs repeat and resume bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "runtime/train/popularity.h"
#include "runtime/train/trainer.h"
#include "tests/unit/layers/parameter_names.h"
#include "tests/unit/needs.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::step_guarantee_test {
namespace {

// A way to train: a method, with or without a sampled softmax.
struct Way {
  const char* name;
  Method method;
  uint32_t num_negatives;
};
const std::vector<Way> kWays = test::Built<Way>({{"phantom", Method::kPhantom, 0},
                                                 {"phantom sampled", Method::kPhantom, 8},
                                                 {"rgp", Method::kRgp, 0},
                                                 {"fest", Method::kFest, 0},
                                                 {"fest sampled", Method::kFest, 8},
                                                 {"adafest", Method::kAdaFest, 0},
                                                 {"adafest sampled", Method::kAdaFest, 8},
                                                 {"adafest+", Method::kAdaFestPlus, 0},
                                                 {"adafest+ sampled", Method::kAdaFestPlus, 8}});

class StepGuarantee : public test::RingTraining {
 protected:
  StepGuarantee() : RingTraining(59) {}

  TrainingOptions Options(const Way& way, double noise) {
    TrainingOptions o{.method = way.method,
                      .sampling = Sampling::kPoisson,
                      .num_steps = 10,
                      .expected_batch = 30,
                      .num_records_public = 60,
                      .optimizer = {.learning_rate = 0.01f},
                      .seed = 5,
                      .num_threads = 2,
                      .privacy = {.noise_multiplier = noise,
                                  .clipping_norm = 0.25,
                                  .ledger = &ledger_,
                                  .run = way.name,
                                  .reproducible_seed = 4},
                      .sparse = {.map_threshold = 0.4},
                      .num_negatives = way.num_negatives};
    if (way.method == Method::kFest || way.method == Method::kAdaFestPlus) o.sparse.rows = rows_;
    return o;
  }
  std::unique_ptr<Trainer> Make(const TrainingOptions& o, std::span<const Record> records,
                                const Architecture& a = kSmall) {
    auto trainer = Trainer::Create(a, a == kSmall ? start_ : test::StartWeights(a), records, o);
    EXPECT_TRUE(trainer.ok()) << trainer.status().message();
    return *std::move(trainer);
  }
  static std::vector<float> Copy(std::span<const float> weights) { return {weights.begin(), weights.end()}; }

  // Returns the weights after step 1 relative to the start.
  std::vector<float> SecondStep(const TrainingOptions& o, std::span<const Record> records, const Architecture& a) {
    auto trainer = Make(o, records, a);
    const std::vector<float> start = Copy(trainer->weights());
    EXPECT_TRUE(trainer->Step().ok());
    Checkpoint saved = *trainer->Save();
    saved.weights = start;
    EXPECT_TRUE(trainer->Restore(saved).ok());
    EXPECT_TRUE(trainer->Step().ok());
    return Copy(trainer->weights());
  }

  privacy::Ledger ledger_ = OpenLedger("l");
  const std::vector<int32_t> rows_ = {0, 2, 3, 5, 7, 8, 13, 14, 21, 22, 28};
};

// The joining record stands before all others, so nothing that depends on the number of records, or on a record's
// place, may change. Its items are repeated, padded, or a single one.
TEST_F(StepGuarantee, ARecordThatJoinsMovesNothingButItsOwnShare) {
  const std::vector<int32_t> repeated = {3, 3, 3, 3, 5, 3}, padded = {-1, -1, 7, 8}, single = {2};
  UniformArchitecture cosine = kSmall;
  cosine.temperature = 0.3f;
  for (const Way& way : kWays) {
    // Another set of rows may be selected, so there is no such bound.
    if (way.method == Method::kAdaFest || way.method == Method::kAdaFestPlus) continue;
    for (const UniformArchitecture& a : {kSmall, cosine}) {
      if (a == cosine && (way.num_negatives > 0 || way.method == Method::kRgp)) continue;  // not offered
      for (const auto* items : {&repeated, &padded, &single}) {
        std::vector<Record> records = {{*items, *items}};
        records.insert(records.end(), ring_.records.begin(), ring_.records.end());
        TrainingOptions o = Options(way, 1.0);
        o.expected_batch = 60;  // q = 1: everybody takes part
        o.optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 60.0f};
        o.dropout = {.embedding = 0.3f, .attention = 0.3f, .residual = 0.3f};
        o.num_threads = 1;
        const std::vector<float> with = SecondStep(o, records, a),
                                 without = SecondStep(o, std::span<const Record>(records).subspan(1), a);
        double squares = 0;
        for (size_t i = 0; i < with.size(); ++i) squares += std::pow(static_cast<double>(with[i]) - without[i], 2);
        EXPECT_LE(std::sqrt(squares), 0.25 * (1 + 1e-3))
            << way.name << ", " << items->size() << " items, temperature " << a.temperature << "; float weights round";
        EXPECT_GT(std::sqrt(squares), 0.05) << way.name;
      }
    }
  }
}

// One row is so large that every gradient overflows: records are dropped and counted, and noise alone moves the
// weights.
TEST_F(StepGuarantee, GradientsThatAreNotFiniteStayOutOfEverySum) {
  for (const Way& way : kWays) {
    for (size_t i = 0; i < kSmall.width; ++i) start_[3 * kSmall.width + i] = 3e38f * (i % 2 == 0 ? 1.0f : -1.0f);
    TrainingOptions o = Options(way, 1.0);
    o.expected_batch = 60;
    o.optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 60.0f};
    const std::vector<int32_t> items = {3, 3, 5};
    const std::vector<Record> records(20, Record{items, items});
    auto trainer = Make(o, records);
    const auto report = trainer->Step();
    ASSERT_TRUE(report.ok());
    size_t moved = 0;
    for (size_t i = 0; i < start_.size(); ++i) {
      ASSERT_TRUE(std::isfinite(trainer->weights()[i])) << way.name;
      EXPECT_TRUE(i / kSmall.width == 3 || std::abs(trainer->weights()[i] - start_[i]) < 20.0f) << way.name;
      moved += trainer->weights()[i] != start_[i];
    }
    EXPECT_GT(moved, 0u) << way.name << ": the step is noised all the same";
    EXPECT_EQ(report->num_dropped, report->num_records) << way.name;
  }
}

TEST_F(StepGuarantee, EveryMethod_RepeatsAndResumesBitForBit) {
  UniformArchitecture corrected = kSmall;
  corrected.re_attention = ReAttention::kOn;
  for (const UniformArchitecture& a : {kSmall, corrected}) {
    if (a == corrected && !kHasReAttention) continue;
    for (const Way& way : kWays) {
      TrainingOptions o = Options(way, 0.5);
      o.dropout.residual = 0.2f;
      const auto run = [&](bool interrupted) {
        auto trainer = Make(o, ring_.records, a);
        for (int i = 0; i < 6; ++i) {
          if (interrupted && i == 4) {
            const Checkpoint saved = *trainer->Save();
            trainer = Make(o, ring_.records, a);
            EXPECT_TRUE(trainer->Restore(saved).ok());
          }
          EXPECT_TRUE(trainer->Step().ok());
        }
        return Copy(trainer->weights());
      };
      const std::vector<float> once = run(false);
      EXPECT_EQ(once, run(false)) << way.name;
      EXPECT_EQ(once, run(true)) << way.name;
    }
  }
}

// The batch is empty, so only noise moves the weights, and its deviation is the charged one, for every method.
TEST_F(StepGuarantee, TheNoiseOfEveryMethodHasItsDeviation) {
  for (const Way& way : kWays) {
    TrainingOptions o = Options(way, 2.0);
    o.optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = 120.0f};  // 30 / 0.25: in units of the clipping norm
    auto trainer = Make(o, {});
    ASSERT_TRUE(trainer->Step().ok());
    const auto& parameters = trainer->graph().parameters();
    double squares = 0, n = 0;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const ParameterSpec& p = parameters[i];
      // RGP has its noise in other coordinates.
      if (!p.trained || (way.method == Method::kRgp && p.shape != ParameterShape::kVector)) continue;
      for (size_t j = p.offset; j < p.offset + p.size(); ++j) {
        const double moved = static_cast<double>(trainer->weights()[j]) - start_[j];
        if (moved == 0 && i == 0) continue;  // a row outside of the set
        squares += moved * moved, n += 1;
      }
    }
    const double expected = IsAdaptive(way.method) ? SplitNoise(2.0, 1).gradient : 2.0;
    EXPECT_GT(n, 150) << way.name;
    EXPECT_NEAR(std::sqrt(squares / n) / expected, 1, 5 / std::sqrt(2 * n))
        << way.name << "; five standard errors: alpha 6e-7";
  }
}

// A refused charge comes before all sampling: no stream has moved.
TEST_F(StepGuarantee, NothingIsDrawnForAChargeThatIsRefused) {
  auto other = *privacy::Ledger::Open(
      folder_ / "zero-out",
      {.dataset = "ring", .record = privacy::RecordSpec::OfEvents({}), .adjacency = privacy::Adjacency::kZeroOut});
  for (const Way& way : kWays) {
    TrainingOptions o = Options(way, 1.0);
    o.privacy.ledger = &other;
    auto trainer = Make(o, ring_.records);
    EXPECT_EQ(trainer->Step().status().code(), StatusCode::kPrivacyRefused);
    const Checkpoint saved = *trainer->Save();
    for (const auto& stream : saved.streams) EXPECT_EQ(stream.position, 0u) << way.name << " " << stream.name;
  }
  auto noise = privacy::RandomStream::Reproducible(3, privacy::StreamPurpose::kNoise);
  const auto popularity = PrivatePopularity(ring_.records, 30, {.ledger = &other, .run = "h"}, noise);
  EXPECT_EQ(popularity.status().code(), StatusCode::kPrivacyRefused);
  EXPECT_EQ(noise.position(), 0u);
}

// The ledger's slack for discrete noise counts every noised coordinate, also those of FEST's rows.
TEST_F(StepGuarantee, TheSlackChargedIsThatOfAllReleasedNumbers) {
  for (const Way& way : kWays) {
    TrainingOptions o = Options(way, 1.0);
    auto trainer = Make(o, ring_.records);
    ASSERT_TRUE(trainer->Step().ok());
    const auto entries = *ledger_.Entries();
    EXPECT_DOUBLE_EQ(entries.back().loss_slack, StepLossSlack(kSmall, o, 1.0, 1)) << way.name;
  }
}

// AdaFEST's noise on the gradient is larger than the charged noise; the grid must be able to hold it.
TEST_F(StepGuarantee, NoiseBeyondTheGridIsRefusedNotCutOff) {
  WISP_NEEDS(kHasSparse);
  TrainingOptions o = Options({"adafest", Method::kAdaFest, 0}, 4e5);
  o.sparse.map_noise_ratio = 1e-3;
  const Status status = Trainer::Check(kSmall, start_, ring_.records, o);
  EXPECT_NE(status.message().find("noise multiplier"), std::string::npos) << status.message();
}

// If a run resumed with a ledger that never heard of its first steps, it would report less than it has spent.
TEST_F(StepGuarantee, Checkpoint_ResumesOnlyWithTheLedgerThatPaid) {
  TrainingOptions o = Options(kWays[0], 1.0);
  o.privacy.reproducible_seed.reset();
  auto first = Make(o, ring_.records);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(first->Step().ok());
  Checkpoint saved = *first->Save();
  EXPECT_EQ(saved.receipt, *ledger_.MakeReceipt(o.privacy.run));
  saved.receipt.clear();  // then the number of charged steps decides
  auto other = OpenLedger("other");
  o.privacy.ledger = &other;
  auto second = Make(o, ring_.records);
  EXPECT_EQ(second->Restore(saved).code(), StatusCode::kPrivacyRefused);
  ASSERT_TRUE(second->Step().ok());  // one step of the same name is not three
  o.privacy.run = "another";
  auto third = Make(o, ring_.records);  // steps of another name do not count
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(third->Step().ok());
  EXPECT_EQ(Make(o, ring_.records)->Restore(saved).code(), StatusCode::kPrivacyRefused);
  o.privacy.ledger = &ledger_;
  EXPECT_TRUE(Make(o, ring_.records)->Restore(saved).ok());
}

// A copy of the ledger that was charged by itself has as many steps for the run, but not those that the checkpoint
// holds.
TEST_F(StepGuarantee, Checkpoint_DoesNotResumeWithACopyThatDidNotPay) {
  TrainingOptions o = Options(kWays[0], 1.0);
  o.privacy.reproducible_seed.reset();
  o.privacy.steps_per_charge = 1;
  auto first = Make(o, ring_.records);
  ASSERT_TRUE(first->Step().ok());
  const Checkpoint early = *first->Save();
  std::filesystem::copy_file(ledger_.path(), ledger_.path() + ".copy");
  ASSERT_TRUE(first->Step().ok());
  const Checkpoint late = *first->Save();
  auto copy = *privacy::Ledger::OpenExisting(ledger_.path() + ".copy");
  o.privacy.ledger = &copy;
  auto second = Make(o, ring_.records);
  ASSERT_TRUE(second->Restore(early).ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(second->Step().ok());
  const Status refused = Make(o, ring_.records)->Restore(late);
  EXPECT_EQ(refused.code(), StatusCode::kPrivacyRefused);
  EXPECT_NE(refused.message().find("did not pay for what it holds"), std::string::npos) << refused.message();
  EXPECT_TRUE(Make(o, ring_.records)->Restore(*second->Save()).ok());
}

// Extreme variances are clamped: no score and no gradient becomes infinite or NaN.
TEST_F(StepGuarantee, VariancesWithoutBoundLeaveEverythingFinite) {
  WISP_NEEDS(kHasReAttention);
  UniformArchitecture a = kSmall;
  a.re_attention = ReAttention::kOn;
  a.num_blocks = 2;
  const auto parameters = ListParameters(a);
  for (float variance : {10.0f, 1e3f, 1e6f, 1e12f, 3e38f, INFINITY}) {
    std::vector<float> weights = test::StartWeights(a);
    for (const char* name : {test::kItemVariance, test::kParameterVariance}) {
      const ParameterSpec& p = parameters[test::FindIndex(parameters, name)];
      std::fill_n(weights.begin() + static_cast<std::ptrdiff_t>(p.offset), p.size(), variance);
    }
    auto trainer = *Trainer::Create(a, weights, ring_.records, Options(kWays[0], 1.0));
    const auto report = trainer->Step();
    ASSERT_TRUE(report.ok());
    EXPECT_GT(report->num_records, 0u);
    EXPECT_EQ(report->num_dropped, 0u) << variance;
    EXPECT_TRUE(std::isfinite(report->mean_loss)) << variance;
  }
}

// The variances of Re-Attention are those of the actual noise: AdaFEST's is larger than the charged one, and parameters
// that RGP freezes have none.
TEST_F(StepGuarantee, VariancesAreOfTheNoiseThatIsDrawn) {
  WISP_NEEDS(kHasReAttention && kHasRgp && kHasSparse);
  UniformArchitecture a = kSmall;
  a.re_attention = ReAttention::kOn;
  const auto parameters = ListParameters(a);
  const size_t of_item = parameters[test::FindIndex(parameters, test::kItemVariance)].offset;
  const size_t of_parameter = parameters[test::FindIndex(parameters, test::kParameterVariance)].offset;
  const std::vector<float> frequencies(a.num_items, 0.5f);
  for (auto source : {ReAttentionOptions::Source::kOptimizer, ReAttentionOptions::Source::kPrinted}) {
    TrainingOptions o = Options({"rgp", Method::kRgp, 0}, 1.0);
    o.re_attention = {.source = source, .item_frequencies = frequencies};
    o.rgp.item_tables = o.rgp.vectors = RgpTrain::kFrozen;
    auto rgp = Make(o, ring_.records, a);
    ASSERT_TRUE(rgp->Step().ok());
    for (size_t i = 0; i < a.num_items; ++i) EXPECT_EQ(rgp->weights()[of_item + i], 0) << i;
    for (size_t i = 1; i < test::FindIndex(parameters, test::kItemVariance); ++i) {
      const float variance = rgp->weights()[of_parameter + i];
      EXPECT_TRUE(parameters[i].shape != ParameterShape::kVector || variance == 0) << parameters[i].name;
      EXPECT_TRUE(parameters[i].shape != ParameterShape::kMatrix || variance > 0) << parameters[i].name;
    }
  }
  TrainingOptions o = Options({"adafest", Method::kAdaFest, 0}, 1.0);
  o.re_attention = {.source = ReAttentionOptions::Source::kPrinted, .item_frequencies = frequencies};
  o.sparse.map_noise_ratio = 0.5;
  const double deviation = SplitNoise(1.0, 0.5).gradient * 0.25 / 30;
  auto adafest = Make(o, ring_.records, a);
  EXPECT_NEAR(adafest->weights()[of_parameter + 1], deviation * deviation, 1e-6 * deviation * deviation);
}

}  // namespace
}  // namespace wisp::step_guarantee_test
