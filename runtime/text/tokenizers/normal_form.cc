#include "runtime/text/tokenizers/normal_form.h"

#include <utf8proc.h>

#include <algorithm>

#include "runtime/text/tokenizers/unicode.h"

namespace wisp::text {
namespace {

constexpr uint32_t kBeforeHangulFinals = 0x11a7;

// The canonical combining class; 0 for characters that the reference does not reorder.
int CombiningClass(uint32_t code) {
  if (!Has(code, unicode::kReorders)) return 0;
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(code))->combining_class;
}

// The composition of two characters; 0 if the reference does not know it.
uint32_t Composed(uint32_t first, uint32_t second) {
  if (second < 0x300) return 0;  // below the first combining mark
  // U+11A7 is no final; the finals follow it. utf8proc would drop it after a Hangul syllable.
  if (second == kBeforeHangulFinals) return 0;
  utf8proc_int32_t pair[2] = {static_cast<utf8proc_int32_t>(first), static_cast<utf8proc_int32_t>(second)};
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  if (utf8proc_normalize_utf32(pair, 2, options) != 1) return 0;
  const uint32_t composed = static_cast<uint32_t>(pair[0]);
  return Has(composed, unicode::kDecomposes) ? composed : 0;
}

// D117 of the Unicode standard: each character composes with the last base before it unless a character in between
// blocks it.
void Compose(std::vector<uint32_t>& codes) {
  size_t written = 0, base = codes.size();
  int last_class = -1;  // class of the last character kept after the base
  for (const uint32_t code : codes) {
    const int its_class = CombiningClass(code);
    if (base < written && last_class < its_class) {
      if (const uint32_t composed = Composed(codes[base], code); composed != 0) {
        codes[base] = composed;
        continue;
      }
    }
    if (its_class == 0) {
      base = written;
      last_class = -1;
    } else {
      last_class = its_class;
    }
    codes[written++] = code;
  }
  codes.resize(written);
}

}  // namespace

void AppendDecomposed(uint32_t code, bool compatible, std::vector<uint32_t>& codes) {
  if (!Has(code, compatible ? unicode::kDecomposesCompat : unicode::kDecomposes)) return codes.push_back(code);
  utf8proc_int32_t parts[32];  // the longest decomposition has 18
  int boundary = 0;
  const auto options =
      static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : UTF8PROC_STABLE));
  const utf8proc_ssize_t count = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(code), parts, static_cast<utf8proc_ssize_t>(std::size(parts)), options, &boundary);
  if (count <= 0 || count > static_cast<utf8proc_ssize_t>(std::size(parts))) return codes.push_back(code);
  for (utf8proc_ssize_t i = 0; i < count; ++i) codes.push_back(static_cast<uint32_t>(parts[i]));
}

void OrderMarks(std::vector<uint32_t>& codes) {
  for (size_t begin = 0; begin < codes.size();) {
    if (!Has(codes[begin], unicode::kReorders)) {
      ++begin;
      continue;
    }
    size_t end = begin + 1;
    while (end < codes.size() && Has(codes[end], unicode::kReorders)) ++end;
    if (end - begin > 1) {
      std::stable_sort(codes.begin() + static_cast<ptrdiff_t>(begin), codes.begin() + static_cast<ptrdiff_t>(end),
                       [](uint32_t a, uint32_t b) { return CombiningClass(a) < CombiningClass(b); });
    }
    begin = end;
  }
}

void AppendNormalForm(Form form, std::string_view text, std::string& out) {
  std::vector<uint32_t> codes;
  for (size_t at = 0; at < text.size();) {
    // ASCII stays unchanged, except for a last character that a following mark may compose with.
    size_t end = at;
    while (end < text.size() && static_cast<uint8_t>(text[end]) < 0x80) ++end;
    if (end < text.size() && end > at) --end;
    out += text.substr(at, end - at);
    at = end;
    codes.clear();
    bool first = true;
    while (at < text.size()) {
      const Character c = CharacterAt(text, at);
      if (c.code < 0x80 && !first) break;
      first = false;
      AppendDecomposed(c.code, Compatible(form), codes);
      at += c.size;
    }
    OrderMarks(codes);
    if (Composes(form)) Compose(codes);
    for (const uint32_t code : codes) Append(code, out);
  }
}

}  // namespace wisp::text
