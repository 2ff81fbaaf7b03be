// Model files with float16 tables: what is written, how a session uses them, and training from them.
#include "tests/unit/core/counting_allocator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "runtime/inference/session.h"
#include "runtime/model/model_file.h"
#include "runtime/train/list_scorer.h"
#include "runtime/train/run/evaluate.h"
#include "runtime/train/trainer.h"
#include "tests/unit/gradients/gradient_test_util.h"
#include "tests/unit/model/model_test_util.h"
#include "tests/unit/train/train_test_util.h"

namespace wisp::half_tables_test {
namespace {

using test::num_allocations;

// Returns `weights` with tables rounded to float16.
std::vector<float> Rounded(const Architecture& a, std::vector<float> weights) {
  for (const ParameterSpec& p : ListParameters(a)) {
    for (size_t i = p.offset; p.shape == ParameterShape::kTable && i < p.offset + p.size(); ++i)
      weights[i] = kernels::ToFloat(kernels::ToHalf(weights[i]));
  }
  return weights;
}

class HalfTables : public ::testing::Test {
 protected:
  // Writes the rounded weights to two files, as float16 and as float32.
  void Write(const Architecture& a, uint32_t seed) {
    weights_ = Rounded(a, test::RandomWeights(a, seed));
    for (WeightStorage tables : {WeightStorage::kFloat, WeightStorage::kHalf}) {
      const Status status = WriteModel(tables == WeightStorage::kHalf ? half_ : float_,
                                       {.architecture = a, .weights = weights_, .storage = tables});
      ASSERT_TRUE(status.ok()) << status.message();
    }
  }

