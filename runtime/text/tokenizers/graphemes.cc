// Built for speed: once for each character of a text that a charsmap normalises.
#include "runtime/text/tokenizers/graphemes.h"

#include <utf8proc.h>

#include <algorithm>
#include <span>

#include "runtime/text/tokenizers/unicode.h"

namespace wisp::text {
namespace {

#include "runtime/text/tokenizers/generated/grapheme_classes.inc"

// The kind of the range that contains the code point, or 0 if no range does.
uint32_t KindIn(std::span<const GraphemeRange> ranges, uint32_t code) {
  const auto found = std::lower_bound(ranges.begin(), ranges.end(), code,
                                      [](const GraphemeRange& range, uint32_t c) { return range.last < c; });
  return found != ranges.end() && found->first <= code ? found->kind : 0;
}

uint32_t MatchClass(uint32_t code) {
  const uint32_t kind = KindIn(kGraphemeClasses, code);
  return kind != 0 ? kind : utf8proc_get_property(static_cast<utf8proc_int32_t>(code))->boundclass;
}

bool IsControl(uint32_t c) {
  return c == UTF8PROC_BOUNDCLASS_CR || c == UTF8PROC_BOUNDCLASS_LF || c == UTF8PROC_BOUNDCLASS_CONTROL;
}

// The rules GB6 to GB8, for Hangul syllables.
bool IsSyllable(uint32_t last, uint32_t next) {
  const bool vowel = next == UTF8PROC_BOUNDCLASS_V, tail = next == UTF8PROC_BOUNDCLASS_T;
  if (last == UTF8PROC_BOUNDCLASS_L)
    return vowel || next == UTF8PROC_BOUNDCLASS_L || next == UTF8PROC_BOUNDCLASS_LV || next == UTF8PROC_BOUNDCLASS_LVT;
  if (last == UTF8PROC_BOUNDCLASS_LV || last == UTF8PROC_BOUNDCLASS_V) return vowel || tail;
  return (last == UTF8PROC_BOUNDCLASS_LVT || last == UTF8PROC_BOUNDCLASS_T) && tail;
}

// The state of the current grapheme that the rules need.
class Boundary {
 public:
  explicit Boundary(uint32_t code) { Take(code, MatchClass(code)); }

  // True if the next character joins the grapheme. It then becomes part of it.
  bool Joins(uint32_t code) {
    const uint32_t next = MatchClass(code);
    if (!Joins(code, next)) return false;
    Take(code, next);
    return true;
  }

 private:
  bool Joins(uint32_t code, uint32_t next) const {
    if (last_ == UTF8PROC_BOUNDCLASS_CR) return next == UTF8PROC_BOUNDCLASS_LF;
    if (IsControl(last_) || IsControl(next)) return false;
    if (IsSyllable(last_, next)) return true;
    if (next == UTF8PROC_BOUNDCLASS_EXTEND || next == UTF8PROC_BOUNDCLASS_ZWJ ||
        next == UTF8PROC_BOUNDCLASS_SPACINGMARK || last_ == UTF8PROC_BOUNDCLASS_PREPEND)
      return true;
    if (linked_ && KindIn(kIndicKinds, code) == kConsonant) return true;
    if (pictograph_ && last_ == UTF8PROC_BOUNDCLASS_ZWJ && next == UTF8PROC_BOUNDCLASS_EXTENDED_PICTOGRAPHIC)
      return true;
    return next == UTF8PROC_BOUNDCLASS_REGIONAL_INDICATOR && indicators_ % 2 == 1;
  }

  void Take(uint32_t code, uint32_t its_class) {
    const bool extends = its_class == UTF8PROC_BOUNDCLASS_EXTEND || its_class == UTF8PROC_BOUNDCLASS_ZWJ;
    const uint32_t indic = code < 0x900 ? 0 : KindIn(kIndicKinds, code);
    if (indic == kConsonant) {
      consonant_ = true;
      linked_ = false;
    } else if (indic == kLinker) {
      linked_ = consonant_;
    } else if (!extends) {
      consonant_ = linked_ = false;
    }
    if (its_class == UTF8PROC_BOUNDCLASS_EXTENDED_PICTOGRAPHIC) {
      pictograph_ = true;
    } else if (!extends || last_ == UTF8PROC_BOUNDCLASS_ZWJ) {
      pictograph_ = false;
    }
    indicators_ = its_class == UTF8PROC_BOUNDCLASS_REGIONAL_INDICATOR ? indicators_ + 1 : 0;
    last_ = its_class;
  }

  static constexpr uint32_t kConsonant = 1, kLinker = 2;
  uint32_t last_ = UTF8PROC_BOUNDCLASS_START, indicators_ = 0;
  bool pictograph_ = false;  // a pictograph and its extending characters
  // an Indic consonant and its extending characters; one of these is a linker
  bool consonant_ = false, linked_ = false;
};

}  // namespace

size_t GraphemeEnd(std::string_view text, size_t at) {
  const auto plain = [&](size_t i) { return i < text.size() && text[i] >= ' ' && text[i] < 0x7f; };
  if (plain(at) && (at + 1 == text.size() || plain(at + 1))) return at + 1;  // each ASCII character is a grapheme
  const Character first = CharacterAt(text, at);
  Boundary boundary(first.code);
  at += first.size;
  while (at < text.size()) {
    const Character next = CharacterAt(text, at);
    if (!boundary.Joins(next.code)) break;
    at += next.size;
  }
  return at;
}

}  // namespace wisp::text
