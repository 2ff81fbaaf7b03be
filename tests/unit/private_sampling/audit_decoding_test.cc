// Audits of private decoding: the charged epsilon holds for every pair of models, some pair reaches it, and smaller
// claims are refuted.
#include "runtime/private_sampling/audit_decoding.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/core/temporary_folder.h"

namespace wisp::audit_decoding_test {
namespace {

DecodingAuditResult Audit(const DecodingAuditOptions& options) {
  const auto result = AuditDecoding(options);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *result : DecodingAuditResult{};
}

std::vector<DecodingAuditOptions> Modes() {
  return {{.mode = DecodingMode::kUniform, .num_items = 5, .lambda = 0.2},
          {.mode = DecodingMode::kNonUniform, .num_items = 4, .lambda = 0.2, .mixing = {0.5, 0.3, 0.15, 0.05}},
          {.mode = DecodingMode::kBaseAnchored, .num_items = 5, .clip = 0.7, .temperature = 1.3}};
}

TEST(AuditDecoding, ChargeHoldsAndOneSampleReachesIt) {
  for (DecodingAuditOptions o : Modes()) {
    const DecodingAuditResult one = Audit(o);
    EXPECT_FALSE(one.refuted);
    EXPECT_GT(one.exact, 0.98 * one.claimed);
    for (uint32_t samples : {2u, 3u}) {
      o.samples = samples;
      o.delta = 0.01;
      const DecodingAuditResult several = Audit(o);
      EXPECT_FALSE(several.refuted) << several.exact << " of " << several.claimed << "; " << *several.exact_at_delta
                                    << " of " << *several.claimed_at_delta;
      EXPECT_GT(several.exact, one.exact);
      EXPECT_LT(*several.claimed_at_delta, several.claimed + 1e-9);
      EXPECT_GT(*several.exact_at_delta, 0);
    }
  }
  EXPECT_NEAR(Audit(Modes()[0]).claimed, std::log((1 + 4 * 0.2) / (1 - 0.2)), 1e-9);
  EXPECT_NEAR(Audit(Modes()[1]).claimed, std::log(1 + 0.2 / (0.8 * 0.05)), 1e-9);
  EXPECT_NEAR(Audit(Modes()[2]).claimed, 4 * 0.7 / 1.3, 1e-6);
}

TEST(AuditDecoding, SmallerClaimIsCaught) {
  for (DecodingAuditOptions o : Modes()) {
    o.claimed_epsilon = 0.95 * Audit(o).claimed;
    EXPECT_TRUE(Audit(o).refuted);
  }
  // A set of k items is more than one sample: the charge of the first sample does not pay for two.
  for (DecodingAuditOptions o : Modes()) {
    o.claimed_epsilon = Audit(o).claimed;
    o.samples = 2;
    EXPECT_TRUE(Audit(o).refuted);
  }
}

TEST(AuditDecoding, SamplerKeepsToItsLaw) {
  const test::TemporaryFolder folder;
  auto ledger =
      privacy::Ledger::Open(folder / "ledger", {.dataset = "made up", .record = privacy::RecordSpec::OfEvents({})});
  ASSERT_TRUE(ledger.ok());
  for (DecodingAuditOptions o : Modes()) {
    o.observations = 4000;
    o.base_scores = std::vector<float>(o.num_items, 0.0f);
    o.ledger = &*ledger;
    o.reproducible_seed = 5;
    o.confidence = 1 - 1e-4;
    const DecodingAuditResult r = Audit(o);
    EXPECT_FALSE(r.refuted);
    ASSERT_TRUE(r.sampled);
    EXPECT_GT(*r.sampled, 0.3 * r.exact);
    // This sampler uses more of the private model than it is charged for.
    DecodingAuditOptions claimed = o;
    claimed.claimed_epsilon = 0.4 * *r.sampled;
    EXPECT_TRUE(Audit(claimed).refuted);
  }
}

TEST(AuditDecoding, RefusesWhatItCannotEnumerate) {
  EXPECT_FALSE(AuditDecoding({.num_items = 7, .lambda = 0.1}).ok());
  EXPECT_FALSE(AuditDecoding({.num_items = 4, .samples = 5, .lambda = 0.1}).ok());
  EXPECT_FALSE(AuditDecoding({.num_items = 4, .lambda = 1}).ok());
  EXPECT_FALSE(AuditDecoding({.mode = DecodingMode::kPlain, .num_items = 4}).ok());
  EXPECT_FALSE(
      AuditDecoding({.mode = DecodingMode::kNonUniform, .num_items = 4, .lambda = 0.1, .mixing = {1, 1}}).ok());
  EXPECT_FALSE(AuditDecoding({.mode = DecodingMode::kBaseAnchored, .num_items = 4}).ok());
  EXPECT_FALSE(AuditDecoding({.num_items = 4, .lambda = 0.1, .delta = 1}).ok());
  // No epsilon exceeds a claim that is not a number, so it could never be refuted.
  for (double claim : {std::nan(""), HUGE_VAL, -1.0})
    EXPECT_FALSE(AuditDecoding({.num_items = 4, .lambda = 0.1, .claimed_epsilon = claim}).ok());
}

}  // namespace
}  // namespace wisp::audit_decoding_test
