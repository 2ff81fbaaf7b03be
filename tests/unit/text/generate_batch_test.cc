// Several prompts at once: each gets, to the bit, the text that it gets alone.
#include "runtime/text/generate_batch.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>

#include "runtime/text/texts.h"
#include "tests/unit/core/temporary_folder.h"
#include "tests/unit/from_sources.h"
#include "tests/unit/gradients/gradient_test_util.h"
#include "tools/convert/tokenizer_json.h"

namespace wisp::generate_batch_test {
namespace {

class GenerateTogetherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ifstream file(wisp::test::FromSources("tests/golden/tokenizers/gpt2.json"), std::ios::binary);
    const std::string json(std::istreambuf_iterator<char>(file), {});
    const auto image = convert::TokenizerImage({.name = "gpt2", .tokenizer_json = json});
    ASSERT_TRUE(image.ok()) << image.status().message();
    const Architecture a = UniformArchitecture{.num_items = 460,
                                               .max_length = 40,
                                               .width = 16,
                                               .num_heads = 2,
                                               .num_blocks = 2,
                                               .inner_width = 24,
                                               .activation = ActivationKind::kGeluTanh};
    const std::vector<float> weights = test::RandomWeights(a, 7);
    ModelContents contents{.architecture = a, .weights = weights};
    contents.tokenizer = *image;
    ASSERT_TRUE(WriteModel(folder_ / "m", contents).ok());
    session_ = *Session::Open(folder_ / "m");
    tokenizer_.emplace(*FindTokenizer(session_->file()));
  }
  Generated Alone(const std::string& prompt, GenerateOptions options, size_t index) {
    options.sampling.seed += index;
    const auto made = Generate(*session_, *tokenizer_, prompt, options);
    EXPECT_TRUE(made.ok()) << made.status().message();
    return *made;
  }

  const test::TemporaryFolder folder_;
  std::unique_ptr<Session> session_;
  std::optional<text::Tokenizer> tokenizer_;
  const std::vector<std::string> prompts_ = {
      "Once upon", "a", "the tea is cold, and so is the soup that", "Once", "x", "of what there is", "and"};
};

TEST_F(GenerateTogetherTest, EachTextIsThatOfItsPromptAlone) {
  for (const GenerateOptions& o :
       {GenerateOptions{.sampling = {.top_k = 50, .seed = 4}, .max_new_tokens = 12},
        GenerateOptions{.sampling = {.temperature = 0}, .max_new_tokens = 5},
        GenerateOptions{
            .sampling = {.repetition_penalty = 1.5, .seed = 90}, .max_new_tokens = 1000, .stop = {"e", "at"}}}) {
    for (const size_t at_once : {1, 3, 7, 200}) {
      std::map<size_t, std::string> heard;
      const auto made = GenerateBatch(*session_, *tokenizer_, prompts_, o, {.at_once = at_once},
                                      [&](size_t prompt, std::string_view more) {
                                        heard[prompt] += more;
                                        return true;
                                      });
      ASSERT_TRUE(made.ok()) << made.status().message();
      ASSERT_EQ(made->size(), prompts_.size());
      for (size_t i = 0; i < prompts_.size(); ++i) {
        const Generated alone = Alone(prompts_[i], o, i);
        EXPECT_EQ((*made)[i].tokens, alone.tokens) << at_once << " at once, prompt " << i;
        EXPECT_EQ((*made)[i].text, alone.text);
        EXPECT_EQ((*made)[i].ended, alone.ended);
        EXPECT_EQ((*made)[i].prompt_tokens, alone.prompt_tokens);
        EXPECT_EQ(heard[i], alone.text);
      }
    }
  }
}

TEST_F(GenerateTogetherTest, WhoListensEndsOneText) {
  const GenerateOptions o{.sampling = {.seed = 4}, .max_new_tokens = 12};
  const auto made = GenerateBatch(*session_, *tokenizer_, prompts_, o, {.at_once = 4},
                                  [](size_t prompt, std::string_view) { return prompt != 2; });
  ASSERT_TRUE(made.ok()) << made.status().message();
  for (size_t i = 0; i < prompts_.size(); ++i) {
    const Generated alone = Alone(prompts_[i], o, i);
    if (i == 2) {
      EXPECT_EQ((*made)[i].ended, Ended::kCaller);
      EXPECT_TRUE(alone.text.starts_with((*made)[i].text));
    } else {
      EXPECT_EQ((*made)[i].text, alone.text) << i;
    }
  }
}

TEST_F(GenerateTogetherTest, NamesThePromptThatItCannotTake) {
  std::vector<std::string> prompts = prompts_;
  prompts[5] = std::string(500, 'x');
  size_t calls = 0;
  const auto refused = GenerateBatch(*session_, *tokenizer_, prompts, {}, {}, [&](size_t, std::string_view) {
    ++calls;
    return true;
  });
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(refused.status().message().find("prompt 6: the prompt has "), std::string::npos)
      << refused.status().message();
  EXPECT_EQ(calls, 0u);
  EXPECT_FALSE(GenerateBatch(*session_, *tokenizer_, prompts_, {}, {.at_once = 0}).ok());
  EXPECT_FALSE(GenerateBatch(*session_, *tokenizer_, prompts_, {}, {.at_once = 257}).ok());
  EXPECT_FALSE(GenerateBatch(*session_, *tokenizer_, prompts_, {.sampling = {.temperature = -1}}).ok());
  EXPECT_TRUE(GenerateBatch(*session_, *tokenizer_, {}, {})->empty());
}

}  // namespace
}  // namespace wisp::generate_batch_test
