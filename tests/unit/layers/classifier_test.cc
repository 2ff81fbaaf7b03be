// Compares the classifier's loss, representation and gradients with dual numbers through a naive classifier.
#include "runtime/layers/classifier.h"

#include <gtest/gtest.h>

#include "tests/unit/layers/classifier_test_util.h"

namespace wisp::classifier_test {
namespace {

using test::ClassifierHarness;
using test::NaiveClassifier;
using test::NaiveClassifierGradient;
using test::RandomClassifierWeights;
using test::SmallClassifiers;

constexpr double kTolerance = 2e-5;  // relative to the gradient's norm: float against double through two blocks
constexpr float kNoise[4] = {0.3f, -0.7f, 0.1f, 0.4f};

struct Case {
  const char* name;
  std::vector<int32_t> tokens;
  int32_t label;
  HeadInput input;
};

std::vector<Case> Cases() {
  return {{"full length", {1, 5, 0, 8, 2, 7}, 1, {}},
          {"one token", {4}, 0, {}},
          {"repeated tokens", {3, 3, 7, 3}, 1, {}},
          {"clipped", {2, 6, 1}, 0, {.norm_bound = 0.2}},
          {"within the bound", {2, 6, 1}, 0, {.norm_bound = 50}},
          {"clipped and noised", {8, 0, 8, 5}, 1, {.norm_bound = 0.3, .noise_BD = kNoise}}};
}

double Norm(const std::vector<double>& g) {
  double squares = 0;
  for (double v : g) squares += v * v;
  return std::sqrt(squares);
}

class ClassifierTest : public ::testing::TestWithParam<size_t> {};

TEST_P(ClassifierTest, LossAndRepresentationEqualTheNaiveOnes) {
  const Architecture a = SmallClassifiers()[GetParam()];
  for (const kernels::OpTable* ops : kernels::AllOps()) {
    ClassifierHarness h(a, RandomClassifierWeights(a, 21), *ops);
    const std::vector<double> exact(h.flat.begin(), h.flat.end());
    const NaiveClassifier<double> naive{a, exact};
    for (const Case& c : Cases()) {
      RecordContext context = h.Context();
      const std::vector<double> expected = naive.Represent(c.tokens);
      const float* representation = h.graph.Represent(context, c.tokens);
      for (size_t k = 0; k < expected.size(); ++k)
        EXPECT_NEAR(representation[k], expected[k], 2e-5) << ops->name << ", " << c.name;
      const Record record = test::Labelled(c.tokens, c.label);
      context.head_input = c.input;
      double loss = 0;
      h.graph.Forward(context, {&record, 1}, &loss);
      EXPECT_NEAR(loss, naive.Loss(record, c.input), 2e-5) << ops->name << ", " << c.name;
    }
  }
}

TEST_P(ClassifierTest, GradientsAndNormsEqualDualNumbers) {
  const Architecture a = SmallClassifiers()[GetParam()];
  const std::vector<float> weights = RandomClassifierWeights(a, 22);
  for (const Case& c : Cases()) {
    const Record record = test::Labelled(c.tokens, c.label);
    const std::vector<double> expected = NaiveClassifierGradient(a, weights, record, c.input);
    for (const kernels::OpTable* ops : kernels::AllOps()) {
      ClassifierHarness h(a, weights, *ops);
      for (NormForm form : {NormForm::kFormed, NormForm::kGram}) {
        FloatGradientSum sum(*ops, h.flat.size(), 1);
        PhantomGradients gradients(*ops, h.Setup(), {.clip = ClipRule::Flat(1e9), .form = form}, sum);
        const RecordOutcome outcome = h.Add(record, c.input, gradients);
        std::vector<double> difference(expected.size());
        for (size_t i = 0; i < expected.size(); ++i) difference[i] = sum.sum()[i] - expected[i];
        EXPECT_LT(Norm(difference), kTolerance * Norm(expected)) << ops->name << ", " << c.name;
        EXPECT_NEAR(outcome.norm, Norm(expected), kTolerance * Norm(expected)) << ops->name << ", " << c.name;
      }
    }
  }
}

// From what enters a block, the graph computes the loss and the gradients of that block and of all above it to the bit.
TEST_P(ClassifierTest, PassFromABlock_EqualsThePassFromTheTokens) {
  const Architecture a = SmallClassifiers()[GetParam()];
  for (const kernels::OpTable* ops : kernels::AllOps()) {
    for (uint32_t first = 0; first < a.blocks.size(); ++first) {
      ClassifierHarness h(a, RandomClassifierWeights(a, 23), *ops);
      h.trained = TrainedSet(h.graph.parameters(), [first](const ParameterSpec& p) {
        return p.role == ParameterRole::kClassWeight || (IsBlockRole(p.role) && p.block >= first);
      });
      for (const Case& c : Cases()) {
        const Record record = test::Labelled(c.tokens, c.label);
        std::vector<float> below(c.tokens.size() * a.width);
        RecordContext context = h.Context();
        h.graph.PassBelow(context, {&record, 1}, first, below.data());
        const auto run = [&](const float* below_RD) {
          FloatGradientSum sum(*ops, h.trained.size(), 1);
          PhantomGradients gradients(*ops, h.Setup(), {.clip = ClipRule::Flat(1)}, sum);
          RecordContext from = h.Context();
          from.head_input = c.input;
          from.below_RD = below_RD;
          from.first_block = first;
          RecordPass pass(h.graph);
          pass.Push(record, {});
          const auto outcome = pass.Run(from, gradients)[0];
          std::vector<float> all(sum.sum().begin(), sum.sum().end());
          all.push_back(static_cast<float>(outcome.loss));
          all.push_back(static_cast<float>(outcome.gradient.norm));
          return all;
        };
        EXPECT_EQ(run(below.data()), run(nullptr)) << ops->name << ", " << c.name << ", block " << first;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EverySwitch, ClassifierTest, ::testing::Range<size_t>(0, SmallClassifiers().size()));

// A graph for inference, whose blocks share one workspace, gives the bits of training's graph with less memory, most of
// all if it is deep.
TEST(Classifier, GraphForInference_GivesTheSameWithLessMemory) {
  std::vector<Architecture> all = SmallClassifiers();
  all.push_back(all[0]);
  all.back().blocks.resize(5, all[0].blocks[0]);
  all.push_back(all[1]);
  all.back().blocks.resize(4, all[1].blocks[0]);
  for (const Architecture& a : all) {
    ClassifierHarness training(a, RandomClassifierWeights(a, 23), kernels::BestOps());
    const Classifier graph(a, kernels::BestOps(), {.use = GraphUse::kInference});
    const Buffers buffers = graph.AllocateForInference();
    EXPECT_EQ(buffers.forward.size_bytes() + ArenaPlan::kAlignment, graph.inference_bytes());
    if (!a.blocks.empty()) {
      EXPECT_LT(graph.inference_bytes(), training.graph.inference_bytes());
    }
    const KeyValueCache cache = graph.AllocateCache(CacheBlocks::kInTurn);
    RecordContext context{.weights = training.view, .buffers = buffers, .cache = &cache};
    for (const Case& c : Cases()) {
      RecordContext reference = training.Context();
      const float* expected = training.graph.Logits(reference, c.tokens);
      const float* logits = graph.Logits(context, c.tokens);
      for (size_t k = 0; k < a.head.num_classes; ++k)
        EXPECT_EQ(logits[k], expected[k]) << c.name << ", " << a.blocks.size() << " blocks";
    }
  }
}

// So pretrained encoder weights can be copied to the front without other knowledge.
TEST(Classifier, EncoderIsAPrefixOfTheFlatBuffer) {
  Architecture without = SmallClassifiers()[0];
  without.head = {};
  const auto encoder = ListParameters(without), all = ListParameters(SmallClassifiers()[0]);
  ASSERT_EQ(all.size(), encoder.size() + 4);
  for (size_t i = 0; i < encoder.size(); ++i) {
    EXPECT_EQ(all[i].name, encoder[i].name);
    EXPECT_EQ(all[i].offset, encoder[i].offset);
  }
  EXPECT_EQ(all[encoder.size()].offset, FlatSize(encoder));
}

TEST(Classifier, ArchitecturesWithoutMeaningAreRefused) {
  const Architecture good = SmallClassifiers()[0];
  EXPECT_TRUE(Validate(good).ok());
  Architecture bad = good;
  bad.head.num_classes = 1;
  EXPECT_FALSE(Validate(bad).ok());
  bad = good;
  bad.attend = Attend::kCausal;
  EXPECT_FALSE(Validate(bad).ok());
  bad = good;
  bad.head.output_table = OutputTable::kUntied;
  EXPECT_FALSE(Validate(bad).ok());
  bad = good;
  bad.head.output_bias = OutputBias::kTrained;
  EXPECT_FALSE(Validate(bad).ok());
  bad = good;
  bad.head.unit_length = true;
  EXPECT_FALSE(Validate(bad).ok());
  bad = good;
  bad.token_types = {.count = 0, .separator = 3};
  EXPECT_FALSE(Validate(bad).ok());
  bad.token_types = {.count = 2, .separator = static_cast<int32_t>(good.num_items)};
  EXPECT_FALSE(Validate(bad).ok());
  bad.token_types = {.count = 2, .separator = 3};
  EXPECT_TRUE(Validate(bad).ok());
}

// An encoder gives the same representation as the classifier, with unit length if asked.
TEST(Encoder, RepresentsAsTheClassifierDoes) {
  for (Architecture a : SmallClassifiers()) {
    ClassifierHarness classifier(a, RandomClassifierWeights(a, 24), kernels::BestOps());
    a.head.kind = HeadKind::kEmbedding;
    a.head.num_classes = 0;
    for (const bool unit_length : {false, true}) {
      a.head.unit_length = unit_length;
      ASSERT_TRUE(Validate(a).ok());
      const Classifier encoder(a, kernels::BestOps(), {.use = GraphUse::kInference});
      const std::vector<float> weights(classifier.flat.begin(),
                                       classifier.flat.begin() + static_cast<ptrdiff_t>(FlatSize(ListParameters(a))));
      const PackedWeights packed(encoder, weights.data());
      const Buffers buffers = encoder.AllocateForInference();
      const KeyValueCache cache = encoder.AllocateCache(CacheBlocks::kInTurn);
      RecordContext context{.weights = packed.view(), .buffers = buffers, .cache = &cache};
      for (const Case& c : Cases()) {
        RecordContext reference = classifier.Context();
        const float* expected = classifier.graph.Represent(reference, c.tokens);
        double squares = 0;
        for (size_t k = 0; k < a.width; ++k) squares += double{expected[k]} * double{expected[k]};
        const double length = unit_length ? std::sqrt(squares) : 1;
        const float* h = encoder.Represent(context, c.tokens);
        for (size_t k = 0; k < a.width; ++k) EXPECT_NEAR(h[k], expected[k] / length, 1e-6) << c.name;
      }
    }
  }
}

}  // namespace
}  // namespace wisp::classifier_test
