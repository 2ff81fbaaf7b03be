// A session with a float16 key/value cache: nearly the same scores with half the memory.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/inference/session.h"
#include "runtime/model/model_file.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/gradients/gradient_test_util.h"

namespace wisp::float16_cache_test {
namespace {

const SessionOptions kHalves{.kept = kernels::CacheType::kHalf};

class Float16Cache : public ::testing::Test {
 protected:
  std::unique_ptr<Session> Open(const Architecture& a, const SessionOptions& options) {
    const std::vector<float> weights = test::RandomWeights(a, 3);
    EXPECT_TRUE(WriteModel(path_, {.architecture = a, .weights = weights}).ok());
    Result<std::unique_ptr<Session>> session = Session::Open(path_, options);
    EXPECT_TRUE(session.ok()) << session.status().message();
    return session.ok() ? std::move(*session) : nullptr;
  }
  static std::vector<int32_t> History(const Architecture& a, size_t length) {
    std::vector<int32_t> history;
    for (size_t i = 0; i < length; ++i) history.push_back(static_cast<int32_t>(i * 7 % a.num_items));
    return history;
  }
  static std::vector<float> Scores(Session& session, std::span<const int32_t> history) {
    std::vector<float> scores(session.architecture().num_items);
    EXPECT_TRUE(session.Score(history, scores).ok());
    return scores;
  }

  const test::TemporaryFolder folder_;
  const std::string path_ = folder_ / "m.wisp";
};

Architecture Wide(NormPlacement norm = NormPlacement::kPre) {
  return UniformArchitecture{.num_items = 300,
                             .max_length = 96,
                             .width = 96,
                             .num_heads = 3,
                             .num_blocks = 3,
                             .inner_width = 200,
                             .norm = norm};
}

TEST_F(Float16Cache, Scores_AreNearlyTheSameWithHalfTheMemory) {
  for (const auto norm : {NormPlacement::kPre, NormPlacement::kPost}) {
    const Architecture a = Wide(norm);
    const auto floats = Open(a, {}), halves = Open(a, kHalves);
    ASSERT_TRUE(floats != nullptr && halves != nullptr);
    const size_t kept = size_t{3} * 96 * 2 * 96 * sizeof(float);  // blocks, positions, keys and values
    EXPECT_EQ(floats->memory().activations - halves->memory().activations, kept / 2);
    const Result<InferenceMemory> plan = Session::PlanMemory(halves->file(), kHalves);
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->activations, halves->memory().activations);
    const std::vector<int32_t> history = History(a, 90);
    const std::vector<float> exact = Scores(*floats, history), scores = Scores(*halves, history);
    double dot = 0, squares = 0, exact_squares = 0;
    for (size_t i = 0; i < scores.size(); ++i) {
      dot += static_cast<double>(scores[i]) * static_cast<double>(exact[i]);
      squares += static_cast<double>(scores[i]) * static_cast<double>(scores[i]);
      exact_squares += static_cast<double>(exact[i]) * static_cast<double>(exact[i]);
    }
    EXPECT_GT(dot / std::sqrt(squares * exact_squares), 0.99999);
    EXPECT_NE(scores, exact);
  }
}

// A history's values are rounded once, when they pass; the number of calls does not matter.
TEST_F(Float16Cache, OneEventAtATimeGivesTheSameBits) {
  const Architecture a = Wide();
  const auto whole = Open(a, kHalves), in_turn = Open(a, kHalves);
  const auto threads = Open(a, {.num_threads = 3, .kept = kernels::CacheType::kHalf});
  ASSERT_TRUE(whole != nullptr && in_turn != nullptr && threads != nullptr);
  const std::vector<int32_t> history = History(a, 60);
  for (size_t n = 1; n <= history.size(); ++n) {
    const auto first = std::span(history).first(n);
    const std::vector<float> scores = Scores(*in_turn, first);
    EXPECT_EQ(Scores(*threads, first), scores) << n;
    if (n % 13 != 0) continue;
    EXPECT_EQ(Scores(*whole, first), scores) << n;
    // Another history comes between them, so all of the next one passes again.
    (void)Scores(*whole, std::vector<int32_t>{5, 4, 3});
  }
}

TEST_F(Float16Cache, IsRefusedWithReAttention) {
  Architecture a = Wide();
  a.re_attention = ReAttention::kOn;
  const std::vector<float> weights = test::RandomWeights(a, 3);
  ASSERT_TRUE(WriteModel(path_, {.architecture = a, .weights = weights}).ok());
  const Result<std::unique_ptr<Session>> session = Session::Open(path_, kHalves);
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(session.status().code(), StatusCode::kUnsupported);
  EXPECT_NE(session.status().message().find("without Re-Attention"), std::string::npos) << session.status().message();
}

}  // namespace
}  // namespace wisp::float16_cache_test
