// Decoding in pieces: a stream shows the text of all tokens, whatever the steps and the tokens are.
#include "runtime/text/tokenizers/decode.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "runtime/text/tokenizers/unicode.h"
#include "tests/unit/text/text_test_util.h"

namespace wisp::text::decode_test {
namespace {

using test::Opened;
using test::OpenGolden;

constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";

// Part of the oracle.
void ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  std::string out;
  for (size_t at = 0;;) {
    const size_t found = text.find(from, at);
    out += std::string_view(text).substr(at, found - at);
    if (found == std::string::npos) break;
    out += to;
    at = found + from.size();
  }
  text = std::move(out);
}

void WordPiece(const Step& step, std::vector<std::string>& tokens) {
  constexpr std::pair<std::string_view, std::string_view> kCleanUp[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) {
      if (std::string_view(tokens[i]).starts_with(step.a)) {
        tokens[i].erase(0, step.a.size());
      } else {
        tokens[i].insert(0, 1, ' ');
      }
    }
    if (step.options == 0) continue;
    for (const auto& [from, to] : kCleanUp) ReplaceAll(tokens[i], from, to);
  }
}

void ByteLevel(std::vector<std::string>& tokens) {
  std::string bytes;
  for (const std::string& token : tokens) {
    const size_t before = bytes.size();
    for (size_t at = 0; at < token.size();) {
      const Character c = CharacterAt(token, at);
      const int byte = LetterToByte(c.code);
      if (byte < 0) {  // not a byte token: taken as it is
        bytes.resize(before);
        bytes += token;
        break;
      }
      bytes += static_cast<char>(byte);
      at += c.size;
    }
  }
  tokens.assign(1, ToUtf8(bytes));
}

void Metaspace(const Step& step, std::vector<std::string>& tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) ReplaceAll(tokens[i], step.a, i == 0 && step.options != 0 ? "" : " ");
}

void ByteFallback(std::vector<std::string>& tokens) {
  std::vector<std::string> out;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    if (IsUtf8(bytes)) {
      out.push_back(bytes);
    } else {
      out.insert(out.end(), bytes.size(), std::string(kReplacementCharacter));
    }
    bytes.clear();
  };
  for (std::string& token : tokens) {
    const int byte = ParseFallbackByte(token);
    if (byte >= 0) {
      bytes += static_cast<char>(byte);
      continue;
    }
    flush();
    out.push_back(std::move(token));
  }
  flush();
  tokens = std::move(out);
}

// Removes up to a number of one character at the front and at the end of each token.
void Strip(const Step& step, std::vector<std::string>& tokens) {
  const uint32_t front = step.options & 0xffff, back = step.options >> 16;
  for (std::string& token : tokens) {
    size_t begin = 0, end = token.size();
    for (uint32_t i = 0; i < front && std::string_view(token).substr(begin).starts_with(step.a); ++i)
      begin += step.a.size();
    for (uint32_t i = 0;
         i < back && end >= begin + step.a.size() && std::string_view(token).substr(0, end).ends_with(step.a); ++i)
      end -= step.a.size();
    token = token.substr(begin, end - begin);
  }
}

std::string Joined(const std::vector<std::string>& tokens, std::string_view between) {
  std::string text;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) text += between;
    text += tokens[i];
  }
  return text;
}

// Applies the steps one after the other, each over all tokens.
std::string Plain(const Image& image, std::vector<std::string> tokens) {
  if (image.decoders.empty()) return Joined(tokens, " ");
  for (const Step& step : image.decoders) {
    switch (static_cast<DecodeKind>(step.kind)) {
      case DecodeKind::kWordPiece:
        WordPiece(step, tokens);
        break;
      case DecodeKind::kByteLevel:
        ByteLevel(tokens);
        break;
      case DecodeKind::kMetaspace:
        Metaspace(step, tokens);
        break;
      case DecodeKind::kReplace:
        for (std::string& token : tokens) ReplaceAll(token, step.a, step.b);
        break;
      case DecodeKind::kByteFallback:
        ByteFallback(tokens);
        break;
      case DecodeKind::kFuse:
        tokens.assign(1, Joined(tokens, ""));
        break;
      case DecodeKind::kStrip:
        Strip(step, tokens);
        break;
    }
  }
  return Joined(tokens, "");
}