  test::TemporaryFolder folder_;
  const std::string half_ = folder_ / "half.wisp", float_ = folder_ / "float.wisp";
  std::vector<float> weights_;
};

std::vector<Architecture> Architectures() {
  std::vector<Architecture> all = test::SmallArchitectures();
  all.push_back(UniformArchitecture{.num_items = 700,
                                    .max_length = 30,
                                    .width = 32,
                                    .num_heads = 2,
                                    .num_blocks = 2,
                                    .inner_width = 48,
                                    .embedding_scale = 5.5f});
  all.push_back(UniformArchitecture{.num_items = 301,
                                    .max_length = 20,
                                    .width = 40,
                                    .num_heads = 2,
                                    .num_blocks = 1,
                                    .inner_width = 24,
                                    .output_table = OutputTable::kUntied,
                                    .output_bias = OutputBias::kTrained,
                                    .positions = PositionAlignment::kEnd});
  all.push_back(UniformArchitecture{.num_items = 9, .max_length = 6, .width = 8, .num_blocks = 0, .inner_width = 8});
  return all;
}

TEST_F(HalfTables, ValuesComeBackRoundedAndAllElseAsItWas) {
  const test::SmallModel model;
  ModelContents contents = model.contents();
  std::vector<float> weights = test::RandomWeights(model.architecture, 5);
  weights[0] = 65504, weights[1] = -65519, weights[2] = 1e-7f, weights[3] = 1e-9f;
  for (const ParameterSpec& p : ListParameters(model.architecture)) {  // gaps are zero in a file
    for (size_t i = p.offset + p.size(); i % 16 != 0; ++i) weights[i] = 0;
  }
  contents.weights = weights;
  contents.storage = WeightStorage::kHalf;
  ASSERT_TRUE(WriteModel(half_, contents).ok());
  const auto file = ModelFile::Open(half_, Verify::kFull);
  ASSERT_TRUE(file.ok()) << file.status().message();
  std::vector<float> room;
  EXPECT_TRUE(file->flat_weights().empty());
  EXPECT_TRUE(std::ranges::equal(file->AllWeights(room), Rounded(model.architecture, weights)));
  for (size_t i = 0; i < file->parameters().size(); ++i) {
    const bool table = file->parameters()[i].shape == ParameterShape::kTable;
    EXPECT_EQ(file->tensors()[i].halves != nullptr, table);
    EXPECT_EQ(file->Tensor(i) == nullptr, table);
    EXPECT_EQ(file->tensors()[i].floats, file->Tensor(i));
    const void* data = table ? static_cast<const void*>(file->tensors()[i].halves) : file->Tensor(i);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
  }
  EXPECT_TRUE(std::ranges::equal(file->provenance(), contents.provenance));
  for (uint32_t i = 0; i < file->num_items(); ++i) {
    EXPECT_EQ(file->item_key(i), contents.item_keys[i]);
    EXPECT_EQ(file->item_name(i), contents.item_names[i]);
    EXPECT_EQ(file->FindItem(contents.item_keys[i]), std::optional<uint32_t>(i));
  }
  EXPECT_EQ(file->output_bias_origin(), contents.output_bias_origin);
  EXPECT_EQ(file->description(), contents.description);
}

TEST_F(HalfTables, TablesTakeHalfTheBytes) {
  const UniformArchitecture a{
      .num_items = 5000, .max_length = 50, .width = 64, .num_heads = 1, .num_blocks = 1, .inner_width = 64};
  Write(a, 1);
  const uint64_t tables = (a.num_items + a.max_length) * uint64_t{a.width} * 4;
  EXPECT_EQ(ModelFile::Open(float_)->size_bytes() - ModelFile::Open(half_)->size_bytes(), tables / 2);
}

TEST_F(HalfTables, NumbersBeyondFloat16_AreRefused) {
  const test::SmallModel model;
  ModelContents contents = model.contents();
  contents.storage = WeightStorage::kHalf;
  for (float value : {65520.0f, -70000.0f, 3e38f}) {
    std::vector<float> weights = model.weights;
    weights[7] = value;
    contents.weights = weights;
    const Status status = WriteModel(half_, contents);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("half.wisp: tensor item_embedding holds "), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("the largest number of f16 is 65504"), std::string::npos) << status.message();
    EXPECT_FALSE(ModelFile::Open(half_).ok()) << "something was written";
  }
  // Weights outside the tables stay floats and may be large.
  std::vector<float> weights = model.weights;
  weights[ListParameters(model.architecture).back().offset] = 1e30f;
  contents.weights = weights;
  EXPECT_TRUE(WriteModel(half_, contents).ok());
}

TEST_F(HalfTables, NonFiniteFloat16_IsFound) {
  const test::SmallModel model{.storage = WeightStorage::kHalf};
  const std::string whole = model.Bytes();
  for (uint16_t bits : {0x7c00, 0xfc00, 0x7e00, 0x7c01}) {
    std::string data(test::GetData(whole));
    std::memcpy(data.data() + 10, &bits, sizeof(bits));
    const std::string bytes =
        test::Changed<schema::Model>(test::WithMetadata(whole, test::GetMetadata(whole), data), [&](schema::ModelT& m) {
          m.tensors[0]->hash = test::ComputeHash(std::string_view(data).substr(0, 48));
        });
    EXPECT_TRUE(test::OpenBytes(bytes).ok());
    const Status status = test::OpenBytes(bytes, Verify::kFull);
    EXPECT_NE(status.message().find("tensor item_embedding holds a number that is not finite"), std::string::npos)
        << status.message();
  }
}

TEST_F(HalfTables, ClassifiersHaveThemToo) {
  const Architecture a = UniformArchitecture{.num_items = 6,
                                             .max_length = 4,
                                             .width = 4,
                                             .num_heads = 2,
                                             .num_blocks = 1,
                                             .inner_width = 3,
                                             .attend = Attend::kAll,
                                             .num_classes = 3};
  std::vector<float> weights(FlatSize(ListParameters(a)));
  for (const ParameterSpec& p : ListParameters(a))
    std::fill_n(weights.begin() + static_cast<std::ptrdiff_t>(p.offset), p.size(), 1.0f / 3);
  ASSERT_TRUE(WriteModel(half_, {.architecture = a,
                                 .classifier = ClassifierDescription(),
                                 .weights = weights,
                                 .storage = WeightStorage::kHalf})
                  .ok());
  const auto file = ModelFile::Open(half_, Verify::kFull, Accept::kClassifier);
  ASSERT_TRUE(file.ok()) << file.status().message();
  std::vector<float> room;
  const auto found = file->AllWeights(room);
  EXPECT_EQ(found[0], kernels::ToFloat(kernels::ToHalf(1.0f / 3)));
  EXPECT_EQ(found[ListParameters(a).back().offset], 1.0f / 3);
}

// Equal weights as floats and as float16 give equal scores, except for the order of sums, and the same best items.
TEST_F(HalfTables, ScoresEqualThoseOfTheSameWeightsInFloats) {
  uint32_t seed = 400;
  for (const Architecture& a : Architectures()) {
    Write(a, ++seed);
    for (Backend backend : {Backend::kSimd, Backend::kXnnpack}) {
      if (!GetOps(backend).ok()) continue;
      const auto halves = *Session::Open(half_, backend), floats = *Session::Open(float_, backend);
      for (size_t length : {size_t{1}, size_t{a.max_length}, size_t{a.max_length} + 7}) {
        const std::vector<int32_t> history = test::RandomRecord(a.num_items, length, seed).inputs;
        std::vector<float> scores(a.num_items), expected(a.num_items);
        ASSERT_TRUE(halves->Score(history, scores).ok());
        ASSERT_TRUE(floats->Score(history, expected).ok());
        for (size_t j = 0; j < scores.size(); ++j)
          ASSERT_NEAR(scores[j], expected[j], 2e-5 * (1 + std::abs(expected[j]))) << "item " << j;
        const auto top = *halves->Recommend(history, {.count = 10}),
                   expected_top = *floats->Recommend(history, {.count = 10});
        ASSERT_EQ(top.size(), expected_top.size());
        for (size_t i = 0; i < top.size(); ++i) EXPECT_EQ(top[i].item, expected_top[i].item);
      }
    }
  }
}

// With 8-bit integers both tables become the same integers, and the inputs differ at most in their last bits.
TEST_F(HalfTables, Int8ScoresAreThoseOfTheSameWeightsInFloats) {
  if (kernels::Int8Ops() == nullptr) GTEST_SKIP() << "this processor has no 8-bit kernels";
  const UniformArchitecture a{
      .num_items = 700, .max_length = 40, .width = 64, .num_heads = 2, .num_blocks = 2, .inner_width = 96};
  Write(a, 31);
  const auto halves = *Session::Open(half_, Backend::kInt8), floats = *Session::Open(float_, Backend::kInt8),
             simd = *Session::Open(half_);
  EXPECT_EQ(halves->planned_bytes(), floats->planned_bytes());
  const std::vector<int32_t> history = test::RandomRecord(a.num_items, 40, 7).inputs;
  std::vector<float> scores(a.num_items), expected(a.num_items), exact(a.num_items);
  ASSERT_TRUE(halves->Score(history, scores).ok());
  ASSERT_TRUE(floats->Score(history, expected).ok());
  ASSERT_TRUE(simd->Score(history, exact).ok());
  double quantised = 0;
  for (size_t j = 0; j < scores.size(); ++j) {
    ASSERT_NEAR(scores[j], expected[j], 1e-5 * (1 + std::abs(expected[j])));
    quantised = std::max<double>(quantised, std::abs(scores[j] - exact[j]));
  }
  EXPECT_GT(quantised, 1e-3) << "nothing was quantised";
}

// The key/value cache of the history before changes no bit.
TEST_F(HalfTables, ScoresDoNotDependOnTheHistoriesBefore) {
  uint32_t seed = 500;
  for (const Architecture& a : Architectures()) {
    Write(a, ++seed);
    for (Backend backend : {Backend::kSimd, Backend::kInt8}) {
      if (!GetOps(backend).ok()) continue;
      const auto session = *Session::Open(half_, backend);
      std::vector<int32_t> history;
      std::vector<float> scores(a.num_items), fresh(a.num_items);
      std::mt19937 random(seed);
      for (int i = 0; i < 30; ++i) {
        history.push_back(static_cast<int32_t>(random() % a.num_items));
        if (i == 20) history[random() % history.size()] = 1;
        ASSERT_TRUE(session->Score(history, scores).ok());
        ASSERT_TRUE((*Session::Open(half_, backend))->Score(history, fresh).ok());
        ASSERT_EQ(scores, fresh) << "after " << history.size() << " items, seed " << seed;
      }
    }
  }
}

// The table is neither copied, converted nor packed, and the session holds what was planned.
TEST_F(HalfTables, SessionHoldsWhatIsPlannedAndNoTable) {
  const UniformArchitecture a{
      .num_items = 20000, .max_length = 20, .width = 64, .num_heads = 1, .num_blocks = 1, .inner_width = 64};
  Write(a, 3);
  const size_t table = size_t{a.num_items} * a.width * sizeof(float);
  ModelFile file = *ModelFile::Open(half_);
  for (Backend backend : {Backend::kSimd, Backend::kInt8}) {
    if (!GetOps(backend).ok()) continue;
    const InferenceMemory planned = *Session::PlanMemory(file, backend);
    EXPECT_LT(planned.packed_weights, backend == Backend::kSimd ? table / 16 : table / 3);
    const size_t before = test::allocated_bytes;
    const auto session = *Session::Open(half_, backend);
    EXPECT_EQ(session->planned_bytes(), planned.total());
    // With 8-bit integers each tile of items is converted on its way, one after the other.
    const size_t passing = backend == Backend::kSimd ? 0 : table + (a.num_items / kHeadTile + 1) * 64;
    EXPECT_LE(test::allocated_bytes - before, planned.total() + passing + ListParameters(a).size() * 1024 + 20480);
  }
  EXPECT_EQ(Session::PlanMemory(*ModelFile::Open(float_))->total(), Session::PlanMemory(a)->total());
}

TEST_F(HalfTables, ScoreAllocatesNothing) {
  const UniformArchitecture a{
      .num_items = 300, .max_length = 12, .width = 16, .num_heads = 2, .num_blocks = 2, .inner_width = 16};
  Write(a, 4);
  const auto session = *Session::Open(half_);
  std::vector<float> scores(a.num_items);
  std::vector<int32_t> history;
  for (int32_t item = 0; item < 20; ++item) {
    history.push_back(item * 3);
    const size_t before = num_allocations;
    ASSERT_TRUE(session->Score(history, scores).ok());
    EXPECT_EQ(num_allocations - before, 0u) << history.size();
  }
}

// Evaluation counts ranks by the session's scores.
TEST_F(HalfTables, AreEvaluatedAsTheyAreScored) {
  const UniformArchitecture a{
      .num_items = 200, .max_length = 12, .width = 16, .num_heads = 2, .num_blocks = 1, .inner_width = 16};
  Write(a, 6);
  const auto session = *Session::Open(half_);
  const ParameterSource source(session->file().tensors());
  const Recommender graph(a, kernels::BestOps(),
                          {.use = GraphUse::kInference, .head = HeadPackingFor(kernels::BestOps(), a, source)});
  std::vector<std::vector<int32_t>> histories;
  for (uint32_t i = 0; i < 40; ++i) histories.push_back(test::RandomRecord(a.num_items, 1 + i % 15, i).inputs);
  std::vector<RankingCase> cases;
  double expected = 0;
  std::vector<float> scores(a.num_items);
  for (size_t i = 0; i < histories.size(); ++i) {
    ASSERT_TRUE(session->Score(histories[i], scores).ok());
    const auto served = *session->Recommend(histories[i], {.count = 12});
    cases.push_back({histories[i], served[i % 12].item});
    expected += i % 12 < 10 ? Ndcg(i % 12) : 0;
  }
  Workers workers(1);
  EXPECT_DOUBLE_EQ(EvaluateRanking(graph, source, cases, workers).ndcg_at_10,
                   expected / static_cast<double>(cases.size()));
}

// Training starts from the converted weights: step by step it equals training from the same numbers in floats.
TEST_F(HalfTables, TrainingStartsFromThem) {
  const UniformArchitecture a{
      .num_items = 30, .max_length = 12, .width = 16, .num_heads = 2, .num_blocks = 1, .inner_width = 16};
  Write(a, 8);
  const test::Ring ring(a.num_items, 40, 10);
  const ModelFile halves = *ModelFile::Open(half_), floats = *ModelFile::Open(float_);
  std::vector<float> room;
  const TrainingOptions options{.num_steps = 5, .expected_batch = 8, .num_threads = 1};
  const auto one = *Trainer::Create(a, halves.AllWeights(room), ring.records, options),
             two = *Trainer::Create(a, floats.flat_weights(), ring.records, options);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(one->Step().ok());
    ASSERT_TRUE(two->Step().ok());
  }
  EXPECT_TRUE(std::ranges::equal(one->weights(), two->weights()));
  EXPECT_FALSE(std::ranges::equal(one->weights(), weights_));
}

}  // namespace
}  // namespace wisp::half_tables_test
