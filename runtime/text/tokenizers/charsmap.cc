// Built for speed: once for each character of a text.
// SentencePiece's precompiled_charsmap: a double array (darts-clone) over the bytes to be replaced, and the replacement
// texts. It works as in the reference. In a grapheme of fewer than six bytes, the shortest key at its front replaces
// the whole grapheme. Otherwise each character is looked up by itself.
#include "runtime/text/tokenizers/graphemes.h"
#include "runtime/text/tokenizers/normalize.h"
#include "runtime/text/tokenizers/unicode.h"

namespace wisp::text {
namespace {

constexpr size_t kLongGrapheme = 6;

// Finds the replacement for the shortest prefix of `text` that is a key. False if no prefix is.
bool Replacement(const Image& image, std::string_view text, std::string_view& replacement) {
  const auto units = image.charsmap_trie;
  const auto offset = [](uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); };
  uint32_t node = offset(units[0]);
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte == 0) return false;
    node ^= byte;
    if (node >= units.size()) return false;
    const uint32_t unit = units[node];
    if ((unit & ((1u << 31) | 0xff)) != byte) return false;
    node ^= offset(unit);
    if ((unit >> 8 & 1) == 0) continue;
    if (node >= units.size()) return false;
    const uint32_t value = units[node] & ((1u << 31) - 1);
    if (value >= image.charsmap_texts.size()) return false;
    replacement = image.charsmap_texts.substr(value, image.charsmap_texts.find('\0', value) - value);
    return IsUtf8(replacement);
  }
  return false;
}

}  // namespace

void AppendCharsmapped(const Image& image, std::string_view text, std::string& out) {
  std::string_view replacement;
  for (size_t at = 0; at < text.size();) {
    const size_t end = GraphemeEnd(text, at);
    if (end - at < kLongGrapheme && Replacement(image, text.substr(at, end - at), replacement)) {
      out += replacement;
      at = end;
      continue;
    }
    while (at < end) {
      const std::string_view one = text.substr(at, CharacterAt(text, at).size);
      out += Replacement(image, one, replacement) ? replacement : one;
      at += one.size();
    }
  }
}

}  // namespace wisp::text
