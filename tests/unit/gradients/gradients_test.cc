// Compares the product's record gradients, norms and clipped sums with dual numbers through a naive recommender.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/unit/gradients/gradient_test_util.h"

namespace wisp::gradients_test {
namespace {

using test::Harness;
using test::NaiveGradient;
using test::OwnedRecord;
using test::RandomRecord;
using test::RandomWeights;
using test::SmallArchitectures;

constexpr double kTolerance = 2e-5;  // relative to the gradient's norm: float against double through two blocks

struct Case {
  const char* name;
  OwnedRecord record;
};

std::vector<Case> Cases(const Architecture& a) {
  std::vector<Case> cases = {{"full length", RandomRecord(a.num_items, a.max_length, 1)},
                             {"one position", RandomRecord(a.num_items, 1, 2)},
                             {"padded", RandomRecord(a.num_items, a.max_length, 3, 2)},
                             {"short", RandomRecord(a.num_items, 3, 4)}};
  OwnedRecord repeated = RandomRecord(a.num_items, 5, 5);
  repeated.inputs = {3, 3, 7, 3, 7};
  repeated.targets = {3, 7, 3, 7, 3};
  cases.push_back({"repeated items", repeated});
  cases.push_back({"first and last item", test::EndsRecord(a.num_items)});
  return cases;
}

std::vector<double> GetSum(const Harness& h, const FloatGradientSum& sum) {
  std::vector<float> flat(h.flat.size());
  h.trained.Scatter(h.graph.parameters(), sum.sum(), flat);
  return {flat.begin(), flat.end()};
}

double Distance(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> difference(a.size());
  for (size_t i = 0; i < a.size(); ++i) difference[i] = a[i] - b[i];
  return test::Norm(difference);
}

// One gradient for each case: the oracle is slow, and does not depend on the op table.
std::vector<std::vector<double>> NaiveGradients(const Architecture& a, const std::vector<float>& weights) {
  std::vector<std::vector<double>> gradients;
  for (const Case& c : Cases(a)) gradients.push_back(NaiveGradient(a, weights, c.record.view()));
  return gradients;
}

// Passes on each factor of the blocks twice, as a graph would whose blocks share their weights and get the same rows.
class Twice final : public FactorSink {
 public:
  explicit Twice(FactorSink& sink) : sink_(sink) {}
  bool Wants(size_t parameter) const override { return sink_.Wants(parameter); }
  void Outer(const OuterFactor& f) override {
    sink_.Outer(f);
    sink_.Outer(f);
  }
  void Rows(const RowsFactor& f) override { sink_.Rows(f); }
  void Vector(const VectorFactor& f) override {
    sink_.Vector(f);
    sink_.Vector(f);
  }

