// Files beside a tokenizer: which tokens begin and end texts, settings that replace others, and notes on settings that
// are not followed.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/text/text_test_util.h"
#include "tools/convert/tokenizer_json.h"

namespace wisp::convert::tokenizer_settings_test {
namespace {

using nlohmann::json;
using text::test::EncodeIds;
using text::test::OpenFiles;
using text::test::SmallJson;

struct Made {
  TokenizerReport report;
  text::test::Opened opened;
  const text::Tokenizer* operator->() const { return &*opened.tokenizer; }
  const text::Tokenizer& operator*() const { return *opened.tokenizer; }
};

Made Make(TokenizerFiles files, const json& tokenizer = SmallJson()) {
  const std::string text = tokenizer.dump();
  files.name = "t";
  files.tokenizer_json = text;
  Made made;
  auto image = TokenizerImage(files, &made.report);
  EXPECT_TRUE(image.ok()) << image.status().message();
  if (!image.ok()) return made;
  made.opened.image = *std::move(image);
  made.opened.tokenizer = text::Tokenizer::Open("t", made.opened.image);
  EXPECT_TRUE(made.opened.tokenizer.ok()) << made.opened.tokenizer.status().message();
  return made;
}

bool Says(const TokenizerReport& report, const std::string& words) {
  return std::any_of(report.notes.begin(), report.notes.end(),
                     [&](const std::string& note) { return note.find(words) != std::string::npos; });
}

std::string FindSource(const TokenizerReport& report, const std::string& meaning, int32_t id) {
  for (const FoundToken& token : report.tokens) {
    if (token.meaning == meaning && token.id == id) return token.from;
  }
  return "nowhere";
}

TEST(TokenizerMeanings, EndsComeFromEveryFileThatNamesThem) {
  const Made made = Make({.tokenizer_config = R"({"eos_token": "un"})",
                          .special_tokens_map = R"({"bos_token": {"content": "a"}, "eos_token": "un"})",
                          .generation_config = R"({"eos_token_id": [9, 4, 7], "bos_token_id": 5})",
                          .config = R"({"eos_token_id": 8, "pad_token_id": 0})"});
  EXPECT_EQ(made->special_ids().eos, 4);  // the tokenizer's own: written after texts
  const std::span<const int32_t> others = made->other_ends();
  EXPECT_EQ(std::vector<int32_t>(others.begin(), others.end()), (std::vector<int32_t>{9, 7, 8}));
  for (const int32_t id : {4, 9, 7, 8}) EXPECT_TRUE(made->IsEnd(id)) << id;
  for (const int32_t id : {-1, 0, 5, 6}) EXPECT_FALSE(made->IsEnd(id)) << id;
  EXPECT_EQ(made->special_ids().bos, 7);
  EXPECT_EQ(made->special_ids().pad, 0);
  EXPECT_EQ(FindSource(made.report, "end", 4),
            "tokenizer_config.json, special_tokens_map.json, generation_config.json");
  EXPECT_EQ(FindSource(made.report, "end", 8), "config.json");
  EXPECT_EQ(FindSource(made.report, "begin", 7), "special_tokens_map.json");
}

TEST(TokenizerMeanings, NumbersStandWhereTheTokenizerNamesNoEnd) {
  const Made made = Make({.tokenizer_config = R"({"eos_token": null})", .config = R"({"eos_token_id": 7})"});
  EXPECT_EQ(made->special_ids().eos, 7);
  EXPECT_TRUE(made->other_ends().empty());
  // A usual name counts only if no file gives the meaning.
  json usual = SmallJson();
  usual["model"]["vocab"]["</s>"] = 10;
  EXPECT_EQ(Make({.tokenizer_config = R"({"eos_token": null})"}, usual)->special_ids().eos, -1);
  EXPECT_EQ(Make({.tokenizer_config = R"({"model_max_length": 8})"}, usual)->special_ids().eos, 10);
  EXPECT_EQ(Make({.config = R"({"eos_token_id": 7})"}, usual)->special_ids().eos, 7);
  EXPECT_EQ(Make({.generation_config = R"({"eos_token_id": -1})"}, usual)->special_ids().eos, -1);
}

TEST(TokenizerMeanings, MissingTokens_AreNoted) {
  const Made made = Make({.tokenizer_config = R"({"eos_token": "</gone>", "additional_special_tokens": ["<x>"]})",
                          .added_tokens = R"({"<y>": 12})",
                          .generation_config = R"({"eos_token_id": [4, 99, "7"]})"});
  EXPECT_EQ(made->special_ids().eos, 4);
  EXPECT_TRUE(made->other_ends().empty());
  EXPECT_TRUE(Says(made.report, "t/tokenizer_config.json: eos_token is '</gone>', which is no token"));
  EXPECT_TRUE(Says(made.report, "t/generation_config.json: eos_token_id is '99', which is no token"));
  EXPECT_TRUE(Says(made.report, "eos_token_id is '7', which is no token"));
  EXPECT_TRUE(Says(made.report, "additional_special_tokens has '<x>'"));
  EXPECT_TRUE(Says(made.report, "t/added_tokens.json: '<y>' is '12'"));
  std::string many = "[0";
  for (int i = 0; i < 100; ++i) many += "," + std::to_string(i);
  json wide = SmallJson();
  for (int i = 10; i < 100; ++i) wide["model"]["vocab"]["w" + std::to_string(i)] = i;
  const std::string wide_text = wide.dump(), ends = "{\"eos_token_id\": " + many + "]}";
  const auto refused = TokenizerImage({.name = "t", .tokenizer_json = wide_text, .generation_config = ends});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("t: 100 tokens end a text, allowed are 65"), std::string::npos)
      << refused.status().message();
}

TEST(TokenizerSettings, StatedOnesTakeTheirPlace) {
  const Made cased = Make({.tokenizer_config = R"({"do_lower_case": false})"});
  EXPECT_NE(EncodeIds(*cased, "A"), EncodeIds(*cased, "a"));
  EXPECT_TRUE(Says(cased.report, "do_lower_case is false, which takes the place of what tokenizer.json says"));
  EXPECT_TRUE(Make({.tokenizer_config = R"({"do_lower_case": true})"}).report.notes.empty());
  // sentence-transformers asks for lower case, whatever the tokenizer does.
  json plain = SmallJson();
  plain["normalizer"]["lowercase"] = false;
  EXPECT_NE(EncodeIds(*Make({}, plain), "A"), EncodeIds(*Make({}, plain), "a"));
  const Made lower = Make({.lower_case = true}, plain);
  EXPECT_EQ(EncodeIds(*lower, "A"), EncodeIds(*lower, "a"));
  // The configuration has a token that tokenizer.json does not add.
  const Made added = Make({.tokenizer_config = R"({"added_tokens_decoder": {"10": {"content": "<x>", "special": true,
      "lstrip": false, "rstrip": false, "normalized": false, "single_word": false}}})"});
  EXPECT_EQ(EncodeIds(*added, "a<x>"), (std::vector<int32_t>{2, 7, 10, 3}));
  EXPECT_TRUE(Says(added.report, "the token '<x>' is added, which tokenizer.json does not have"));
  const auto wrong =
      TokenizerImage({.name = "t", .tokenizer_json = plain.dump(), .tokenizer_config = R"({"do_lower_case": 1})"});
  EXPECT_FALSE(wrong.ok());
}

