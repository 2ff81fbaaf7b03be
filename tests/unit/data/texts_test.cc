// Records of text: how each unit divides a file, that no record holds bytes or tokens of another, and what is left out.
#include "runtime/data/texts.h"

#include <gtest/gtest.h>

#include <iterator>
#include <random>

namespace wisp::data::texts_test {
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

// Makes every byte a token.
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

TEST(Texts, ChunksHoldTheirWholeCharacters) {
  EXPECT_EQ(Parse("0123456789abcdef!", "chunk:8").texts, (Strings{"01234567", "89abcdef", "!"}));
  // A character across a border is in neither chunk.
  const Texts texts = Parse(
      "0123456\xc3\xa9"
      "89\nbcde\xf0\x9f\x98\x80tuvwxyz",
      "chunk:8");
  EXPECT_EQ(texts.texts, (Strings{"0123456", "89\nbcde", "\xf0\x9f\x98\x80tuvw", "xyz"}));
  EXPECT_EQ(texts.lines, (Lines{1, 1, 2, 2}));
  // Bytes that are not UTF-8 are cut as well, and blanks alone are not a text.
  EXPECT_EQ(Parse(std::string(20, '\x80'), "chunk:8").texts.size(), 3u);
  EXPECT_EQ(Parse("01234567        89abcdef", "chunk:8").texts, (Strings{"01234567", "89abcdef"}));
}

// Makes a file of characters of all lengths, byte order marks, line ends, and bytes that are not UTF-8.
std::string RandomFile(std::mt19937& random) {
  const char* const parts[] = {"a", "\n", " ", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xef\xbb\xbf"};
  const bool is_valid = random() % 2 == 0;
  std::string file;
  for (size_t length = random() % 120; file.size() < length;) {
    if (!is_valid && random() % 3 == 0) {
      file += static_cast<char>(random());
    } else {
      file += parts[random() % std::size(parts)];
    }
  }
  return file;
}

// Without one record there is one text less, and all others are unchanged.
TEST(Texts, ChunkTakenAway_changesNoOtherText) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 3000; ++round) {
    const std::string file = RandomFile(random);
    const uint64_t size = 8 + random() % 9;
    const TextOptions options = {.unit = {TextUnit::Kind::kChunk, size}, .private_run = true};
    const Strings all = ParseTexts("f", file, options)->texts;
    Strings each;
    for (size_t at = 0; at < file.size(); at += size) {
      const Strings own = ParseTexts("f", file.substr(at, size), options)->texts;
      ASSERT_LE(own.size(), 1u);
      std::string without = file;
      const Strings others = ParseTexts("f", without.erase(at, size), options)->texts;
      Strings expected = all;
      if (!own.empty()) expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(each.size()));
      ASSERT_EQ(others, expected) << "round " << round << ", chunk at " << at << " of " << size;
      each.insert(each.end(), own.begin(), own.end());
    }
    ASSERT_EQ(each, all) << "round " << round;
  }
}

TEST(Texts, MarksOfByteOrder_areLeftOutWhereverTheyStand) {
  const std::string mark = "\xef\xbb\xbf", file = mark + "a\n" + mark + "b\n" + mark + "\nc\n";
  EXPECT_EQ(Parse(file, "line").texts, (Strings{"a", "b", "c"}));
  EXPECT_EQ(Parse(file, "paragraph").texts, (Strings{"a\nb", "c"}));
  // A text does not depend on being the first: the test also removes all texts before it.
  for (const char* unit : {"line", "paragraph"}) {
    for (const std::string& marks : {mark, mark + mark, mark + mark + mark}) {
      EXPECT_EQ(Parse(marks + "secret\n", unit).texts, (Strings{"secret"}));
      EXPECT_EQ(Parse("a\n\n" + marks + "secret\n", unit).texts, (Strings{"a", "secret"}));
    }
  }
  EXPECT_EQ(Parse(mark + mark + "12" + mark + mark + "34", "chunk:8").texts, (Strings{"12", "34"}));
}

TEST(Texts, AFileWithoutTextIsRefusedWhereThatTellsOfNobody) {
  const auto refused = ParseTexts("f.txt", "\n \n", {});
  ASSERT_EQ(refused.status().code(), StatusCode::kInvalidData);
  EXPECT_EQ(refused.status().message(), "f.txt: there is no text in it");
  EXPECT_TRUE(ParseTexts("f.txt", "\n \n", {.private_run = true})->texts.empty());
  EXPECT_EQ(ReadTexts("/nowhere/f.txt", {}).status().code(), StatusCode::kIo);
}

// If most texts have bytes of another encoding, the file is refused before anything is charged.
TEST(Texts, AFileWithMostTextsInAnotherFormIsRefused) {
  const auto utf8 = [](std::string_view text, std::vector<int32_t>& tokens) -> Result<Tokenised> {
    if (text.find('\xe9') != std::string_view::npos) return InvalidData("it is not UTF-8");
    return Bytes(text, tokens);
  };
  const auto encode = [&](size_t good, size_t bad) {
    std::string file;
    for (size_t i = 0; i < good; ++i) file += i % 2 == 0 ? "a text\n" : "a\n";
    for (size_t i = 0; i < bad; ++i) file += "caf\xe9\n";
    return EncodeTexts(Parse(file, "line"), utf8, /*drop_bad=*/true).status();
  };
  EXPECT_EQ(
      encode(99, 100).message(),
      "f.txt: 100 of its 199 texts cannot be read, so nothing can be learned from it (local only). The first: f.txt, "
      "line 100: it is not UTF-8");
  EXPECT_TRUE(encode(100, 100).ok());
  EXPECT_TRUE(encode(1, 99).ok());
}

// A record's tokens depend on its own text alone: with another text before it, or without one, they are the same.
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
  // A text that is cut is still one record.
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
    // A text that is held out at a smaller share is also held out at a larger one.
    EXPECT_TRUE(!IsHeldOut(text, 0.1) || IsHeldOut(text, 0.2));
  }
  // The hash never changes, so neither does the number. The bound is six deviations around the mean.
  EXPECT_NEAR(held_out, 1000, 180);
}

}  // namespace
}  // namespace wisp::data::texts_test
