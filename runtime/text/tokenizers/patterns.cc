// Built for speed: every character of a text passes here.
#include "runtime/text/tokenizers/patterns.h"

#include "runtime/text/tokenizers/unicode.h"

namespace wisp::text {
namespace {

using unicode::kLetter;
using unicode::kNumber;
using unicode::kPatternSpace;
constexpr unsigned kAny = kLetter | kNumber | kPatternSpace;

// The class of the character at `at`: one of the three flags, or 0.
struct Classed {
  unsigned kind;
  uint32_t size;
};
Classed At(std::string_view text, size_t at) {
  const Character c = CharacterAt(text, at);
  return {GetFlags(c.code) & kAny, c.size};
}

// The end of the run of characters of this class.
size_t SkipAll(std::string_view text, size_t at, unsigned kind) {
  while (at < text.size()) {
    const Classed next = At(text, at);
    if (next.kind != kind) break;
    at += next.size;
  }
  return at;
}

bool IsLineEnd(char c) { return c == '\r' || c == '\n'; }
size_t SkipLineEnds(std::string_view text, size_t at) {
  while (at < text.size() && IsLineEnd(text[at])) ++at;
  return at;
}

// Length of 's, 't, 're, 've, 'm, 'll or 'd at `at`, or 0. With any_case also in upper case and with the long s
// (U+017F), which folds to s.
size_t Contraction(std::string_view text, size_t at, bool any_case) {
  if (text[at] != '\'') return 0;
  const auto letter = [&](size_t i) -> char {
    if (at + i >= text.size()) return 0;
    const char c = text[at + i];
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 0x20) : c;
  };
  const char first = letter(1), second = letter(2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l')) return 3;
  if (any_case && first == '\xc5' && second == '\xbf') return 3;
  return 0;
}

// The end of \s+(?!\S)|\s+ for the white space at `at`: all of it at the end of the text, otherwise all but its last
// character.
size_t SpacesEnd(std::string_view text, size_t at, size_t end) {
  if (end == text.size()) return end;
  const size_t last = Before(text, end);
  return last > at ? last : end;
}

}  // namespace

size_t Gpt2End(std::string_view text, size_t at) {
  if (const size_t length = Contraction(text, at, false); length > 0) return at + length;
  Classed first = At(text, at);
  const size_t begin = at;
  if (text[at] == ' ' && at + 1 < text.size()) {
    const Classed next = At(text, at + 1);
    if (next.kind != kPatternSpace) {
      first = next;
      ++at;
    }
  }
  const size_t end = SkipAll(text, at + first.size, first.kind);
  return first.kind == kPatternSpace ? SpacesEnd(text, begin, end) : end;
}

size_t Llama3End(std::string_view text, size_t at, size_t most_digits) {
  if (const size_t length = Contraction(text, at, true); length > 0) return at + length;
  const Classed first = At(text, at);
  const size_t behind = at + first.size;
  if (first.kind == kLetter) return SkipAll(text, behind, kLetter);
  if (first.kind == kNumber) {
    size_t end = behind;
    for (size_t digits = 1; digits < most_digits && end < text.size(); ++digits) {
      const Classed next = At(text, end);
      if (next.kind != kNumber) break;
      end += next.size;
    }
    return end;
  }
  const Classed next = behind < text.size() ? At(text, behind) : Classed{kPatternSpace, 0};
  if (next.kind == kLetter && !IsLineEnd(text[at])) return SkipAll(text, behind, kLetter);
  if (first.kind == 0) return SkipLineEnds(text, SkipAll(text, behind, 0));
  if (text[at] == ' ' && next.kind == 0) return SkipLineEnds(text, SkipAll(text, behind, 0));
  // White space ends after its last line break, if it has one.
  const size_t end = SkipAll(text, behind, kPatternSpace);
  for (size_t i = end; i > at; --i) {
    if (IsLineEnd(text[i - 1])) return i;
  }
  return SpacesEnd(text, at, end);
}

}  // namespace wisp::text
