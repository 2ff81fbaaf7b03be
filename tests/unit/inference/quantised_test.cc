// Model files whose matrices are panels of small integers, in blocks, or of floats: what is written, and how sessions
// use them.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "runtime/inference/batch_recommender.h"
#include "runtime/inference/session.h"
#include "runtime/layers/parts.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/gradients/gradient_test_util.h"
#include "tests/unit/model/model_test_util.h"

namespace wisp::quantised_test {
namespace {

constexpr WeightStorage kBoth[] = {WeightStorage::kInt8, WeightStorage::kInt4};
constexpr WeightStorage kAllThree[] = {WeightStorage::kInt8, WeightStorage::kInt4, WeightStorage::kPanels};

// Widths that fill blocks and widths that do not; a decoder like Llama's; a separate output table.
std::vector<Architecture> Architectures() {
  std::vector<Architecture> all = test::SmallArchitectures();
  std::erase_if(all, [](const Architecture& a) { return a.re_attention == ReAttention::kOn; });
  UniformArchitecture wide{.num_items = 700,
                           .max_length = 30,
                           .width = 72,
                           .num_heads = 3,
                           .num_blocks = 2,
                           .inner_width = 100,
                           .embedding_scale = 5.5f};
  all.push_back(wide);
  wide.output_table = OutputTable::kUntied;
  wide.output_bias = OutputBias::kTrained;
  wide.positions = PositionAlignment::kEnd;
  all.push_back(wide);
  Architecture llama = all[all.size() - 2];
  for (BlockSpec& block : llama.blocks) {
    block.attention.num_kv_heads = 1;
    block.feed_forward.gated = true;
  }
  all.push_back(llama);
  return all;
}

// Writes the weights of a file in blocks, and the same values as floats in another file.
class Quantised : public ::testing::Test {
 protected:
  void Write(const Architecture& a, WeightStorage storage, uint32_t seed) {
    std::vector<float> weights = test::RandomWeights(a, seed);
    // Weights have the size of trained ones: larger attention logits would turn a rounding into another choice.
    for (const ParameterSpec& p : ListParameters(a)) {
      const std::span<float> of_matrix = std::span(weights).subspan(p.offset, p.size());
      for (float& w : of_matrix)
        w *= p.shape == ParameterShape::kMatrix ? 1 / std::sqrt(static_cast<float>(p.cols)) : 1;
    }
    Write({.architecture = a, .weights = weights, .storage = storage});
  }
  void Write(ModelContents contents) {
    const Status written = WriteModel(blocks_, contents);
    ASSERT_TRUE(written.ok()) << written.message();
    const auto file = Open();
    const std::span<const float> dequantised = file.AllWeights(room_);
    contents.weights = dequantised;
    contents.storage = WeightStorage::kFloat;
    ASSERT_TRUE(WriteModel(floats_, contents).ok());
  }
  ModelFile Open() const {
    Result<ModelFile> file = ModelFile::Open(blocks_, Verify::kFull, Accept::kAny);
    EXPECT_TRUE(file.ok()) << file.status().message();
    return std::move(*file);
  }