 private:
  FactorSink& sink_;
};

// If a parameter has two uses, no factor is lost: they add up, or the record is dropped.
TEST(UsedTwice, FactorsAddUpOrTheRecordIsDropped) {
  const Architecture a = SmallArchitectures()[2];  // untied, so that the head's table too gets only Outer
  const std::vector<float> weights = RandomWeights(a, 3);
  Harness h(a, weights, kernels::BestOps());
  const OwnedRecord owned = RandomRecord(a.num_items, 5, 9);
  const Record record = owned.view();
  const RecordOptions options;
  RecordContext context{.weights = h.view, .buffers = h.buffers, .options_B = &options};
  struct None final : HeadReplay {
    void Replay(FactorSink&) override {}
  } none;
  for (const NormForm form : {NormForm::kFormed, NormForm::kGram}) {
    std::vector<std::vector<float>> sums;
    for (const bool twice : {false, true}) {
      FloatGradientSum sum(kernels::BestOps(), h.trained.size(), 1);
      sum.Clear();
      PhantomGradients gradients(kernels::BestOps(), h.Setup(), {.clip = ClipRule::Flat(1e6), .form = form}, sum);
      Twice again(gradients);
      FactorSink& sink = twice ? static_cast<FactorSink&>(again) : gradients;
      double loss = 0;
      gradients.BeginRecord(record.inputs);
      h.graph.Forward(context, {&record, 1}, &loss);
      h.graph.Backward(context, {&record, 1}, sink);
      const RecordOutcome outcome = gradients.FinishRecord(none);
      EXPECT_EQ(outcome.finite, form == NormForm::kFormed || !twice);
      sums.emplace_back(sum.sum().begin(), sum.sum().end());
    }
    for (uint32_t p : h.trained.parameters()) {
      if (form == NormForm::kGram || h.graph.parameters()[p].role == ParameterRole::kItemTable ||
          h.graph.parameters()[p].role == ParameterRole::kPositionTable)
        continue;
      for (size_t i = h.trained.offset(p); i < h.trained.offset(p) + h.graph.parameters()[p].size(); ++i)
        EXPECT_EQ(sums[1][i], 2 * sums[0][i]) << h.graph.parameters()[p].name;
    }
    if (form == NormForm::kGram) {
      EXPECT_EQ(test::Norm(std::vector<double>(sums[1].begin(), sums[1].end())), 0);
    }
  }
}

// Every switch, and models of two towers.
std::vector<Architecture> AllKinds() {
  std::vector<Architecture> all = SmallArchitectures();
  for (const Architecture& a : test::TowerArchitectures()) all.push_back(a);
  return all;
}

class Gradients : public ::testing::TestWithParam<size_t> {};

TEST_P(Gradients, RecordGradientEqualsDualNumbers) {
  const Architecture a = AllKinds()[GetParam()];
  const std::vector<float> weights = RandomWeights(a, 11);
  const auto naive = NaiveGradients(a, weights);
  for (const kernels::OpTable* ops : kernels::AllOps()) {
    Harness h(a, weights, *ops);
    for (size_t i = 0; i < naive.size(); ++i) {
      const Case c = Cases(a)[i];
      FloatGradientSum sum(*ops, h.flat.size(), 1);
      PhantomGradients gradients(*ops, h.Setup(), {}, sum);
      h.Add(c.record.view(), gradients);
      EXPECT_LT(Distance(GetSum(h, sum), naive[i]), kTolerance * test::Norm(naive[i])) << ops->name << ", " << c.name;
    }
  }
}

TEST_P(Gradients, NormsOfBothFormsEqualDualNumbers) {
  const Architecture a = AllKinds()[GetParam()];
  const std::vector<float> weights = RandomWeights(a, 12);
  const auto naive = NaiveGradients(a, weights);
  for (const kernels::OpTable* ops : kernels::AllOps()) {
    Harness h(a, weights, *ops);
    for (NormForm form : {NormForm::kFormed, NormForm::kGram}) {
      FloatGradientSum sum(*ops, h.flat.size(), 1);
      PhantomGradients gradients(*ops, h.Setup(), {.clip = ClipRule::Flat(1e9), .form = form}, sum);
      // one sink takes a ragged batch: nothing of the first records may remain
      for (size_t i = 0; i < naive.size(); ++i) {
        const Case c = Cases(a)[i];
        const double expected = test::Norm(naive[i]);
        EXPECT_NEAR(h.Add(c.record.view(), gradients).norm, expected, 1e-5 * expected) << ops->name << ", " << c.name;
      }
    }
  }
}

TEST_P(Gradients, ClippedSumEqualsNaiveClippedSum) {
  const Architecture a = AllKinds()[GetParam()];
  const std::vector<float> weights = RandomWeights(a, 13);
  const auto naive = NaiveGradients(a, weights);
  for (const kernels::OpTable* ops : kernels::AllOps()) {
    Harness h(a, weights, *ops);
    for (NormForm form : {NormForm::kFormed, NormForm::kGram}) {
      for (ClipRule rule : {ClipRule::Flat(0.3), ClipRule::Automatic(0.3)}) {
        FloatGradientSum sum(*ops, h.flat.size(), 1);
        PhantomGradients gradients(*ops, h.Setup(), {.clip = rule, .form = form}, sum);
        std::vector<double> expected(h.flat.size(), 0.0);
        for (size_t i = 0; i < naive.size(); ++i) {
          const Case c = Cases(a)[i];
          h.Add(c.record.view(), gradients);
          const std::vector<double>& g = naive[i];
          const double factor =
              rule.kind() == ClipKind::kFlat ? std::min(1.0, 0.3 / test::Norm(g)) : 0.3 / (test::Norm(g) + 0.01);
          for (size_t j = 0; j < g.size(); ++j) expected[j] += factor * g[j];
        }
        EXPECT_LT(Distance(GetSum(h, sum), expected), kTolerance * test::Norm(expected)) << ops->name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EverySwitch, Gradients, ::testing::Range<size_t>(0, AllKinds().size()));

// Adding a record moves the exact sum by at most C, in any form, and removing it is exact.
TEST(ExactSum, AddingARecordMovesTheSumByAtMostTheBound) {
  const Architecture a = SmallArchitectures()[0];
  const kernels::OpTable& ops = kernels::BestOps();
  Harness h(a, RandomWeights(a, 14), ops);
  constexpr double kSteps = 1 << 20;  // a coarse grid: rounding would show
  for (NormForm form : {NormForm::kFormed, NormForm::kGram}) {
    const double bound = 0.5, reduced = bound - std::sqrt(static_cast<double>(h.flat.size())) / 2 * bound / kSteps;
    GridGradientSum sum(ops, h.flat.size(),
                        {.steps_per_unit = static_cast<float>(kSteps / bound), .max_sum_squares = kSteps * kSteps});
    PhantomGradients gradients(ops, h.Setup(), {.clip = ClipRule::Flat(reduced * (1 - 1e-6)), .form = form}, sum);
    for (uint32_t seed = 0; seed < 20; ++seed) {
      const std::vector<int64_t> before(sum.sum().begin(), sum.sum().end());
      const OwnedRecord record = RandomRecord(a.num_items, 1 + seed % a.max_length, 100 + seed);
      const RecordOutcome outcome = h.Add(record.view(), gradients);
      EXPECT_TRUE(outcome.within);
      double moved = 0;
      for (size_t i = 0; i < before.size(); ++i) moved += std::pow(static_cast<double>(sum.sum()[i] - before[i]), 2);
      EXPECT_LE(std::sqrt(moved), kSteps);
      EXPECT_GT(std::sqrt(moved), 0.9 * std::min(1.0, outcome.norm / bound) * kSteps) << "clipped far below the bound";
    }
  }
}

TEST(ExactSum, RecordAboveItsBoundIsTakenAwayExactly) {
  const Architecture a = SmallArchitectures()[0];
  const kernels::OpTable& ops = kernels::BestOps();
  Harness h(a, RandomWeights(a, 15), ops);
  for (NormForm form : {NormForm::kFormed, NormForm::kGram}) {
    // The limit is far too small on purpose.
    GridGradientSum sum(ops, h.flat.size(), {.steps_per_unit = 1e6f, .max_sum_squares = 1e6});
    PhantomGradients gradients(ops, h.Setup(), {.clip = ClipRule::Flat(1.0), .form = form}, sum);
    EXPECT_FALSE(h.Add(RandomRecord(a.num_items, 6, 1).view(), gradients).within);
    for (int64_t v : sum.sum()) ASSERT_EQ(v, 0);
  }
}

TEST(Phantom, NonFiniteGradientNeverReachesTheSum) {
  const Architecture a = SmallArchitectures()[0];
  const kernels::OpTable& ops = kernels::BestOps();
  std::vector<float> weights = RandomWeights(a, 16);
  weights[0] = std::numeric_limits<float>::infinity();
  Harness h(a, weights, ops);
  FloatGradientSum sum(ops, h.flat.size(), 1);
  PhantomGradients gradients(ops, h.Setup(), {.clip = ClipRule::Flat(1.0)}, sum);
  const RecordOutcome outcome = h.Add(RandomRecord(a.num_items, 4, 1).view(), gradients);
  EXPECT_FALSE(outcome.finite);
  EXPECT_EQ(outcome.factor, 0);
  for (float v : sum.sum()) ASSERT_EQ(v, 0);
}

// c_i = 1 for every record is ordinary training, bit for bit.
TEST(Phantom, FactorOneEqualsOrdinaryTrainingBitForBit) {
  for (const Architecture& a : SmallArchitectures()) {
    const kernels::OpTable& ops = kernels::BestOps();
    Harness h(a, RandomWeights(a, 17), ops);
    FloatGradientSum ordinary(ops, h.flat.size(), 1), clipped(ops, h.flat.size(), 1);
    PhantomGradients none(ops, h.Setup(), {}, ordinary), flat(ops, h.Setup(), {.clip = ClipRule::Flat(1e30)}, clipped);
    for (const Case& c : Cases(a)) {
      h.Add(c.record.view(), none);
      h.Add(c.record.view(), flat);
    }
    for (size_t i = 0; i < h.flat.size(); ++i) ASSERT_EQ(ordinary.sum()[i], clipped.sum()[i]) << i;
  }
}

// Adds the clipped gradients of records that pass through a graph with these options.
std::vector<float> ClippedSum(const Harness& h, const GraphOptions& options, const std::vector<OwnedRecord>& records) {
  const std::unique_ptr<const Graph> graph = MakeGraph(h.graph.architecture(), h.graph.device(), options);
  const PackedWeights packed(graph->base(), h.flat.data());
  const Buffers buffers = graph->AllocateForTraining();
  FloatGradientSum sum(h.graph.ops(), h.trained.size(), 1);
  sum.Clear();
  PhantomGradients gradients(h.graph.ops(), h.Setup(), {.clip = ClipRule::Flat(0.3)}, sum);
  RecordContext context{.weights = packed.view(), .buffers = buffers};
  RecordPass<Graph> pass(*graph);
  for (const OwnedRecord& record : records) {
    if (!pass.Fits(record.view())) pass.Run(context, gradients);
    pass.Push(record.view(), {.target_weight = 0.25f});
  }
  pass.Run(context, gradients);
  return {sum.sum().begin(), sum.sum().end()};
}

// Each record of a pass has its own rows in the tower's factor.
TEST(TwoTowers, HowManyRecordsPassTogetherChangesNoBit) {
  for (const Architecture& a : test::TowerArchitectures()) {
    const Harness h(a, RandomWeights(a, 21), kernels::BestOps());
    std::vector<OwnedRecord> records;
    for (const Case& c : Cases(a)) records.push_back(c.record);
    const std::vector<float> alone = ClippedSum(h, {}, records);
    EXPECT_EQ(ClippedSum(h, {.max_records = 4}, records), alone);
    EXPECT_EQ(ClippedSum(h, {.recompute_blocks = true}, records), alone);
  }
}

TEST(Recommender, PaddedRecordEqualsUnpaddedRecord) {
  const Architecture a = SmallArchitectures()[0];
  Harness h(a, RandomWeights(a, 18), kernels::BestOps());
  const OwnedRecord padded = RandomRecord(a.num_items, 6, 9, 2);
  const OwnedRecord bare{{padded.inputs.begin() + 2, padded.inputs.end()},
                         {padded.targets.begin() + 2, padded.targets.end()}};
  EXPECT_NEAR(h.Loss(padded.view()), h.Loss(bare.view()), 1e-6);
}

}  // namespace
}  // namespace wisp::gradients_test
