// Records of text: what each unit makes of a file; that no record holds bytes or tokens of another; what is left out.
#include "runtime/data/texts.h"

#include <gtest/gtest.h>

namespace wisp::data {
namespace {

using Strings = std::vector<std::string>;
using Lines = std::vector<uint64_t>;

Texts Parse(const std::string& file, const std::string& unit) {
  const auto parsed = ParseTextUnit("--record", unit);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  auto texts = ParseTexts("f.txt", file, {.unit = *parsed});
  EXPECT_TRUE(texts.ok()) << texts.status().message();
  return texts.ok() ? *std::move(texts) : Texts{};
}

// Every byte a token.
Result<Tokenised> Bytes(std::string_view text, std::vector<int32_t>& tokens) {
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  if (text.find('!') != std::string_view::npos) return InvalidData("it has a !");
  return Tokenised{};
}

TEST(Texts, UnitsAreReadAndWritten) {
  for (const char* unit : {"line", "paragraph", "chunk:8", "chunk:1048576"})
    EXPECT_EQ(ToText(*ParseTextUnit("--record", unit)), unit);
  for (const char* unit :
       {"", "lines", "chunk", "chunk:", "chunk:7", "chunk:1048577", "chunk:9x", "chunk:-9", "chunk:1e3"}) {
    const auto refused = ParseTextUnit("--record", unit);
    ASSERT_EQ(refused.status().code(), StatusCode::kInvalidArgument) << unit;
    EXPECT_NE(refused.status().message().find("--record is '" + std::string(unit) + "', allowed are line"),
              std::string::npos)
        << refused.status().message();
  }
}

TEST(Texts, LinesAndParagraphsAreRecords) {
  const std::string file = "\xef\xbb\xbfone a\r\none b\r\n \t\n\ntwo\n\n\n  three\nlast";
  const Texts lines = Parse(file, "line"), paragraphs = Parse(file, "paragraph");
  EXPECT_EQ(lines.texts, (Strings{"one a", "one b", "two", "  three", "last"}));
  EXPECT_EQ(lines.lines, (Lines{1, 2, 5, 8, 9}));
  EXPECT_EQ(paragraphs.texts, (Strings{"one a\none b", "two", "  three\nlast"}));
  EXPECT_EQ(paragraphs.lines, (Lines{1, 5, 8}));
}

TEST(Texts, ChunksAreTheFileAndBreakNoCharacter) {
  EXPECT_EQ(Parse("0123456789abcdef!", "chunk:8").texts, (Strings{"01234567", "89abcdef", "!"}));
  // A character over a border stays with the chunk that it begins in.
  const Texts texts = Parse(
      "0123456\xc3\xa9"
      "89\nbcde\xf0\x9f\x98\x80tuvwxyz",
      "chunk:8");
  EXPECT_EQ(texts.texts, (Strings{"0123456\xc3\xa9", "89\nbcde", "\xf0\x9f\x98\x80tuvw", "xyz"}));
  EXPECT_EQ(texts.lines, (Lines{1, 1, 2, 2}));
  // What is no UTF-8 is cut all the same, and blanks alone are no text.
  EXPECT_EQ(Parse(std::string(20, '\x80'), "chunk:8").texts.size(), 3u);
  EXPECT_EQ(Parse("01234567        89abcdef", "chunk:8").texts, (Strings{"01234567", "89abcdef"}));
}

TEST(Texts, AFileWithoutTextIsRefusedWhereThatTellsOfNobody) {
  const auto refused = ParseTexts("f.txt", "\n \n", {});
  ASSERT_EQ(refused.status().code(), StatusCode::kInvalidData);
  EXPECT_EQ(refused.status().message(), "f.txt: there is no text in it");
  EXPECT_TRUE(ParseTexts("f.txt", "\n \n", {.private_run = true})->texts.empty());
  EXPECT_EQ(ReadTexts("/nowhere/f.txt", {}).status().code(), StatusCode::kIo);
}

// A record's tokens follow from its own text: with another text before it, or without one, they are the same.
TEST(Texts, NoRecordHoldsAnythingOfAnother) {
  for (const char* file : {"abc\nde\nfgh\n", "zzzzzz\nde\nq\nfgh\n", "!\nde\nfgh\n"}) {
    const Texts texts = Parse(file, "line");
    const auto encoded = EncodeTexts(texts, Bytes, /*drop_bad=*/true);
    ASSERT_TRUE(encoded.ok());
    std::vector<std::string> found;
    for (size_t i = 0; i < encoded->size(); ++i) {
      const std::span<const int32_t> record = encoded->Record(i);
      found.emplace_back(record.begin(), record.end());
      EXPECT_EQ(found.back(), texts.texts[encoded->text[i]]);
    }
    const auto end = found.end();
    EXPECT_NE(std::find(found.begin(), end, "de"), end) << file;
    EXPECT_NE(std::find(found.begin(), end, "fgh"), end) << file;
  }
}

TEST(Texts, WhatIsLeftOutIsCounted) {
  const Texts texts = Parse("ab\nx!\ny\nlonger\ncd!\n", "line");
  const auto cut = [](std::string_view text, std::vector<int32_t>& tokens) -> Result<Tokenised> {
    WISP_RETURN_IF_ERROR(Bytes(text.substr(0, 4), tokens).status());
    return Tokenised{.was_cut = text.size() > 4};
  };
  const auto encoded = EncodeTexts(texts, cut, /*drop_bad=*/true);
  ASSERT_TRUE(encoded.ok());
  // A text that is cut is one record still.
  EXPECT_EQ(encoded->text, (std::vector<uint32_t>{0, 3}));
  EXPECT_EQ(encoded->tokens, (std::vector<int32_t>{'a', 'b', 'l', 'o', 'n', 'g'}));
  EXPECT_EQ(encoded->num_cut, 1u);
  EXPECT_EQ(encoded->num_short, 1u);
  EXPECT_EQ(encoded->num_dropped, 2u);
  EXPECT_EQ(encoded->first_dropped, "f.txt, line 2: it has a !");
  const auto refused = EncodeTexts(texts, cut, /*drop_bad=*/false);
  EXPECT_EQ(refused.status().message(), "f.txt, line 2: it has a !");
}

TEST(Texts, WhatIsHeldOutFollowsFromTheTextAlone) {
  int held_out = 0;
  for (int i = 0; i < 10000; ++i) {
    const std::string text = "text " + std::to_string(i);
    held_out += IsHeldOut(text, 0.1) ? 1 : 0;
    EXPECT_FALSE(IsHeldOut(text, 0));
    EXPECT_TRUE(IsHeldOut(text, 1));
    // Who is held out with a smaller share is with a larger one.
    EXPECT_TRUE(!IsHeldOut(text, 0.1) || IsHeldOut(text, 0.2));
  }
  // The hash never changes, so neither does the number; six deviations around the mean.
  EXPECT_NEAR(held_out, 1000, 180);
}

}  // namespace
}  // namespace wisp::data
