// Texts that are continued together: each has, to the bit, the scores that it has alone.
#include "runtime/text/text_batch.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/gradients/gradient_test_util.h"

namespace wisp::text_batch_test {
namespace {

class TextBatches : public ::testing::Test {
 protected:
  void Write(const Architecture& a, uint32_t seed, WeightStorage storage = WeightStorage::kFloat,
             const std::vector<Succession>& successions = {}) {
    const std::vector<float> weights = wisp::test::RandomWeights(a, seed);
    const Status written =
        WriteModel(path_, {.architecture = a, .weights = weights, .successions = successions, .storage = storage});
    ASSERT_TRUE(written.ok()) << written.message();
  }
  std::unique_ptr<Session> Open(const SessionOptions& options) const {
    Result<std::unique_ptr<Session>> session = Session::Open(path_, options);
    EXPECT_TRUE(session.ok()) << session.status().message();
    return std::move(*session);
  }

  // Five texts grow by one to three tokens in each round; some start anew, some skip a round.
  void ExpectTheSameScores(const TextBatchOptions& options, const SessionOptions& how = {}) {
    const auto session = Open(how), alone = Open(how);
    const auto made = TextBatch::Create(*session, options);
    ASSERT_TRUE(made.ok()) << made.status().message();
    TextBatch& batch = **made;
    const size_t num_items = session->architecture().num_items;
    const size_t most = options.positions == 0 ? session->architecture().max_length : options.positions;
    std::mt19937 random(7);
    const auto token = [&] { return static_cast<int32_t>(random() % num_items); };
    std::vector<std::vector<int32_t>> tokens(5);
    std::vector<float> expected(num_items);
    for (int round = 0; round < 12; ++round) {
      std::vector<TextBatch::Text> texts;
      for (size_t place = 0; place < tokens.size(); ++place) {
        if (tokens[place].size() == most || random() % 8 == 0) tokens[place].clear();
        // Sometimes there are so many tokens that the text passes alone.
        const size_t more = random() % 6 == 0 ? 20 : 1 + random() % 3;
        for (size_t i = 0; i < more && tokens[place].size() < most; ++i) tokens[place].push_back(token());
        if (random() % 5 != 0) texts.push_back({.place = place, .tokens = tokens[place]});
      }
      std::shuffle(texts.begin(), texts.end(), random);
      std::vector<float> scores(texts.size() * num_items);
      const Status scored = batch.Score(texts, scores);
      ASSERT_TRUE(scored.ok()) << scored.message();
      for (size_t i = 0; i < texts.size(); ++i) {
        ASSERT_TRUE(alone->Score(texts[i].tokens, expected).ok());
        ASSERT_TRUE(std::equal(expected.begin(), expected.end(), scores.begin() + static_cast<long>(i * num_items)))
            << "round " << round << ", text " << i << " of " << texts.size() << ", " << texts[i].tokens.size()
            << " tokens";
      }
    }
  }

