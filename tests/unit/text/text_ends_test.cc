// The ends of texts: every token that ends one stops generation, a prompt stays open, and training records are marked
// once.
#include <gtest/gtest.h>

#include "runtime/text/generate.h"
#include "runtime/text/texts.h"
#include "tools/convert/tokenizer_json.h"

namespace wisp::text_ends_test {
namespace {

struct Opened {
  std::vector<std::byte> image;
  Result<text::Tokenizer> tokenizer = Status(StatusCode::kInvalidData, "not opened");
  const text::Tokenizer& operator*() const { return *tokenizer; }
};

Opened OpenFiles(const convert::TokenizerFiles& files) {
  Opened opened;
  auto image = convert::TokenizerImage(files);
  EXPECT_TRUE(image.ok()) << image.status().message();
  if (!image.ok()) return opened;
  opened.image = *std::move(image);
  opened.tokenizer = text::Tokenizer::Open(files.name, opened.image);
  EXPECT_TRUE(opened.tokenizer.ok()) << opened.tokenizer.status().message();
  return opened;
}

// a 0, b 1, <s> 2, </s> 3, <turn> 4, with a template that closes texts.
Opened Tokenizer() {
  const std::string file = R"({
      "added_tokens": [{"id": 2, "content": "<s>", "special": true}, {"id": 3, "content": "</s>", "special": true},
                       {"id": 4, "content": "<turn>", "special": true}],
      "post_processor": {"type": "TemplateProcessing",
          "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                     {"SpecialToken": {"id": "</s>", "type_id": 0}}],
          "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
          "special_tokens": {"<s>": {"id": "<s>", "ids": [2], "tokens": ["<s>"]},
                             "</s>": {"id": "</s>", "ids": [3], "tokens": ["</s>"]}}},
      "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "<s>": 2, "</s>": 3, "<turn>": 4}, "merges": []}})";
  return OpenFiles({.name = "t",
                    .tokenizer_json = file,
                    .tokenizer_config = R"({"bos_token": "<s>", "eos_token": "</s>"})",
                    .generation_config = R"({"eos_token_id": [3, 4]})"});
}

TEST(TextEnds, EveryTokenThatEndsATextStopsGeneration) {
  const auto tokenizer = Tokenizer();
  for (const int32_t end : {3, 4}) {
    const auto made =
        GrowText(*tokenizer, {2, 0}, {.max_new_tokens = 9, .max_tokens = 20},
                 [&](std::span<const int32_t> tokens) -> Result<int32_t> { return tokens.size() < 4 ? 1 : end; }, {});
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_EQ(made->ended, Ended::kEndToken) << end;
    EXPECT_EQ(made->tokens, (std::vector<int32_t>{1, 1}));
  }
}

TEST(TextEnds, Prompt_ContinuesAfterAnEndOfItsOwn) {
  const auto tokenizer = Tokenizer();
  const auto prompt = [&](std::string_view text) {
    std::vector<int32_t> tokens;
    const Status status = PromptTokens(*tokenizer, text, 20, tokens);
    EXPECT_TRUE(status.ok()) << status.message();
    return tokens;
  };
  EXPECT_EQ(prompt("ab"), (std::vector<int32_t>{2, 0, 1}));
  EXPECT_EQ(prompt("a</s>"), (std::vector<int32_t>{2, 0, 3}));
  EXPECT_EQ(prompt("a<turn>"), (std::vector<int32_t>{2, 0, 4}));
  EXPECT_EQ(prompt(""), (std::vector<int32_t>{2}));
}

TEST(TextEnds, RecordsAreMarkedOnce) {
  const auto tokenizer = Tokenizer();
  const auto record = [&](std::string_view text, TextEnd end) {
    std::vector<int32_t> tokens;
    EXPECT_TRUE(AppendRecord(*tokenizer, text, end, 20, nullptr, tokens).ok());
    return tokens;
  };
  EXPECT_EQ(record("ab", TextEnd::kMarked), (std::vector<int32_t>{2, 0, 1, 3}));
  // A piece of a text stays open, whatever the template puts after texts.
  EXPECT_EQ(record("ab", TextEnd::kOpen), (std::vector<int32_t>{2, 0, 1}));
}

// A text that ends with another end token is not marked a second time.
TEST(TextEnds, AnotherEndIsAnEnd) {
  const std::string file = R"({"added_tokens": [{"id": 2, "content": "<turn>", "special": true}],
      "model": {"type": "BPE", "vocab": {"a": 0, "</s>": 1, "<turn>": 2}, "merges": []}})";
  const auto tokenizer = OpenFiles({.name = "t",
                                    .tokenizer_json = file,
                                    .tokenizer_config = R"({"eos_token": "</s>"})",
                                    .config = R"({"eos_token_id": 2})"});
  const auto record = [&](std::string_view text, TextEnd end) {
    std::vector<int32_t> tokens;
    EXPECT_TRUE(AppendRecord(*tokenizer, text, end, 20, nullptr, tokens).ok());
    return tokens;
  };
  EXPECT_EQ(record("a", TextEnd::kMarked), (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(record("a<turn>", TextEnd::kMarked), (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(record("a", TextEnd::kOpen), (std::vector<int32_t>{0}));
}

}  // namespace
}  // namespace wisp::text_ends_test
