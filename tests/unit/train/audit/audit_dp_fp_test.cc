// The audit of DP-FP: its steps refute mode paper's claim. The private modes withstand the same attack, and fall to it
// if their claim is false. Noise has fixed seeds; a bound is wrong by chance with probability 1e-4 in each audit.
#include "runtime/methods/dp_fp/audit_dp_fp.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/methods/dp_fp/dp_fp_report.h"
#include "tests/unit/layers/classifier_test_util.h"

namespace wisp::audit_dp_fp_test {
namespace {

using privacy::Ledger;
using test::kTinyClassifier;

class AuditDpFp : public test::ClassifierTraining {
 protected:
  // p = batch / 100 / micro_batches
  DpFpAuditOptions Step(DpFpMode mode, uint32_t batch, uint32_t micro_batches) {
    TrainingOptions o{.method = Method::kDpFp,
                      .sampling = Sampling::kPoisson,
                      .expected_batch = batch,
                      .num_records_public = 100,
                      .optimizer = {.kind = OptimizerKind::kAdamW, .learning_rate = 1e-3f},
                      .privacy = {.noise_multiplier = 1,
                                  .ledger = mode == DpFpMode::kPaper ? nullptr : &ledger_,
                                  .run = "audit",
                                  .reproducible_seed = 11},
                      .dp_fp = {.mode = mode, .micro_batches = micro_batches, .noise_multiplier = 1}};
    DpFpAuditOptions a{.architecture = kTinyClassifier,
                       .weights = weights_,
                       .training = o,
                       .others = others_,
                       .canary = test::Labelled(canary_, 1)};
    a.confidence = 1 - 1e-4;
    return a;
  }
  DpFpAuditResult Audit(const DpFpAuditOptions& options) {
    auto result = AuditDpFpStep(options);
    EXPECT_TRUE(result.ok()) << result.status().message();
    if (!result.ok()) return {};
    for (const auto& at : result->at_delta) {
      std::printf("delta %g: rows %.4f, head %.4f of %.4f\n", at.delta, at.rows.epsilon, at.head.epsilon, at.claimed);
    }
    return *result;
  }

  const std::vector<float> weights_ =
      test::StartClassifier(kTinyClassifier, {.table_deviation = 0.5f, .position_deviation = 0.5f}, 1);
  Ledger ledger_ = OpenLedger("ledger");
  const std::vector<int32_t> first_ = {0, 1, 2}, second_ = {0, 3, 1, 4}, canary_ = {0, 7, 1, 8};
  const std::vector<Record> others_ = {test::Labelled(first_, 0), test::Labelled(second_, 1)};
};

// With this much noise the paper's limit theorem calls a step almost perfectly private, and every run names the
// canary's tokens.
TEST_F(AuditDpFp, PaperModeRefutesItsOwnClaim) {
  DpFpAuditOptions o = Step(DpFpMode::kPaper, 100, 1);
  o.training.dp_fp.noise_multiplier = 20;
  const DpFpAuditResult always = Audit(o);
  EXPECT_TRUE(always.refuted);
  EXPECT_NEAR(1 - always.level, 1e-4 / 6, 1e-12) << "three deltas, two numbers each";
  for (const auto& at : always.at_delta) {
    EXPECT_LT(at.claimed, 0.3);
    EXPECT_GT(at.rows.epsilon, 2);
  }
  // Sampled one time in ten: with sampling the claim is even smaller.
  o = Step(DpFpMode::kPaper, 10, 4);
  o.training.dp_fp.noise_multiplier = 20;
  o.observations = 1500;
  o.deltas = {1e-5};
  const DpFpAuditResult sampled = Audit(o);
  ASSERT_EQ(sampled.at_delta.size(), 1u);
  EXPECT_TRUE(sampled.refuted);
  EXPECT_LT(sampled.at_delta[0].claimed, 0.02);
  EXPECT_GT(sampled.at_delta[0].rows.epsilon, 0.5);
}

TEST_F(AuditDpFp, PrivateModesStandTheSameAttackAndPayForEveryStep) {
  size_t charges = 0;
  for (DpFpMode mode : {DpFpMode::kAggregate, DpFpMode::kClipped}) {
    DpFpAuditOptions o = Step(mode, mode == DpFpMode::kAggregate ? 100 : 40, 2);
    o.observations = 50;
    const DpFpAuditResult r = Audit(o);
    EXPECT_FALSE(r.refuted);
    for (const auto& at : r.at_delta) EXPECT_GT(at.claimed, 0);
    charges += 2 * o.observations * (mode == DpFpMode::kClipped ? 2 : 1);
    EXPECT_EQ(ledger_.Entries()->size(), charges);
  }
}

// The attack can refute them, by the head alone.
TEST_F(AuditDpFp, FalseClaimOfAPrivateModeIsRefuted) {
  DpFpAuditOptions o = Step(DpFpMode::kAggregate, 100, 1);
  o.training.dp_fp.noise_multiplier = 0.25;
  o.observations = 150;
  o.claimed_epsilon = 0.5;
  const DpFpAuditResult r = Audit(o);
  ASSERT_EQ(r.at_delta.size(), 3u);
  EXPECT_TRUE(r.refuted);
  EXPECT_EQ(r.at_delta[0].rows.epsilon, 0) << "nothing below the noise may move";
}

TEST_F(AuditDpFp, InvalidAudits_AreRefused) {
  const auto code = [](const DpFpAuditOptions& o) { return AuditDpFpStep(o).status().code(); };
  DpFpAuditOptions o = Step(DpFpMode::kAggregate, 100, 1);
  o.training.privacy.ledger = nullptr;
  EXPECT_EQ(code(o), StatusCode::kPrivacyRefused);
  o = Step(DpFpMode::kPaper, 100, 1);
  o.training.privacy.ledger = &ledger_;
  EXPECT_EQ(code(o), StatusCode::kPrivacyRefused);
  o = Step(DpFpMode::kPaper, 100, 1);
  o.canary = others_[0];
  EXPECT_EQ(code(o), StatusCode::kInvalidArgument);
  for (double claim : {std::nan(""), HUGE_VAL, -1.0}) {
    o = Step(DpFpMode::kPaper, 100, 1);
    o.claimed_epsilon = claim;
    EXPECT_EQ(code(o), StatusCode::kInvalidArgument) << claim;
  }
  o = Step(DpFpMode::kPaper, 100, 1);
  o.deltas = {};
  EXPECT_EQ(code(o), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace wisp::audit_dp_fp_test
