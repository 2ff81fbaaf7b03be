// The plan of a fleet: its text, its hash, and what it refuses.
#include "runtime/fleet/fleet_plan.h"

#include <cmath>
#include <set>

#include "gtest/gtest.h"
#include "runtime/core/hex.h"
#include "tests/unit/fleet/fleet_test_util.h"

namespace wisp::fleet::fleet_plan_test {
namespace {

std::string Refusal(const std::string& text) {
  const Result<FleetPlan> plan = FleetPlan::FromText(text, "plan.json");
  return plan.ok() ? "" : plan.status().message();
}

TEST(FleetPlan, TextReadsBackToTheSamePlan) {
  FleetPlan plan = SomePlan();
  EXPECT_EQ(plan.Check().message(), "");
  const auto read = FleetPlan::FromText(plan.ToText(), "plan.json");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->ToText(), plan.ToText());
  EXPECT_EQ(read->hash(), plan.hash());
  // Numbers that have no short decimal.
  plan.part = FleetPlan::Part::kAdapter;
  plan.adapter_rank = 4;
  plan.method = FleetPlan::Method::kLocal;
  plan.local_steps = 7;
  plan.local_learning_rate = 1.0 / 3;
  plan.clipping_norm = std::sqrt(2.0);
  plan.noise_multiplier = std::exp(1.0);
  plan.optimizer = {.kind = OptimizerKind::kSgd, .learning_rate = std::nextafter(0.1f, 1.0f), .momentum = 1.0f / 3};
  plan.optimizer.decay = Decay::kLinear;
  const auto again = FleetPlan::FromText(plan.ToText(), "plan.json");
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(*again, plan);
  EXPECT_EQ(again->noise_multiplier, plan.noise_multiplier);
  EXPECT_EQ(again->local_learning_rate, plan.local_learning_rate);
  EXPECT_EQ(again->optimizer.learning_rate, plan.optimizer.learning_rate);
  EXPECT_EQ(again->optimizer.momentum, plan.optimizer.momentum);
  EXPECT_EQ(again->optimizer.decay, Decay::kLinear);
}

// Devices and servers of different versions compare it, so it may change with the format's number alone.
TEST(FleetPlan, HashIsThatOfEveryVersion) {
  EXPECT_EQ(ToHex(Sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(ToHex(SomePlan().hash()), "2a6e08f2e0a7a47a34e3520478185e9d5e5a5575d60264eecad5f878e1ddaba0");
  FleetPlan other = SomePlan();
  other.optimizer.final_fraction = 0.5f;
  EXPECT_NE(other.hash(), SomePlan().hash());
}

TEST(FleetPlan, LayoutOfTheTextDoesNotMatter) {
  std::string text = SomePlan().ToText();
  for (char& c : text) c = c == '\n' ? ' ' : c;
  const auto read = FleetPlan::FromText(text, "plan.json");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->hash(), SomePlan().hash());
}

TEST(FleetPlan, FieldsOutOfTheirRange_AreNamed) {
  const struct {
    const char *field, *value, *says;
  } kCases[] = {
      {"fleet_plan", "2", "from 1 to 1"},
      {"name", "\"a b\"", "letters, digits"},
      {"name", "\"\"", "letters, digits"},
      {"base_hash", "\"0000000000000000\"", "16 lower-case hexadecimal digits"},
      {"base_hash", "\"0123456789ABCDEF\"", "16 lower-case hexadecimal digits"},
      {"num_weights", "0", "from 1 to 4294967296"},
      {"part", "\"head\"", "\"all\", \"blocks\" and \"adapter\""},
      {"devices", "1", "from 2 to 1000000000"},
      {"devices", "1e5", "whole numbers"},
      {"rounds", "0", "from 1 to 1000000"},
      {"takes_part", "0", "from 1 to 1000000"},
      {"takes_part", "3", "must divide the 100 rounds"},
      {"evaluators", "0.6", "from 0 to 0.5"},
      {"evaluators", "0", "both above 0 or both 0"},
      {"evaluations", "0", "both above 0 or both 0"},
      {"evaluations", "21", "a multiple of takes_part 5"},
      {"evaluations", "105", "up to the 100 rounds"},
      {"method", "\"average\"", "\"gradient\" and \"local\""},
      {"local_steps", "1", "is 0 for both"},
      {"local_learning_rate", "0.1", "is 0 for both"},
      {"clipping_norm", "0", "from 1e-06 to 1000000"},
      {"bits", "12", "8, 16 or 32"},
      {"weight_bits", "24", "16 or 32"},
      {"noise_multiplier", "0.09", "from 0.1 to 10000"},
      {"epsilon", "101", "to 100"},
      {"delta", "0", "from 1e-30 to 0.001"},
      {"delta", "2e-5", "not below 1 / 99999"},
      {"round_seconds", "0", "from 1 to 604800"},
      {"optimizer", "\"lion\"", "\"adam\", \"adamw\" and \"sgd\""},
      {"learning_rate", "0", "a positive number"},
      {"weight_decay", "0.1", "0 with adam"},
      {"decay", "\"cosine\"", "\"constant\" and \"linear\""},
      {"final_fraction", "2", "from 0 to 1"},
  };
  for (const auto& c : kCases) {
    const std::string refusal = Refusal(WithField(SomePlan().ToText(), c.field, c.value));
    EXPECT_NE(refusal.find(c.says), std::string::npos) << c.field << " " << c.value << ": " << refusal;
    EXPECT_TRUE(refusal.find(c.field) != std::string::npos || refusal.find("optimizer") != std::string::npos)
        << refusal;
  }
}

TEST(FleetPlan, MissingAndUnknownFields_AreRefused) {
  std::string text = SomePlan().ToText();
  EXPECT_NE(Refusal(WithField(text, "momentum", "0,\n  \"nesterov\": true")).find("\"nesterov\" is not known"),
            std::string::npos);
  const size_t at = text.find("  \"takes_part\"");
  text.erase(at, text.find('\n', at) + 1 - at);
  EXPECT_NE(Refusal(text).find("has no \"takes_part\""), std::string::npos);
}

TEST(FleetPlan, SixteenBitsHoldTheirWeights) {
  FleetPlan plan = SomePlan();
  plan.bits = 16;
  plan.num_weights = 85'000'000;
  EXPECT_TRUE(plan.Check().ok());
  plan.num_weights = 86'000'000;
  EXPECT_NE(plan.Check("x.json").message().find("x.json: num_weights is 86000000"), std::string::npos);
}

// A device that trains takes part in one of rounds / takes_part rounds of a block, so the expected number a round is
// all of them over that.
TEST(FleetPlan, CohortsAreWhatBlocksMakeOfThem) {
  const FleetPlan plan = SomePlan();
  const double training = 99999 * 0.9, evaluating = 99999 * 0.1;
  EXPECT_EQ(plan.rounds_per_block(), 20u);
  EXPECT_DOUBLE_EQ(plan.cohort(), training / 20);
  EXPECT_DOUBLE_EQ(plan.cohort_of_evaluation(), evaluating / (20.0 / 5));
  EXPECT_EQ(FleetPlan().cohort_of_evaluation(), 0);
}

TEST(FleetPlan, EvaluationsAreSpreadOverTheBlocks) {
  for (const uint32_t evaluations : {5u, 20u, 35u, 100u}) {
    FleetPlan plan = SomePlan();
    plan.evaluations = evaluations;
    uint32_t next = 0;
    for (uint32_t round = 0; round < plan.rounds; ++round) {
      const std::optional<uint32_t> evaluation = plan.EvaluationAfter(round);
      if (!evaluation) continue;
      EXPECT_EQ(*evaluation, next++);
      EXPECT_EQ(plan.BlockOf(round), *evaluation / (evaluations / plan.takes_part));
    }
    EXPECT_EQ(next, evaluations);
    EXPECT_TRUE(plan.EvaluationAfter(plan.rounds - 1).has_value());
  }
  FleetPlan plan = SomePlan();
  plan.evaluations = 0;
  for (uint32_t round = 0; round < plan.rounds; ++round) EXPECT_FALSE(plan.EvaluationAfter(round).has_value());
}

TEST(FleetPlan, StepsOfAnUpdateAreAPowerOfTwo) {
  FleetPlan plan = SomePlan();
  EXPECT_EQ(plan.steps_per_clip(), 1024u);  // 1.77 sqrt(331520) = 1019.1
  EXPECT_EQ(plan.bytes_of_update(), 331520u);
  EXPECT_EQ(plan.bytes_of_weights(), 663040u);
  plan.bits = 16;
  EXPECT_EQ(plan.steps_per_clip(), uint64_t{1} << 14);
  EXPECT_EQ(plan.bytes_of_update(), 663040u);
  plan.bits = 32;
  EXPECT_EQ(plan.steps_per_clip(), uint64_t{1} << 30);
  plan.weight_bits = 32;
  EXPECT_EQ(plan.bytes_of_weights(), 1326080u);
  plan.bits = 8;
  for (uint64_t d = 1; d <= uint64_t{1} << 32; d *= 3) {
    plan.num_weights = d;
    const uint64_t steps = plan.steps_per_clip();
    EXPECT_GE(static_cast<double>(steps), 1.77 * std::sqrt(static_cast<double>(d)));
    EXPECT_LT(static_cast<double>(steps) / 2, 1.77 * std::sqrt(static_cast<double>(d)));
    EXPECT_EQ((uint64_t{1} << 30) % steps, 0u);
  }
}

// 10,000 devices at a share of 0.1: a standard deviation of 30, so 6 of them fail by chance once in 5e8 runs; the hash
// is fixed, and so is the count.
TEST(IsEvaluator, ChoosesTheShareOfDevices) {
  FleetPlan plan = SomePlan();
  const auto count = [&plan] {
    uint64_t evaluators = 0;
    const Sha256Hash hash = plan.hash();
    for (uint64_t node = 0; node < 10'000; ++node) evaluators += IsEvaluator(plan, hash, node) ? 1 : 0;
    return static_cast<double>(evaluators);
  };
  EXPECT_NEAR(count(), 1000, 180);
  std::set<uint64_t> of_one, of_other;
  FleetPlan other = plan;
  other.name = "books";
  for (uint64_t node = 0; node < 1000; ++node) {
    if (IsEvaluator(plan, plan.hash(), node)) of_one.insert(node);
    if (IsEvaluator(other, other.hash(), node)) of_other.insert(node);
  }
  EXPECT_NE(of_one, of_other);
  plan.evaluators = 0;
  EXPECT_EQ(count(), 0);
}

}  // namespace
}  // namespace wisp::fleet::fleet_plan_test
