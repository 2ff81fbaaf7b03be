// Private texts in a prompt. Each adds to the sum exactly what it adds alone, however many there are.
#include "runtime/text/private_sampling/private_contexts.h"

#include <gtest/gtest.h>

#include "runtime/private_sampling/context_sum.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/gradients/gradient_test_util.h"
#include "tests/unit/text/text_test_util.h"

namespace wisp::private_contexts_test {
namespace {

constexpr uint32_t kTokens = 450, kItems = 460, kMostSampled = 8;
constexpr double kClip = 1.5;

class PrivateContextsTest : public ::testing::Test {
 protected:
  PrivateContextsTest() {
    const Architecture a = UniformArchitecture{.num_items = kItems,
                                               .max_length = 48,
                                               .width = 16,
                                               .num_heads = 2,
                                               .num_blocks = 2,
                                               .inner_width = 16,
                                               .activation = ActivationKind::kGeluTanh};
    const std::vector<float> weights = test::RandomWeights(a, 3);
    ModelContents contents{.architecture = a, .weights = weights};
    contents.tokenizer = text::test::OpenGolden("gpt2").image;
    const std::string path = folder_ / "m.wisp";
    EXPECT_TRUE(WriteModel(path, contents).ok());
    session_ = *Session::Open(path);
    tokenizer_ = std::make_unique<text::Tokenizer>(*FindTokenizer(session_->file()));
  }
  PrivateContexts Make(std::span<const std::string> texts, uint32_t contexts) {
    auto made = PrivateContexts::Create(*session_, *tokenizer_, {.texts = texts, .before = "A note: "}, "the",
                                        {.contexts = contexts, .max_new_tokens = kMostSampled});
    EXPECT_TRUE(made.ok()) << made.status().message();
    return *std::move(made);
  }
  static std::vector<int64_t> GetSum(PrivateContexts& contexts, const std::vector<int32_t>& sampled) {
    std::vector<float> scores(kItems);
    EXPECT_TRUE(contexts.PublicScores(sampled, scores).ok());
    scores.resize(kTokens);
    std::vector<int64_t> sums(kTokens, 99);
    const Status summed = contexts.Sum(sampled, kClip, scores, sums);
    EXPECT_TRUE(summed.ok()) << summed.message();
    return sums;
  }
  // Returns the sum over contexts that hold one text each.
  std::vector<int64_t> OneAtATime(const std::vector<std::string>& texts, const std::vector<int32_t>& sampled) {
    std::vector<int64_t> sums(kTokens, 0);
    for (const std::string& text : texts) {
      PrivateContexts one = Make({&text, 1}, 1);
      const std::vector<int64_t> alone = GetSum(one, sampled);
      for (size_t j = 0; j < kTokens; ++j) sums[j] += alone[j];
    }
    return sums;
  }

  const test::TemporaryFolder folder_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
};

// Makes texts of which no two are alike. Some are so long that they pass alone or are cut, and one cannot be tokenised.
std::vector<std::string> Notes(size_t count) {
  std::vector<std::string> notes;
  for (size_t i = 0; i < count; ++i) {
    std::string note = "note " + std::to_string(i * 37 % 1000);
    for (size_t j = 0; j < i % 7; ++j) note += " tea and a bagel";
    notes.push_back(i == 5 ? "\xff" : note);
  }
  return notes;
}

struct Case {
  size_t texts;
  uint32_t contexts;
};

TEST_F(PrivateContextsTest, AnyNumberOfTextsAddsWhatEachAddsAlone) {
  // Up to 16 texts pass together. As many as there are contexts, up to 255, keep their keys and values.
  for (const Case& c : {Case{1, 4}, {3, 2}, {16, 16}, {17, 17}, {20, 3}, {20, 18}, {40, 100}, {35, 1}, {260, 300}}) {
    SCOPED_TRACE(::testing::Message() << c.texts << " texts, " << c.contexts << " contexts");
    const std::vector<std::string> notes = Notes(c.texts);
    PrivateContexts contexts = Make(notes, c.contexts);
    EXPECT_EQ(contexts.left_out(), c.texts > 5 ? 1u : 0u);
    // The text grows by one token, then by several, and then starts anew.
    for (const std::vector<int32_t>& sampled :
         {std::vector<int32_t>{}, {40}, {40, 41}, {40, 41, 7, 300, 2}, {17}, {17, 18, 19, 20, 21, 22, 23}})
      EXPECT_EQ(GetSum(contexts, sampled), OneAtATime(notes, sampled)) << sampled.size() << " tokens sampled";
  }
}

TEST_F(PrivateContextsTest, NoTextAddsNothing) {
  PrivateContexts contexts = Make({}, 20);
  EXPECT_EQ(GetSum(contexts, {40}), std::vector<int64_t>(kTokens, 0));
}

// Such values exceed what is allowed: an error about public values comes before any text is read.
TEST_F(PrivateContextsTest, NeedsAPositionForAText) {
  const std::vector<std::string> notes = Notes(20);
  const auto code = [&](const std::string& prompt, uint32_t tokens) {
    return PrivateContexts::Create(*session_, *tokenizer_, {.texts = notes}, prompt,
                                   {.contexts = 20, .max_new_tokens = tokens})
        .status()
        .code();
  };
  EXPECT_EQ(code("the", 8), StatusCode::kOk);
  EXPECT_EQ(code("the", 48), StatusCode::kInvalidArgument);
  EXPECT_EQ(code("\xff", 8), StatusCode::kInvalidData);
}

}  // namespace
}  // namespace wisp::private_contexts_test
