// One sequence on several threads gives the bits of one thread: recommenders with all their switches, events after the
// cached ones, classifiers, adapters, lent threads, several sessions at once.
#include "runtime/layers/parts.h"

#include <gtest/gtest.h>

#include <random>

#include "runtime/inference/batch_recommender.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/gradients/gradient_test_util.h"
#include "tests/unit/layers/classifier_test_util.h"

namespace wisp::parts_test {
namespace {

constexpr size_t kThreads[] = {2, 3, 5};

std::vector<const kernels::OpTable*> ListInferenceOps() {
  std::vector<const kernels::OpTable*> all(kernels::AllOps().begin(), kernels::AllOps().end());
  if (kernels::Int8Ops() != nullptr) all.push_back(kernels::Int8Ops());
  return all;
}

// A graph and its runner; `threads` share even the smallest work.
template <class Graph>
struct Runner {
  Runner(const Architecture& a, const kernels::OpTable& ops, const std::vector<float>& flat, size_t threads,
         CacheBlocks kept)
      : graph(a, ops, {.use = GraphUse::kInference}),
        buffers(graph.AllocateForInference()),
        cache(graph.AllocateCache(kept)),
        weights(graph, flat.data()),
        helpers(graph.AllocateHelpers(threads)) {
    if (helpers != nullptr) helpers->least_of_part = 1;
  }
  RecordContext Context(size_t past) const {
    return {.weights = weights.view(), .buffers = buffers, .cache = &cache, .past = past, .helpers = helpers.get()};
  }