TEST(TokenizerSettings, SpaceBeforeATextIsFollowed) {
  const json level = json::parse(R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
      "model": {"type": "BPE", "vocab": {"a": 0, "Ġ": 1, "Ġa": 2}, "merges": ["Ġ a"]}})");
  EXPECT_EQ(EncodeIds(*Make({}, level), "a"), (std::vector<int32_t>{0}));
  const Made spaced = Make({.tokenizer_config = R"({"add_prefix_space": true})"}, level);
  EXPECT_EQ(EncodeIds(*spaced, "a"), (std::vector<int32_t>{2}));
  EXPECT_TRUE(Says(spaced.report, "add_prefix_space is true, which takes the place"));
  EXPECT_TRUE(Says(Make({.tokenizer_config = R"({"add_prefix_space": true})"}).report,
                   "add_prefix_space is true, which is not followed"));
}

// Llama's tokenizers make this template from two switches.
TEST(TokenizerSettings, BeginAndEndAreAddedAsAsked) {
  const json bare = json::parse(R"({"model": {"type": "BPE", "vocab": {"a": 0, "<s>": 1, "</s>": 2}, "merges": []}})");
  const char* config = R"({"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "eos_token": "</s>",
      "add_bos_token": true, "add_eos_token": true})";
  const Made made = Make({.tokenizer_config = config}, bare);
  EXPECT_EQ(EncodeIds(*made, "a"), (std::vector<int32_t>{1, 0, 2}));
  EXPECT_EQ(EncodeIds(*made, "a", {.special = text::SpecialTokens::kBefore}), (std::vector<int32_t>{1, 0}));
  EXPECT_EQ(EncodeIds(*made, "a", {.special = text::SpecialTokens::kNone}), (std::vector<int32_t>{0}));
  std::vector<int32_t> pair;
  ASSERT_TRUE(made->EncodePair("a", "a", {.special = text::SpecialTokens::kBefore}, pair).ok());
  EXPECT_EQ(pair, (std::vector<int32_t>{1, 0, 2, 1, 0}));
  const Made other = Make({.tokenizer_config = R"({"add_bos_token": true, "bos_token": "<s>"})"}, bare);
  EXPECT_EQ(EncodeIds(*other, "a"), (std::vector<int32_t>{0}));
  EXPECT_TRUE(Says(other.report, "which is not followed: tokenizer.json puts others there"));
}

TEST(TokenizerSettings, IgnoredSettings_AreNoted) {
  const Made made = Make({.tokenizer_config = R"({"chat_template": "{{ x }}", "split_special_tokens": true,
      "clean_up_tokenization_spaces": true, "never_seen_before": 3, "padding_side": "left", "model_max_length": 512,
      "legacy": false, "another": null})"});
  EXPECT_EQ(made.report.max_length, 512u);
  EXPECT_EQ(made.report.notes.size(), 4u);
  EXPECT_TRUE(Says(made.report, "it has a chat_template, which is not followed"));
  EXPECT_TRUE(Says(made.report, "split_special_tokens is 'true', which is not followed"));
  EXPECT_TRUE(Says(made.report, "clean_up_tokenization_spaces is 'true', which is not followed"));
  EXPECT_TRUE(Says(made.report, "'never_seen_before' is '3', which is not known here and not followed"));
  EXPECT_EQ(Make({.tokenizer_config = R"({"model_max_length": 1000000000000000019884624838656})"}).report.max_length,
            0u);
}

}  // namespace
}  // namespace wisp::convert::tokenizer_settings_test
