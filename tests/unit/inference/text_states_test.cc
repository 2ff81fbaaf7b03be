// Several texts on one session's weights: the same scores as one by one, whatever is kept.
#include "runtime/inference/text_states.h"

#include <gtest/gtest.h>

#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/gradients/gradient_test_util.h"

namespace wisp {
namespace {

TEST(TextStates, EachTextHasTheScoresThatItHasAlone) {
  const test::TemporaryFolder folder;
  const Architecture a = UniformArchitecture{
      .num_items = 30, .max_length = 9, .width = 8, .num_heads = 2, .num_blocks = 2, .inner_width = 8};
  const std::vector<float> weights = testing::RandomWeights(a, 3);
  ASSERT_TRUE(WriteModel(folder / "m", {.architecture = a, .weights = weights}).ok());
  const auto session = *Session::Open(folder / "m"), alone = *Session::Open(folder / "m");
  TextStates states(*session, 3);
  EXPECT_GT(states.bytes(), 3 * session->graph().cache_bytes(KeptBlocks::kAll));
  std::vector<std::vector<int32_t>> texts = {{1, 2}, {5}, {7, 8, 9}};
  std::vector<float> scores(30), expected(30);
  for (int32_t round = 0; round < 8; ++round) {
    for (size_t i = 0; i < texts.size(); ++i) {
      if (texts[i].size() == a.max_length) texts[i] = {4, static_cast<int32_t>(i)};  // another text in its place
      ASSERT_TRUE(states.Score(i, texts[i], scores).ok());
      ASSERT_TRUE(alone->Score(std::vector<int32_t>{29}, expected).ok());  // nothing is kept of it
      ASSERT_TRUE(alone->Score(texts[i], expected).ok());
      EXPECT_EQ(scores, expected) << round << " " << i;
      texts[i].push_back((round * 7 + static_cast<int32_t>(i)) % 30);
    }
  }
  EXPECT_FALSE(states.Score(0, {}, scores).ok());
  EXPECT_FALSE(states.Score(0, std::vector<int32_t>(10, 1), scores).ok());
  EXPECT_FALSE(states.Score(0, std::vector<int32_t>{30}, scores).ok());
  EXPECT_FALSE(states.Score(0, texts[0], std::span(scores).first(29)).ok());
}

}  // namespace
}  // namespace wisp