  test::TemporaryFolder folder_;
  const std::string blocks_ = folder_ / "blocks.wisp", floats_ = folder_ / "floats.wisp";
  std::vector<float> room_;
};

TEST_F(Quantised, MatricesArePanelsAndWritingThemAgainChangesNothing) {
  constexpr kernels::PanelBits kBits[] = {kernels::PanelBits::kEight, kernels::PanelBits::kFour,
                                          kernels::PanelBits::kThirtyTwo};
  for (size_t kind = 0; kind < std::size(kAllThree); ++kind) {
    const WeightStorage storage = kAllThree[kind];
    const bool panels = storage == WeightStorage::kPanels;
    test::SmallModel model;
    model.storage = storage;
    Write(model.contents());
    const ModelFile file = Open();
    EXPECT_EQ(file.storage(), storage);
    for (size_t i = 0; i < file.parameters().size(); ++i) {
      const ParameterSpec& p = file.parameters()[i];
      const StoredTensor& t = file.tensors()[i];
      EXPECT_EQ(t.panels.data != nullptr, MayBePanels(file.architecture(), p)) << p.name;
      if (p.role == ParameterRole::kPositionTable) {
        EXPECT_EQ(t.halves == nullptr, panels);
      }
      if (p.shape == ParameterShape::kVector) {
        EXPECT_NE(t.floats, nullptr);
      }
      if (p.shape == ParameterShape::kMatrix) {
        EXPECT_EQ(t.panels.bits, kBits[kind]);
      }
    }
    const std::vector<float> once(room_);
    std::vector<float> room;
    ModelContents again = GetContents(file, room);
    again.storage = storage;
    ASSERT_TRUE(WriteModel(blocks_, again).ok());
    std::vector<float> twice;
    EXPECT_TRUE(std::ranges::equal(Open().AllWeights(twice), once));
  }
}

// Returns the length of the difference of two vectors relative to the length of the second.
double Difference(std::span<const float> a, std::span<const float> b) {
  double squares = 0, all = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    squares += std::pow(static_cast<double>(a[i]) - b[i], 2);
    all += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(squares / all);
}

std::vector<float> GetScores(Session& session, std::span<const int32_t> history) {
  std::vector<float> scores(session.architecture().num_items);
  const Status scored = session.Score(history, scores);
  EXPECT_TRUE(scored.ok()) << scored.message();
  return scores;
}

// Blocks in place and the same values packed as floats differ only by how inputs are rounded: by up to 1/254 of a
// block's largest.
TEST_F(Quantised, ScoresAreThoseOfTheFloats) {
  uint32_t seed = 40;
  for (const Architecture& a : Architectures()) {
    for (const WeightStorage storage : kBoth) {
      Write(a, storage, ++seed);
      const auto floats = Session::Open(floats_), blocks = Session::Open(blocks_);
      ASSERT_TRUE(floats.ok() && blocks.ok());
      EXPECT_LE((*blocks)->memory().packed_weights, (*floats)->memory().packed_weights);
      EXPECT_EQ((*blocks)->memory().packed_weights, Session::PlanMemory(Open())->packed_weights);
      const std::vector<int32_t> history = test::RandomRecord(a.num_items, a.max_length, seed).inputs;
      for (size_t n = 1; n <= history.size(); n += 3) {
        const std::span<const int32_t> some = std::span(history).first(n);
        EXPECT_LT(Difference(GetScores(**blocks, some), GetScores(**floats, some)), 0.06) << seed << ", " << n;
      }
    }
  }
}

TEST_F(Quantised, PanelsOfFloatsGiveTheBitsOfTheFloatsAndAreNotCopied) {
  uint32_t seed = 400;
  for (const Architecture& a : Architectures()) {
    Write(a, WeightStorage::kPanels, ++seed);
    const auto floats = Session::Open(floats_), panels = Session::Open(blocks_);
    ASSERT_TRUE(floats.ok() && panels.ok());
    EXPECT_EQ((*panels)->memory().packed_weights, Session::PlanMemory(Open())->packed_weights);
    if (a.head.temperature == 0) {
      EXPECT_LT((*panels)->memory().packed_weights, (*floats)->memory().packed_weights / 4) << seed;
    }
    const std::vector<int32_t> history = test::RandomRecord(a.num_items, a.max_length, seed).inputs;
    for (size_t n = 1; n <= history.size(); n += 3) {
      const std::span<const int32_t> some = std::span(history).first(n);
      EXPECT_EQ(GetScores(**panels, some), GetScores(**floats, some)) << seed << ", " << n;
    }
  }
}

TEST_F(Quantised, SeveralThreadsGiveTheBitsOfOne) {
  const Architecture a = Architectures().back();
  for (const WeightStorage storage : {WeightStorage::kInt8, WeightStorage::kPanels}) {
    Write(a, storage, 60);
    const auto alone = Session::Open(blocks_);
    ASSERT_TRUE(alone.ok());
    const ModelFile file = Open();
    const Recommender graph(a, kernels::BestOps(),
                            MakeInferenceOptions(kernels::Device(kernels::BestOps()), a, file.tensors()));
    const PackedWeights weights(graph, ParameterSource(file.tensors()));
    const std::vector<int32_t> history = test::RandomRecord(a.num_items, a.max_length, 61).inputs;
    for (const size_t threads : {2, 3}) {
      Buffers buffers = graph.AllocateForInference();
      KeyValueCache cache = graph.AllocateCache(CacheBlocks::kAll);
      const auto helpers = graph.AllocateHelpers(threads);
      helpers->least_of_part = 1;  // so that even the smallest work is shared
      for (const size_t n : {1, 2, 30}) {
        std::vector<float> scores(a.num_items);
        RecordContext context{.weights = weights.view(), .buffers = buffers, .cache = &cache, .helpers = helpers.get()};
        graph.Score(context, std::span(history).first(n), scores.data());
        EXPECT_EQ(scores, GetScores(**alone, std::span(history).first(n))) << threads << ", " << n;
      }
    }
  }
}

TEST_F(Quantised, ManyHistoriesAtOnceGiveTheBestOfEach) {
  const Architecture a = Architectures()[Architectures().size() - 2];
  Write(a, WeightStorage::kInt4, 70);
  const auto session = Session::Open(blocks_);
  ASSERT_TRUE(session.ok());
  const auto batch = BatchRecommender::Create(**session, {.num_threads = 2, .rows = 5});
  ASSERT_TRUE(batch.ok()) << batch.status().message();
  std::vector<std::vector<int32_t>> histories;
  for (uint32_t i = 0; i < 13; ++i) histories.push_back(test::RandomRecord(a.num_items, 1 + i * 2, 71 + i).inputs);
  const std::vector<std::span<const int32_t>> views(histories.begin(), histories.end());
  constexpr size_t kCount = 5;
  std::vector<Recommendation> best(histories.size() * kCount);
  std::vector<size_t> found(histories.size());
  ASSERT_TRUE((*batch)->Recommend(views, {.count = kCount}, best, found).ok());
  for (size_t i = 0; i < histories.size(); ++i) {
    const auto one = (*session)->Recommend(histories[i], {.count = kCount});
    ASSERT_TRUE(one.ok());
    for (size_t j = 0; j < one->size(); ++j) {
      EXPECT_EQ(best[i * kCount + j].item, (*one)[j].item);
      EXPECT_EQ(best[i * kCount + j].score, (*one)[j].score);
    }
  }
}

TEST_F(Quantised, OtherMatrices_AreRefusedOrStayFloat) {
  Architecture a = Architectures().front();
  a.re_attention = ReAttention::kOn;
  for (const ParameterSpec& p : ListParameters(a)) EXPECT_FALSE(MayBePanels(a, p));
  const Architecture plain = Architectures().front();
  std::vector<float> weights = test::RandomWeights(plain, 90);
  for (const ParameterSpec& p : ListParameters(plain)) {
    if (p.role == ParameterRole::kQkvWeight) weights[p.offset] = 1e9f;
  }
  const Status refused =
      WriteModel(blocks_, {.architecture = plain, .weights = weights, .storage = WeightStorage::kInt8});
  EXPECT_NE(refused.message().find("qkv.weight holds a weight too large for blocks"), std::string::npos)
      << refused.message();
}

}  // namespace
}  // namespace wisp::quantised_test
