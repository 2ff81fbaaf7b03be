// UTF-8, normal forms, the letters of bytes, and the texts that bytes form.
#include "runtime/text/tokenizers/unicode.h"

#include <gtest/gtest.h>

#include "runtime/text/tokenizers/decode.h"
#include "runtime/text/tokenizers/graphemes.h"
#include "runtime/text/tokenizers/normal_form.h"
#include "runtime/text/tokenizers/patterns.h"

namespace wisp::text::text_unicode_test {
namespace {

std::string ToForm(Form form, std::string_view text) {
  std::string out;
  AppendNormalForm(form, text, out);
  return out;
}

std::string ToLower(uint32_t code) {
  std::string out;
  AppendLower(code, out);
  return out;
}

TEST(Utf8, FaultIsNamedByItsOffset) {
  struct Case {
    std::string text;
    size_t offset;
  };
  const Case cases[] = {{"\x80", 0},
                        {"abc\xff", 3},
                        {"12345678\xc3", 8},             // cut short
                        {"1234567\xc3\xa9\xc0\xaf", 9},  // longer than needed
                        {"\xe2\x82", 0},
                        {"a\xed\xa0\x80", 1},       // a surrogate
                        {"ab\xf4\x90\x80\x80", 2},  // beyond U+10FFFF
                        {"\xf0\x80\x80\x80", 0},
                        {std::string("a\0b\xfe", 4), 3}};
  for (const Case& c : cases) {
    const Status status = CheckUtf8("name", c.text);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.code(), StatusCode::kInvalidData);
    EXPECT_NE(status.message().find("byte " + std::to_string(c.offset) + " "), std::string::npos) << status.message();
    EXPECT_EQ(status.message().rfind("name: ", 0), 0u);
    EXPECT_FALSE(IsUtf8(c.text));
  }
}

TEST(Utf8, EveryCharacterGoesThereAndBack) {
  for (uint32_t code = 0; code < 0x110000; ++code) {
    if (code >= 0xd800 && code < 0xe000) continue;
    std::string text = "abcdefg";  // so that the fast path meets it, too
    Append(code, text);
    ASSERT_TRUE(IsUtf8(text)) << code;
    const Character c = CharacterAt(text, 7);
    ASSERT_EQ(c.code, code);
    ASSERT_EQ(c.size, text.size() - 7);
    ASSERT_EQ(Before(text, text.size()), 7u);
  }
}

[[gnu::noinline]] Character GetFirst(std::string_view text) { return CharacterAt(text, 0); }

TEST(Utf8, NothingIsReadBehindTheEnd) {
  // On the heap and exactly as long, so that a sanitizer sees a read past it.
  for (int lead = 0; lead < 256; ++lead) {
    for (size_t size = 1; size < 4; ++size) {
      const std::vector<char> exact(size, static_cast<char>(lead));
      const std::string_view text(exact.data(), exact.size());
      EXPECT_LE(GetFirst(text).size, size);
      EXPECT_LT(GetFirst(text).code, 0x110000u);
    }
  }
}

TEST(NormalForms, AreThoseOfUnicode) {
  EXPECT_EQ(ToForm(Form::kNfd, "é"), "e\u0301");
  EXPECT_EQ(ToForm(Form::kNfc, "e\u0301"), "é");
  EXPECT_EQ(ToForm(Form::kNfc, "abc e\u0301\u0327d"), "abc \u0229\u0301d");
  EXPECT_EQ(ToForm(Form::kNfd, "a\u0301\u0327"), "a\u0327\u0301");
  EXPECT_EQ(ToForm(Form::kNfkc, "ﬁ Ａ①"), "fi A1");
  EXPECT_EQ(ToForm(Form::kNfkd, "ﬁ é"), "fi e\u0301");
  EXPECT_EQ(ToForm(Form::kNfd, "한"), "\u1112\u1161\u11ab");
  EXPECT_EQ(ToForm(Form::kNfc, "\u1112\u1161\u11ab"), "한");
  // a syllable, and a character that is not a final of one
  EXPECT_EQ(ToForm(Form::kNfc, "\ub220\u11a7"), "\ub220\u11a7");
  EXPECT_EQ(ToForm(Form::kNfkc, "\ub220\u11a8"), "\ub221");         // the first final
  EXPECT_EQ(ToForm(Form::kNfc, "\u0958"), "\u0915\u093c");          // excluded from composition
  EXPECT_EQ(ToForm(Form::kNfkd, "\ufdfa").size(), 33u);             // the longest
  EXPECT_EQ(ToForm(Form::kNfc, "e\u0305\u0301"), "e\u0305\u0301");  // blocked by a mark of its class
  EXPECT_EQ(ToForm(Form::kNfc, "e\u0327\u0301"), "\u0229\u0301");
  EXPECT_EQ(ToForm(Form::kNfc, ""), "");
}

TEST(LowerCase, IsTheReferences) {
  EXPECT_EQ(ToLower('A'), "a");
  EXPECT_EQ(ToLower('z'), "z");
  EXPECT_EQ(ToLower(0xc4), "ä");
  EXPECT_EQ(ToLower(0x130), "i\u0307");
  EXPECT_EQ(ToLower(0x1e9e), "ß");
  EXPECT_EQ(ToLower(0x1c89), "\u1c8a");       // Unicode 16
  EXPECT_EQ(ToLower(0x10d50), "\U00010d70");  // Unicode 16
}

TEST(Letters, StandForBytes) {
  std::string seen;
  for (int byte = 0; byte < 256; ++byte) {
    const uint32_t letter = ByteToLetter(static_cast<uint8_t>(byte));
    EXPECT_EQ(LetterToByte(letter), byte);
    EXPECT_FALSE(Has(letter, unicode::kWhite)) << byte;
  }
  EXPECT_EQ(ByteToLetter(' '), 0x120u);   // Ġ
  EXPECT_EQ(ByteToLetter('\n'), 0x10au);  // Ċ
  EXPECT_EQ(ByteToLetter(0xad), 0x143u);
  EXPECT_EQ(LetterToByte(' '), -1);
  EXPECT_EQ(LetterToByte(0x144), -1);
}

TEST(Fallback, TokensNameBytes) {
  EXPECT_EQ(ParseFallbackByte("<0x41>"), 0x41);
  EXPECT_EQ(ParseFallbackByte("<0xfF>"), 0xff);
  EXPECT_EQ(ParseFallbackByte("<0x+A>"), 10);  // as in the reference
  for (const char* other : {"<0x4>", "<0x4g>", "0x41", "<0x411>", "<0x-1>", "<0x++>", ""})
    EXPECT_EQ(ParseFallbackByte(other), -1) << other;
}

TEST(Bytes, InvalidUtf8_BecomesReplacements) {
  EXPECT_EQ(ToUtf8("a\xff\xc3\xa9"), "a\ufffdé");
  EXPECT_EQ(ToUtf8("\xe2\x82"), "\ufffd");  // one for the longest beginning of a character
  EXPECT_EQ(ToUtf8("\xe2\x41"), "\ufffdA");
  EXPECT_EQ(ToUtf8("\xed\xa0\x80"), "\ufffd\ufffd\ufffd");
  EXPECT_EQ(ToUtf8("\xf0\x9f\x98"), "\ufffd");
  EXPECT_EQ(ToUtf8("\xf0\x80\x80"), "\ufffd\ufffd\ufffd");
}

TEST(Graphemes, EndWhereTheReferenceEndsThem) {
  EXPECT_EQ(GraphemeEnd("ab", 0), 1u);
  EXPECT_EQ(GraphemeEnd("e\u0301x", 0), 3u);
  EXPECT_EQ(GraphemeEnd("\r\nx", 0), 2u);
  EXPECT_EQ(GraphemeEnd("\n\u0301", 0), 1u);
  EXPECT_EQ(GraphemeEnd("🇩🇪🇫🇷", 0), 8u);
  EXPECT_EQ(GraphemeEnd("👩\u200d👩x", 0), 11u);
  EXPECT_EQ(GraphemeEnd("\u1112\u1161\u11abx", 0), 9u);
  EXPECT_EQ(GraphemeEnd("\u0915\u094d\u0937x", 0), 9u);  // a conjunct
  EXPECT_EQ(GraphemeEnd("\u0600a", 0), 3u);
}

// Returns all pieces of a text by one of the scanners, separated by bars.
template <typename FindEnd>
std::string Cut(std::string_view text, const FindEnd& end_of) {
  std::string cut;
  for (size_t at = 0; at < text.size();) {
    const size_t end = end_of(text, at);
    if (at > 0) cut += '|';
    cut += text.substr(at, end - at);
    at = end;
  }
  return cut;
}

TEST(Patterns, CutAsTheirExpressionsDo) {
  EXPECT_EQ(Cut("Hello world's  end 12x!?\n\n a", Gpt2End), "Hello| world|'s| | end| 12|x|!?|\n\n| a");
  EXPECT_EQ(Cut("'S 'll\t\ta ", Gpt2End), "'|S| '|ll|\t|\t|a| ");
  const auto llama3 = [](std::string_view text, size_t at) { return Llama3End(text, at, 3); };
  const auto qwen2 = [](std::string_view text, size_t at) { return Llama3End(text, at, 1); };
  EXPECT_EQ(Cut("I'M 12345 (ok)!\r\n\n  x  \n y", llama3), "I|'M| |123|45| (|ok|)!\r\n\n| | x|  \n| y");
  EXPECT_EQ(Cut("a123", qwen2), "a|1|2|3");
  EXPECT_EQ(Cut("it'\u017f", llama3), "it|'\u017f");
  EXPECT_EQ(Cut("\ta\nb", llama3), "\ta|\n|b");
}

}  // namespace
}  // namespace wisp::text::text_unicode_test