std::vector<std::string> Alphabet() {
  std::vector<std::string> tokens = {
      " ",   "  ", "a", "b",  "##a", "##", "\u2581", "\u2581a", "a\u2581", "\u2581\u2581",
      "aab", "ab", "é", "日", ".",   "'",  "n't",    " do not", "\u0120a", "\u00e2\u0123"};
  for (const char* byte :
       {"41", "20", "C3", "A9", "EF", "AC", "9C", "94", "E6", "97", "A5", "F0", "9F", "91", "8D", "FF"})
    tokens.push_back(std::string("<0x") + byte + ">");
  for (const uint8_t byte : {0x41, 0xc3, 0xa9, 0xe6, 0x97, 0xa5, 0xf0, 0x9f, 0x91, 0x8d, 0xff}) {
    tokens.emplace_back();
    Append(ByteToLetter(byte), tokens.back());
  }
  return tokens;
}

std::vector<Step> RandomSteps(std::mt19937& random) {
  static constexpr std::string_view kTexts[] = {"a", "aa", "ab", " ", "\u2581", "##", "é", "aab"};
  static constexpr std::string_view kNew[] = {"", " ", "a", "日", "ab"};
  std::vector<Step> steps(random() % 5);
  for (Step& step : steps) {
    step.kind = 1 + random() % 7;
    step.a = kTexts[random() % std::size(kTexts)];
    step.b = kNew[random() % std::size(kNew)];
    step.options = random() % 2;
    if (step.kind == static_cast<uint32_t>(DecodeKind::kStrip)) step.options = random() % 4 | (random() % 3) << 16;
  }
  return steps;
}

TEST(Decoding, EveryStepsOverEveryTokens_areThoseOfAllTokensAtOnce) {
  const std::vector<std::string> alphabet = Alphabet();
  std::mt19937 random(1);
  for (int round = 0; round < 100000; ++round) {
    const std::vector<Step> steps = RandomSteps(random);
    Image image;
    image.decoders = steps;
    Decoding decoding(image);
    std::vector<std::string> tokens;
    std::string pieces;
    for (size_t i = random() % 12; i > 0; --i) {
      tokens.push_back(alphabet[random() % alphabet.size()]);
      decoding.Add(tokens.back());
      const std::string piece = decoding.Take();
      ASSERT_TRUE(IsUtf8(piece)) << round;
      pieces += piece;
    }
    decoding.End();
    const std::string rest = decoding.Take();
    ASSERT_TRUE(IsUtf8(rest)) << round;
    ASSERT_EQ(pieces + rest, Plain(image, tokens)) << round << testing::PrintToString(tokens);
  }
}

class Streams : public testing::TestWithParam<const char*> {};

TEST_P(Streams, AnyTokens_GiveTheWholeText) {
  const Opened opened = OpenGolden(GetParam());
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    const std::vector<int32_t> ids = test::RandomIds(*opened, random);
    for (const DecodeSpecials special : {DecodeSpecials::kSkip, DecodeSpecials::kKeep}) {
      StreamDecoder stream(*opened, {.special = special});
      std::string pieces;
      for (const int32_t id : ids) {
        const auto piece = stream.Push(id);
        ASSERT_TRUE(piece.ok() && IsUtf8(*piece)) << testing::PrintToString(ids);
        pieces += *piece;
      }
      const std::string rest = stream.Finish();
      EXPECT_TRUE(IsUtf8(rest));
      EXPECT_EQ(pieces + rest, *opened->Decode(ids, {.special = special})) << testing::PrintToString(ids);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Streams, testing::ValuesIn(test::kGoldenNames), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// The bytes of U+FB1C, then a byte that no character has there: each of the four is a replacement character.
TEST(StreamDecoder, AByteThatSpoilsARun_showsNoByteTwice) {
  const Opened llama = OpenGolden("llama2");
  std::vector<int32_t> ids;
  for (const std::string_view byte : {"<0xEF>", "<0xAC>", "<0x9C>", "<0x94>"}) {
    for (size_t id = 0; id < llama->size(); ++id) {
      if (llama->TokenText(static_cast<int32_t>(id)) == byte) ids.push_back(static_cast<int32_t>(id));
    }
  }
  ASSERT_EQ(ids.size(), 4u);
  StreamDecoder stream(*llama, {});
  std::string shown;
  for (const int32_t id : ids) shown += *stream.Push(id);
  EXPECT_EQ(shown + stream.Finish(), "\ufffd\ufffd\ufffd\ufffd");
}

}  // namespace
}  // namespace wisp::text::decode_test
