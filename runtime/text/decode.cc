#include "runtime/text/decode.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "runtime/text/unicode.h"

namespace wisp::text {
namespace {

constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";

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
      const int byte = ByteOfLetter(c.code);
      if (byte < 0) {  // no token of bytes: taken as it is
        bytes.resize(before);
        bytes += token;
        break;
      }
      bytes += static_cast<char>(byte);
      at += c.size;
    }
  }
  tokens.assign(1, Utf8Of(bytes));
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
    const int byte = ByteOfFallback(token);
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

// Up to so many of one character at the front and at the end of each token.
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

// How many bytes at the front are one character (the second is true), or one fault.
std::pair<size_t, bool> FrontOf(std::string_view bytes) {
  const auto in = [&](size_t i, uint8_t low, uint8_t high) {
    return i < bytes.size() && static_cast<uint8_t>(bytes[i]) >= low && static_cast<uint8_t>(bytes[i]) <= high;
  };
  const auto lead = static_cast<uint8_t>(bytes[0]);
  if (lead < 0x80) return {1, true};
  if (lead >= 0xc2 && lead <= 0xdf) return in(1, 0x80, 0xbf) ? std::pair(size_t{2}, true) : std::pair(size_t{1}, false);
  if (lead < 0xe0 || lead > 0xf4) return {1, false};
  const uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (!in(1, low, high)) return {1, false};
  if (!in(2, 0x80, 0xbf)) return {2, false};
  if (lead < 0xf0) return {3, true};
  return in(3, 0x80, 0xbf) ? std::pair(size_t{4}, true) : std::pair(size_t{3}, false);
}

}  // namespace

std::string Utf8Of(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const auto [size, whole] = FrontOf(bytes);
    text += whole ? bytes.substr(0, size) : kReplacementCharacter;
    bytes.remove_prefix(size);
  }
  return text;
}

// Printable bytes of Latin-1 stand for themselves, the others follow from U+0100 on in order.
uint32_t LetterOfByte(uint8_t byte) {
  const auto printable = [](uint32_t b) { return (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae; };
  if (printable(byte)) return byte;
  if (byte <= 0x20) return 0x100u + byte;
  if (byte <= 0xa0) return 0x100u + 0x21 + (byte - 0x7fu);
  return 0x100u + 0x43;  // 0xad
}

int ByteOfLetter(uint32_t code) {
  if (code < 0x100) return LetterOfByte(static_cast<uint8_t>(code)) == code ? static_cast<int>(code) : -1;
  if (code <= 0x120) return static_cast<int>(code - 0x100);
  if (code <= 0x142) return static_cast<int>(code - 0x121 + 0x7f);
  return code == 0x143 ? 0xad : -1;
}

int ByteOfFallback(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  const char* begin = token.data() + 3;
  if (*begin == '+') ++begin;  // the reference reads a sign
  unsigned byte = 0;
  const auto read = std::from_chars(begin, token.data() + 5, byte, 16);
  return read.ec == std::errc() && read.ptr == token.data() + 5 ? static_cast<int>(byte) : -1;
}

std::string DecodeTokens(const Image& image, std::vector<std::string> tokens) {
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

}  // namespace wisp::text
