// Compares every kind of tokenizer with the reference's results on the same texts (tests/golden/tokenizers/, made by
// tools/tokenizers/make_goldens.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "runtime/text/tokenizers/unicode.h"
#include "tests/unit/text/text_test_util.h"

namespace wisp::text::text_golden_test {
namespace {

using nlohmann::json;
using test::EncodeIds;
using test::OpenGolden;

class Golden : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    opened_ = OpenGolden(GetParam());
    ASSERT_TRUE(opened_.tokenizer.ok());
    cases_ = json::parse(test::ReadFile(test::GoldenPath(std::string(GetParam()) + ".cases.json")));
    ASSERT_GT(cases_.size(), 30u);
  }
  std::string GetText(size_t i) const { return cases_[i]["text"].get<std::string>(); }
  std::vector<int32_t> Ids(size_t i, const char* key) const { return cases_[i][key].get<std::vector<int32_t>>(); }

  test::Opened opened_;
  json cases_;
};

TEST_P(Golden, IdsAreThoseOfTheReference) {
  Scratch scratch;
  for (size_t i = 0; i < cases_.size(); ++i) {
    SCOPED_TRACE(GetText(i));
    EXPECT_EQ(EncodeIds(*opened_, GetText(i), {.scratch = &scratch}), Ids(i, "ids"));
    EXPECT_EQ(EncodeIds(*opened_, GetText(i), {.special = SpecialTokens::kNone}), Ids(i, "plain"));
  }
}

TEST_P(Golden, WordsFromTheCacheHaveTheSameIds) {
  Scratch scratch;
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < cases_.size(); ++i)
      EXPECT_EQ(EncodeIds(*opened_, GetText(i), {.scratch = &scratch}), Ids(i, "ids")) << GetText(i);
  }
}

TEST_P(Golden, PairsAreThoseOfTheReference) {
  for (size_t i = 0; i < cases_.size(); ++i) {
    const std::string first = GetText(i == 0 ? cases_.size() - 1 : i - 1);
    std::vector<int32_t> ids;
    ASSERT_TRUE(opened_->EncodePair(first, GetText(i), {}, ids).ok());
    EXPECT_EQ(ids, Ids(i, "pair")) << GetText(i);
  }
}

TEST_P(Golden, TextsAreThoseOfTheReference) {
  for (size_t i = 0; i < cases_.size(); ++i) {
    const auto shown = opened_->Decode(Ids(i, "ids"), {});
    const auto all = opened_->Decode(Ids(i, "ids"), {.special = DecodeSpecials::kKeep});
    ASSERT_TRUE(shown.ok() && all.ok());
    EXPECT_EQ(*shown, cases_[i]["decoded"].get<std::string>()) << GetText(i);
    EXPECT_EQ(*all, cases_[i]["decoded_all"].get<std::string>()) << GetText(i);
  }
}

TEST_P(Golden, StreamEndsAsTheWholeDoes) {
  for (size_t i = 0; i < cases_.size(); ++i) {
    StreamDecoder stream(*opened_, {});
    std::string text;
    for (const int32_t id : Ids(i, "ids")) {
      const auto more = stream.Push(id);
      ASSERT_TRUE(more.ok()) << more.status().message();
      EXPECT_TRUE(IsUtf8(*more));
      text += *more;
    }
    const std::string rest = stream.Finish();
    EXPECT_EQ(text + rest, cases_[i]["decoded"].get<std::string>());
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Golden, testing::ValuesIn(test::kGoldenNames), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// The comparison above must notice a file that differs in one id.
TEST(GoldenFiles, DifferFromEachOther) {
  const test::Opened bert = OpenGolden("bert"), cased = OpenGolden("bert-cased");
  const auto cases = json::parse(test::ReadFile(test::GoldenPath("bert.cases.json")));
  size_t differ = 0;
  for (const json& c : cases)
    differ += EncodeIds(*cased, c["text"].get<std::string>()) != c["ids"].get<std::vector<int32_t>>();
  EXPECT_GT(differ, cases.size() / 3);
}

// Applies the merges of a file one after the other, the best first: slow and plain.
std::vector<std::string> NaiveMerges(const json& merges, std::vector<std::string> symbols) {
  for (const json& merge : merges) {
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      if (symbols[i] != merge[0].get_ref<const std::string&>() ||
          symbols[i + 1] != merge[1].get_ref<const std::string&>())
        continue;
      symbols[i] += symbols[i + 1];
      symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(i) + 1);
    }
  }
  return symbols;
}

TEST(GoldenFiles, WordsOfAnyLengthMergeAsThePlainWayDoes) {
  const json file = json::parse(test::ReadFile(test::GoldenPath("gpt2.json")));
  const test::Opened gpt2 = OpenGolden("gpt2");
  const uint32_t seed = 4;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  // Pieces of tokens, so that many merges compete.
  const auto piece = [&] {
    std::string text(gpt2->TokenText(static_cast<int32_t>(random() % gpt2->size())));
    const auto other = [](char c) { return c < 'a' || c > 'z'; };
    text.erase(std::remove_if(text.begin(), text.end(), other), text.end());
    return text.substr(0, 1 + random() % 5);
  };
  for (size_t size = 1; size < 300; ++size) {
    std::string word;
    while (word.size() < size) word += piece();
    std::vector<std::string> symbols;
    for (const char c : word) symbols.emplace_back(1, c);
    std::vector<std::string> merged;
    for (const int32_t id : EncodeIds(*gpt2, word)) merged.emplace_back(gpt2->TokenText(id));
    EXPECT_EQ(merged, NaiveMerges(file["model"]["merges"], symbols)) << word;
  }
}

}  // namespace
}  // namespace wisp::text::text_golden_test