  Graph graph;
  Buffers buffers;
  KeyValueCache cache;
  PackedWeights weights;
  std::unique_ptr<Helpers> helpers;
};

std::vector<float> Scores(const Runner<Recommender>& runner, std::span<const int32_t> history, size_t past) {
  std::vector<float> scores(runner.graph.architecture().num_items);
  RecordContext context = runner.Context(past);
  runner.graph.Score(context, history, scores.data());
  return scores;
}

void ExpectTheSameScores(const Architecture& a, const kernels::OpTable& ops, uint32_t seed) {
  const std::vector<float> flat = test::RandomWeights(a, seed);
  const Runner<Recommender> alone(a, ops, flat, 1, CacheBlocks::kAll);
  for (const size_t threads : kThreads) {
    const Runner<Recommender> shared(a, ops, flat, threads, CacheBlocks::kAll),
        in_turn(a, ops, flat, threads, CacheBlocks::kTwoInTurn);
    for (size_t length = 1; length <= a.max_length; length += a.max_length > 8 ? 7 : 1) {
      const std::vector<int32_t> history = test::RandomRecord(a.num_items, length, seed).inputs;
      const std::vector<float> expected = Scores(alone, history, 0);
      ASSERT_EQ(Scores(shared, history, 0), expected) << ops.name << ", " << length << " items";
      ASSERT_EQ(Scores(in_turn, history, 0), expected) << ops.name << ", " << length << " items";
      for (size_t past = 1; past < length && shared.graph.KeepsKeys(past, length); ++past) {
        Scores(shared, std::span(history).first(past), 0);
        ASSERT_EQ(Scores(shared, history, past), expected) << ops.name << ", " << length << " items, past " << past;
      }
    }
  }
}

// So wide that threads share one row's products and heads.
TEST(Parts, OneRowIsSharedByColumnsAndHeads) {
  UniformArchitecture wide{
      .num_items = 600, .max_length = 8, .width = 256, .num_heads = 4, .num_blocks = 2, .inner_width = 700};
  Architecture grouped = wide;
  for (BlockSpec& block : grouped.blocks) block.attention.num_kv_heads = 2;
  wide.attention_slope = 0.5f;
  for (const Architecture& a : {Architecture(wide), grouped}) {
    for (const kernels::OpTable* ops : ListInferenceOps()) ExpectTheSameScores(a, *ops, 30);
  }
}

TEST(Parts, EverySwitchOfARecommenderGivesTheSameBits) {
  uint32_t seed = 40;
  std::vector<Architecture> all = test::SmallArchitectures();
  all.push_back(UniformArchitecture{.num_items = 9, .max_length = 6, .width = 8, .num_blocks = 0, .inner_width = 8});
  for (const Architecture& a : all) {
    for (const kernels::OpTable* ops : ListInferenceOps()) ExpectTheSameScores(a, *ops, ++seed);
  }
}

// Several tiles of items, heads, panels and blocks of the inner size; blocks of queries in attention.
TEST(Parts, LargerShapesGiveTheSameBits) {
  UniformArchitecture a{
      .num_items = 700, .max_length = 61, .width = 48, .num_heads = 3, .num_blocks = 3, .inner_width = 300};
  ExpectTheSameScores(a, kernels::BestOps(), 3);
  if (kernels::Int8Ops() != nullptr) ExpectTheSameScores(a, *kernels::Int8Ops(), 3);
  a.attend = Attend::kAll;
  ExpectTheSameScores(a, kernels::BestOps(), 4);
  a.attend = Attend::kCausal;
  a.re_attention = ReAttention::kOn;
  a.attention_slope = 0.5f;
  ExpectTheSameScores(a, kernels::BestOps(), 5);
  Architecture adapted = UniformArchitecture{
      .num_items = 90, .max_length = 31, .width = 32, .num_heads = 2, .num_blocks = 2, .inner_width = 64};
  adapted.adapter = AdapterSpec{.rank = 4, .alpha = 8};
  ExpectTheSameScores(adapted, kernels::BestOps(), 6);
}

TEST(Parts, ClassifiersGiveTheSameBits) {
  std::vector<Architecture> all = test::SmallClassifiers();
  all.push_back(UniformArchitecture{.num_items = 90,
                                    .max_length = 70,
                                    .width = 48,
                                    .num_heads = 4,
                                    .num_blocks = 5,
                                    .inner_width = 100,
                                    .norm = NormPlacement::kPost,
                                    .attend = Attend::kAll,
                                    .num_classes = 3});
  all.push_back(all.back());
  all.back().token_types = {.count = 2, .separator = 7};
  all.back().embedding_norm_epsilon = 1e-5f;
  all.back().head.pooling = Pooling::kMean;
  for (const Architecture& a : all) {
    const std::vector<float> flat = test::RandomClassifierWeights(a, 23);
    for (const kernels::OpTable* ops : ListInferenceOps()) {
      const Runner<Classifier> alone(a, *ops, flat, 1, CacheBlocks::kInTurn);
      for (const size_t threads : kThreads) {
        // If there is workspace for only one block's keys, threads do not share.
        for (const CacheBlocks kept : {CacheBlocks::kTwoInTurn, CacheBlocks::kInTurn, CacheBlocks::kAll}) {
          const Runner<Classifier> shared(a, *ops, flat, threads, kept);
          for (size_t length = 1; length <= a.max_length; length += 1 + length / 5) {
            const std::vector<int32_t> tokens = test::RandomRecord(a.num_items, length, 5).inputs;
            RecordContext one = alone.Context(0), several = shared.Context(0);
            const float *expected = alone.graph.Logits(one, tokens), *logits = shared.graph.Logits(several, tokens);
            for (size_t k = 0; k < a.head.num_classes; ++k)
              ASSERT_EQ(logits[k], expected[k]) << ops->name << ", " << length << " tokens, " << threads << " threads";
          }
        }
      }
    }
  }
}

// The thread ranges cost about the same, and each has a row.
TEST(Parts, AreEven) {
  const UniformArchitecture a{
      .num_items = 50, .max_length = 200, .width = 64, .num_heads = 2, .num_blocks = 1, .inner_width = 64};
  const std::vector<float> flat = test::RandomWeights(a, 1);
  const Runner<Recommender> runner(a, kernels::BestOps(), flat, 5, CacheBlocks::kAll);
  for (const size_t rows : {1, 2, 5, 6, 200}) {
    RecordContext context = runner.Context(0);
    context.records.rows = rows;
    const RowCost cost{.row = 1000, .key = 20, .causal = true};
    const RowParts parts(context, cost);
    EXPECT_EQ(parts.count(), std::min<size_t>(rows, 5));
    std::vector<double> costs;
    std::mutex mutex;
    parts.ForEach(context, [&](const RecordContext& part, size_t first) {
      std::lock_guard lock(mutex);
      EXPECT_EQ(part.past, first);
      EXPECT_EQ(part.past + part.rows() + part.after, rows);
      double sum = 0;
      for (size_t r = first; r < first + part.rows(); ++r) sum += cost.row + cost.key * static_cast<double>(r + 1);
      costs.push_back(sum);
    });
    EXPECT_EQ(costs.size(), parts.count());
    const auto [least, most] = std::minmax_element(costs.begin(), costs.end());
    EXPECT_GT(*least, 0);
    if (rows == 200) {
      EXPECT_LT(*most, 1.1 * *least);
    }
  }
}

class SeveralThreads : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(WriteModel(path_, {.architecture = a_, .weights = test::RandomWeights(a_, 8)}).ok());
  }
  // Returns scores while a history grows, is cut, and slides out of the window.
  std::vector<std::vector<float>> Scores(Session& session) const {
    std::vector<std::vector<float>> all;
    std::vector<int32_t> history;
    std::mt19937 random(5);
    for (size_t i = 0; i < 12; ++i) {
      const size_t added = i % 3 == 0 ? 1 : random() % 60;
      for (size_t j = 0; j < added; ++j) history.push_back(static_cast<int32_t>(random() % a_.num_items));
      if (i % 5 == 4) history.resize(1 + history.size() / 2);
      all.emplace_back(a_.num_items);
      EXPECT_TRUE(session.Score(history, all.back()).ok());
    }
    return all;
  }
  std::unique_ptr<Session> Open(const SessionOptions& options) const { return *Session::Open(path_, options); }