  const test::TemporaryFolder folder_;
  const std::string path_ = folder_ / "m.wisp";
};

TEST_F(TextBatches, EverySwitchGivesTheScoresOfATextAlone) {
  uint32_t seed = 10;
  for (const Architecture& a : wisp::test::SmallArchitectures()) {
    if (a.attend != Attend::kCausal) continue;
    Write(a, ++seed);
    ExpectTheSameScores({.places = 5});
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
  }
}

// Large enough for threads to share products and texts.
Architecture Wide() {
  return UniformArchitecture{.num_items = 700,
                             .max_length = 90,
                             .width = 96,
                             .num_heads = 3,
                             .num_blocks = 2,
                             .inner_width = 200,
                             .activation = ActivationKind::kGeluTanh};
}

TEST_F(TextBatches, EveryStorageOnAnyNumberOfThreads) {
  uint32_t seed = 60;
  Architecture llama = Wide();
  for (BlockSpec& block : llama.blocks) {
    block.attention.num_kv_heads = 1;
    block.attention.rotary = {.width = 16, .base = 1000.0f};
    block.feed_forward.gated = true;
  }
  for (const Architecture& a : {Wide(), llama}) {
    for (const WeightStorage storage : {WeightStorage::kFloat, WeightStorage::kPanels, WeightStorage::kHalf,
                                        WeightStorage::kInt8, WeightStorage::kInt4}) {
      Write(a, ++seed, storage);
      for (const size_t threads : {1, 3}) {
        ExpectTheSameScores({.places = 6, .num_threads = threads});
        ASSERT_FALSE(HasFatalFailure()) << "seed " << seed << ", " << threads << " threads";
      }
    }
  }
}

TEST_F(TextBatches, EveryBackendAndFewerPositions) {
  Write(Wide(), 80);
  for (const Backend backend : {Backend::kSimd, Backend::kInt8, Backend::kXnnpack}) {
    if (!GetOps(backend).ok()) continue;
    ExpectTheSameScores({.places = 5, .positions = 33}, {.backend = backend});
    ASSERT_FALSE(HasFatalFailure()) << static_cast<int>(backend);
  }
}

TEST_F(TextBatches, SuccessionsAreScored) {
  std::vector<Succession> successions;
  for (int32_t from = 0; from < 700; ++from) successions.push_back({from, (from * 7 + 3) % 700, 2.5f});
  Write(Wide(), 83, WeightStorage::kFloat, successions);
  ExpectTheSameScores({.places = 5});
}

TEST_F(TextBatches, Float16Cache) {
  Write(Wide(), 85);
  for (const size_t threads : {1, 3}) {
    ExpectTheSameScores({.places = 5, .num_threads = threads}, {.kept = kernels::CacheType::kHalf});
    ASSERT_FALSE(HasFatalFailure()) << threads << " threads";
  }
}

TEST_F(TextBatches, RefusesWhatItCannotDo) {
  const Architecture a = Wide();
  Write(a, 90);
  const auto session = Open({});
  for (const TextBatchOptions& o : {TextBatchOptions{.places = 0}, TextBatchOptions{.places = 257},
                                    TextBatchOptions{.positions = 91}, TextBatchOptions{.num_threads = 1025}})
    EXPECT_EQ(TextBatch::Create(*session, o).status().code(), StatusCode::kInvalidArgument);
  const auto batch = TextBatch::Create(*session, {.places = 2, .positions = 4});
  ASSERT_TRUE(batch.ok());
  const size_t before = (*batch)->bytes();
  const std::vector<int32_t> two = {1, 2}, five(5, 1), wrong = {700};
  std::vector<float> scores(2 * a.num_items);
  const auto score = [&](std::vector<TextBatch::Text> texts) {
    return (*batch)->Score(texts, std::span(scores).first(std::min<size_t>(2, texts.size()) * a.num_items)).message();
  };
  EXPECT_EQ(score({{0, two}, {1, two}}), "");
  EXPECT_EQ((*batch)->bytes() - before, 2 * session->graph().cache_bytes(CacheBlocks::kAll, 4));
  EXPECT_NE(score({{0, two}, {0, two}}).find("place 0"), std::string::npos);
  EXPECT_NE(score({{2, two}}).find("there are places 0 to 1"), std::string::npos);
  EXPECT_NE(score({{0, {}}}).find("a text of 0 tokens, allowed are 1 to 4"), std::string::npos);
  EXPECT_NE(score({{0, five}}).find("a text of 5 tokens"), std::string::npos);
  EXPECT_NE(score({{0, wrong}}).find("item 700"), std::string::npos);
  EXPECT_NE((*batch)->Score(std::vector<TextBatch::Text>{{0, two}}, scores).message().find("room for 1400 scores"),
            std::string::npos);
  EXPECT_EQ(score({{0, two}, {1, two}}), "") << "what was refused left nothing behind";
  Architecture encoder = a;
  encoder.attend = Attend::kAll;
  Write(encoder, 91);
  EXPECT_NE(TextBatch::Create(*Open({}), {}).status().message().find("do not grow"), std::string::npos);
}

}  // namespace
}  // namespace wisp::text_batch_test
