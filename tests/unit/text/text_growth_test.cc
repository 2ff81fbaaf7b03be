// The text that an app is shown while it grows, for every kind of tokenizer.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "runtime/text/generate.h"
#include "runtime/text/tokenizers/unicode.h"
#include "tests/unit/text/text_test_util.h"

namespace wisp::text_growth_test {
namespace {

using text::DecodeSpecials;
namespace test = text::test;

class TextGrowths : public ::testing::TestWithParam<const char*> {};

// The pieces that an app is shown are together the continuation of the prompt. (A byte that would damage the prompt's
// own characters is left out.)
TEST_P(TextGrowths, ShowWhatFollowsThePrompt) {
  const test::Opened opened = test::OpenGolden(GetParam());
  std::mt19937 random(3);
  std::vector<int32_t> prompt = test::EncodeIds(*opened, "a film", {.special = text::SpecialTokens::kNone});
  if (prompt.empty()) prompt.push_back(0);
  const std::string before = *opened->Decode(prompt, {});
  for (int round = 0; round < 200; ++round) {
    std::vector<int32_t> ids = test::RandomIds(*opened, random);
    std::erase_if(ids, [&](int32_t id) { return opened->IsEnd(id); });
    auto growth = TextGrowth::Begin(*opened, prompt, {.max_new_tokens = 1000, .max_tokens = 1000});
    ASSERT_TRUE(growth.ok());
    std::string shown;
    const OnText show = [&](std::string_view piece) {
      EXPECT_TRUE(text::IsUtf8(piece));
      shown += piece;
      return true;
    };
    for (const int32_t id : ids) ASSERT_TRUE(growth->Push(id, show).ok());
    const auto made = growth->Finish(show);
    ASSERT_TRUE(made.ok());
    EXPECT_EQ(shown, made->text);
    ids.insert(ids.begin(), prompt.begin(), prompt.end());
    EXPECT_EQ(before + shown, *opened->Decode(ids, {})) << testing::PrintToString(ids);
  }
}

// The bytes that the prompt holds back belong to the prompt.
TEST(TextGrowth, APromptThatEndsInBytes_isNotShown) {
  const test::Opened llama = test::OpenGolden("llama2");
  const auto id_of = [&](std::string_view token) {
    int32_t id = 0;
    while (llama->TokenText(id) != token) ++id;
    return id;
  };
  const std::vector<int32_t> prompt = {id_of("<0xE6>"), id_of("<0x97>"), id_of("<0xA5>")};
  auto growth = TextGrowth::Begin(*llama, prompt, {.max_new_tokens = 10, .max_tokens = 10});
  ASSERT_TRUE(growth.ok());
  ASSERT_TRUE(growth->Push(id_of("a"), {}).ok());
  EXPECT_EQ(growth->Finish({})->text, "a");
}

INSTANTIATE_TEST_SUITE_P(Kinds, TextGrowths, ::testing::ValuesIn(test::kGoldenNames), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace wisp::text_growth_test