  // Large enough for two threads, and five, to be worthwhile.
  const UniformArchitecture a_{
      .num_items = 400, .max_length = 90, .width = 96, .num_heads = 2, .num_blocks = 2, .inner_width = 200};
  const test::TemporaryFolder folder_;
  const std::string path_ = folder_ / "m.wisp";
};

TEST_F(SeveralThreads, GiveTheSameScores) {
  for (const Backend backend : {Backend::kSimd, Backend::kInt8}) {
    if (backend == Backend::kInt8 && kernels::Int8Ops() == nullptr) continue;
    const auto expected = Scores(*Open({.backend = backend}));
    for (const size_t threads : kThreads) {
      const auto session = Open({.backend = backend, .num_threads = threads});
      EXPECT_EQ(session->num_threads(), threads);
      EXPECT_EQ(Scores(*session), expected) << threads;
      EXPECT_EQ(session->planned_bytes(), Session::PlanMemory(a_, backend, threads)->total());
    }
  }
}

TEST_F(SeveralThreads, MayBeLent) {
  const auto expected = Scores(*Open({}));
  size_t tasks = 0;
  const auto backwards = Open({.num_threads = 3, .executor = [&](size_t n, const std::function<void(size_t)>& task) {
                                 tasks += n;
                                 for (size_t i = n; i-- > 0;) task(i);
                               }});
  EXPECT_EQ(Scores(*backwards), expected);
  EXPECT_GT(tasks, 20u);
  const auto pool = Open({.num_threads = 2, .executor = [](size_t n, const std::function<void(size_t)>& task) {
                            std::vector<std::thread> threads;
                            for (size_t i = 0; i < n; ++i) threads.emplace_back([&task, i] { task(i); });
                            for (auto& thread : threads) thread.join();
                          }});
  EXPECT_EQ(Scores(*pool), expected);
}

TEST_F(SeveralThreads, TwoSessionsAtOnceDoNotDisturbEachOther) {
  const auto expected = Scores(*Open({}));
  std::vector<std::vector<float>> first, second;
  const auto one = Open({.num_threads = 2}), other = Open({.num_threads = 3});
  std::thread a([&] { first = Scores(*one); }), b([&] { second = Scores(*other); });
  a.join();
  b.join();
  EXPECT_EQ(first, expected);
  EXPECT_EQ(second, expected);
}

TEST_F(SeveralThreads, AreNotThoseOfABatch) {
  const auto alone = Open({}), shared = Open({.num_threads = 2});
  const auto batch = *BatchRecommender::Create(*shared, {.num_threads = 2});
  std::vector<int32_t> items(80);
  for (size_t i = 0; i < items.size(); ++i) items[i] = static_cast<int32_t>(i * 7 % a_.num_items);
  const std::span<const int32_t> histories[] = {items, std::span(items).first(50), std::span(items).last(9)};
  std::vector<Recommendation> best(30);
  std::vector<size_t> found(3);
  ASSERT_TRUE(batch->Recommend(histories, {.count = 10}, best, found).ok());
  for (size_t i = 0; i < 3; ++i) {
    const auto expected = *alone->Recommend(histories[i], {.count = 10});
    ASSERT_EQ(found[i], expected.size());
    for (size_t r = 0; r < found[i]; ++r) EXPECT_EQ(best[i * 10 + r].score, expected[r].score);
  }
}

TEST_F(SeveralThreads, AreRefusedWhereTheyCannotBe) {
  EXPECT_EQ(Session::Open(path_, SessionOptions{.num_threads = 1025}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Session::Open(path_, SessionOptions{.backend = Backend::kXnnpack, .num_threads = 2}).status().code(),
            StatusCode::kUnsupported);
  EXPECT_EQ(Open({.num_threads = 0})->num_threads(), DefaultThreads());
}

}  // namespace
}  // namespace wisp::parts_test
